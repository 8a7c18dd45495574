/* accel-load/answer.h -- requests as bytes, and answers from bytes: head, body, end.  Pure: no
 * socket, no clock.
 *
 *	answer_begin() --> take(bytes) --> HEAD, BODY..., END --> answer_begin() ...
 *
 * A protocol is a table: http.c, fastcgi.c.  Any split of the same bytes gives the same events;
 * only BODY may come in other pieces.
 */
#ifndef ACCEL_LOAD_ANSWER_H
#define ACCEL_LOAD_ANSWER_H

#include "accel-load/load.h"
#include "base/buf.h"
#include "base/text.h"
#include "wire/http1/http1.h"

#define ANSWER_HEAD_MAX (16u << 10) /* a longer head is BAD */

enum answer_event {
	ANSWER_MORE, /* more bytes are needed; what is left of the input comes again, with them */
	ANSWER_HEAD, /* status, first, total and drop are known */
	ANSWER_BODY, /* a part of the body, a slice of the input */
	ANSWER_END,  /* keep: the connection can carry another request */
	ANSWER_BAD,  /* why */
};

struct answer {
	const struct load_protocol *protocol;
	bool head_only; /* the request was HEAD */
	bool keep;
	bool until_eof; /* the end of the connection is the end of the body */
	uint8_t phase;  /* the protocol's */
	int status;
	uint64_t first; /* offset of the body's first byte in the file: of Content-Range, else 0 */
	int64_t total;  /* length of the file: of Content-Range or Content-Length; -1: unknown */
	uint64_t drop;  /* this many of the next bytes are body and may be dropped unseen */
	const char *why;
	struct http1_chunked chunked; /* http.c */
	void *state;                  /* of another protocol; kept by answer_begin() */
};

struct url;

struct load_protocol {
	const char *name;
	/* Appends a request.  False: it cannot be one of this protocol. */
	bool (*request)(const struct load_conf *, const struct url *, const struct request *,
	    struct buf *);
	/* The next event; removes its bytes from *in. */
	enum answer_event (*take)(struct answer *, struct text *in, struct text *body);
	void (*dropped)(struct answer *, uint64_t n); /* n <= drop bytes were dropped */
	/* The stream has ended within this answer: END (until_eof) or BAD. */
	enum answer_event (*eof)(struct answer *);
	/* The value of a field of the head, until END; .p NULL: it is not there.  NULL: heads are
	 * not kept. */
	struct text (*field)(const struct answer *, struct text name);
	void (*free)(struct answer *); /* frees state; NULL: there is none */
};

extern const struct load_protocol load_http, load_fastcgi;

static inline void
answer_begin(struct answer *a, const struct load_protocol *p, bool head_only)
{
	void *state = a->state;

	*a = (struct answer){ .protocol = p, .head_only = head_only, .state = state, .total = -1 };
}

#endif
