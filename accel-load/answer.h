/* accel-load/answer.h -- one answer from its bytes: head, body, end.  Pure: no socket, no clock.
 *
 *	answer_begin() --> answer_take(bytes) --> HEAD, BODY..., END --> answer_begin() ...
 *
 * A protocol is a table: http.c, fastcgi.c.  Any split of the same bytes gives the same events; only
 * BODY may come in other pieces.
 */
#ifndef ACCEL_LOAD_ANSWER_H
#define ACCEL_LOAD_ANSWER_H

#include "accel-load/load.h"
#include "base/buf.h"
#include "base/text.h"

#define ANSWER_HEAD_MAX (16u << 10) /* a longer head is BAD */

enum answer_event {
	ANSWER_MORE, /* more bytes are needed; what is left of the input comes again, with them */
	ANSWER_HEAD, /* status, first, total and body_left are known */
	ANSWER_BODY, /* body: a part of it, a slice of the input */
	ANSWER_END,  /* keep: the connection can carry another request */
	ANSWER_BAD,  /* why */
};

struct answer {
	const struct load_protocol *protocol;
	bool head_only; /* the request was HEAD */
	int status;
	bool keep;
	uint64_t first; /* offset of the first byte in the file, from Content-Range; else 0 */
	int64_t total;  /* length of the file, from Content-Range or Content-Length; -1: unknown */
	uint64_t drop;  /* after HEAD and BODY: so many bytes are of the body only; may be 0 */
	const char *why;
	/* the protocol's */
	uint8_t phase;
	uint64_t left;
	void *state; /* freed by end_all() */
	uint64_t small[3];
};

struct url;

struct load_protocol {
	const char *name;
	/* The bytes of a request, without the empty line at its end if the protocol has one and a
	 * range follows.  0 or -errno. */
	int (*request)(const struct load_conf *, const struct url *, struct buf *);
	/* The next event; removes its bytes from *in. */
	enum answer_event (*take)(struct answer *, struct text *in, struct text *body);
	void (*dropped)(struct answer *, uint64_t n); /* n <= drop bytes were dropped */
	/* The stream has ended within this answer: END (its length was not announced) or BAD. */
	enum answer_event (*eof)(struct answer *);
	void (*free)(struct answer *); /* NULL: nothing to free */
};

extern const struct load_protocol load_http, load_fastcgi;

static inline void
answer_begin(struct answer *a, const struct load_protocol *p, bool head_only)
{
	void *state = a->state;

	*a = (struct answer){ .protocol = p, .head_only = head_only, .state = state, .total = -1 };
}

#endif
