/* wire/http1/headers.h -- the head of a reply in CGI style, and the header fields that may pass.
 *
 *   Status: 404 Not Found            a status other than 200
 *   HTTP/1.1 404 Not Found           the same, as the first line
 *   Location: /elsewhere             302 without a Status
 *   Content-Length: 12               removed; one number, or the reply is refused
 *   X-Sendfile: /srv/file            removed, even if it is not allowed
 *
 * An application is an adversary: it may spoil its own reply, never the framing of another reply.
 * So names are tokens, values have no control characters except HTAB, lines are not folded, and
 * everything is bounded.  Source: RFC 3875, 6; pure.
 */
#ifndef WIRE_HEADERS_H
#define WIRE_HEADERS_H

#include "base/buf.h"
#include "wire/codec/control.h"
#include "wire/http1/fields.h"

#define REPLY_HEAD_MAX   (64u << 10)
#define REPLY_FIELDS_MAX FIELDS_MAX

enum head_result { HEAD_MORE, HEAD_DONE, HEAD_BAD };

struct reply_head {
	struct buf raw;             /* the head as received */
	size_t line;                /* start of its last line */
	struct proxy_field *fields; /* slices of raw */
	size_t nfields, cap;
	bool cgi;                 /* the first line may be a status line */
	struct proxy_reply reply; /* valid after reply_head_sort(), until reply_head_free() */
	const char *why;          /* after HEAD_BAD */
};

void reply_head_init(struct reply_head *);
void reply_head_free(struct reply_head *); /* may be initialised again */
/* Removes bytes from *in up to and including the empty line; the rest stays.  Then fields has
 * all fields. */
enum head_result reply_head_feed(struct reply_head *, struct text *in);
/* Adds a field; both texts stay valid until reply_head_free(), as parts of raw do.  False: why
 * says what is wrong with it. */
bool reply_head_field(struct reply_head *, struct text name, struct text value);
/* Puts the remaining fields into reply, for the client, in their order.  reply.status is set by the
 * codec; 0: taken from the field Status. */
enum head_result reply_head_sort(struct reply_head *);
enum head_result reply_head_cgi(struct reply_head *, struct text *in); /* feeds and sorts */

/* False for 1xx, 204 and 304.  A reply to HEAD has no body either. */
bool status_has_body(int status);

bool header_is_token(struct text name);
bool header_value_ok(struct text value);

/* True for a field of a client that an application may get, see also client_field_passes().  Not:
 * hop-by-hop fields, control headers, Content-Length, Proxy (as HTTP_PROXY it would redirect the
 * application's own requests), and names with bytes other than letters, digits and '-'
 * (X_Forwarded_For must not pass for X-Forwarded-For).  A field that is ours passes; its name may
 * also have '_'. */
bool header_passes(const struct fields *, size_t i);
/* True if both names make the same CGI variable: '_' is '-'. */
bool header_is_alike(struct text a, struct text b);

#endif
