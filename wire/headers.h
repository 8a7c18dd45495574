/* wire/headers.h -- the head of a reply in CGI style, and which header fields may pass.
 *
 *   Status: 404 Not Found            a status other than 200
 *   Location: /elsewhere             302 when there is no Status
 *   Content-Length: 12               taken out; one number, or the reply is refused
 *   X-Sendfile: /srv/file            taken out, allowed or not
 *
 * An application is an adversary: it may spoil its own reply, never the framing of another reply.
 * So names are tokens, values hold no control character but HTAB, lines are not folded, and
 * everything is bounded.
 */
#ifndef WIRE_HEADERS_H
#define WIRE_HEADERS_H

#include "base/buf.h"
#include "wire/fields.h"

#define REPLY_HEAD_MAX (64u << 10)
#define REPLY_FIELDS_MAX FIELDS_MAX

enum head_result { HEAD_MORE, HEAD_DONE, HEAD_BAD };

struct reply_head {
	struct buf raw;             /* the head as it came */
	size_t line;                /* where its last line starts */
	struct proxy_field *fields; /* slices of raw */
	size_t cap;
	struct proxy_reply reply;   /* valid after HEAD_DONE, until reply_head_free() */
	const char *why;            /* after HEAD_BAD */
};

void reply_head_init(struct reply_head *);
void reply_head_free(struct reply_head *); /* may be initialised and used again */
/* Takes bytes off *in up to the empty line; what follows it stays. */
enum head_result reply_head_feed(struct reply_head *, struct text *in);

bool header_is_token(struct text name);
bool header_value_ok(struct text value);
/* "Send this file", "ask that URL": between server and application only, in both directions. */
bool header_is_control(struct text name);

#endif
