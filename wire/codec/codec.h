/* wire/codec/codec.h -- the interface of a wire protocol: bytes to events, events to bytes, nothing
 * else.
 *
 *   to the application     request, body, body_end, answers of reply --> out
 *   from the application   in --> reply, eof --> INTERIM, HEAD, BODY, NOTE, END, REFUSED, BAD
 *
 * Pure: no socket, no clock, no log.  Any split of the same bytes gives the same events (BODY and
 * NOTE may come in other pieces).  An exchange owns one state of .size zeroed bytes; the state
 * holds no memory of its own.
 *
 * Heads    reply_head_feed() collects the fields as received.  The codec may read and drop some of
 *          them (Transfer-Encoding) and set the status.  Then reply_head_sort() sorts them.
 * Credit   body() gets at most credit() bytes.  reply() may have raised it, so the caller asks
 *          again after each reply().
 * End      eof() follows the last byte of the stream, at most once, and only if the stream had a
 *          byte and reply() gave no END, REFUSED or BAD.  An application that closes without a
 *          byte, or resets the connection, is a failure in every protocol.
 */
#ifndef WIRE_CODEC_H
#define WIRE_CODEC_H

#include "base/buf.h"
#include "wire/codec/message.h"
#include "wire/http1/headers.h"

#define PROTO_REQUEST_MAX (256u << 10) /* a request head on the wire */

struct proto_event {
	enum proto_kind {
		PROTO_MORE,    /* the input is used up */
		PROTO_INTERIM, /* the reply_head is a sorted 1xx, not 101; another head follows */
		PROTO_HEAD,    /* the reply_head is complete */
		PROTO_BODY,    /* bytes: a part of the reply's body, a slice of the input */
		PROTO_NOTE,    /* bytes: for the error log, a slice of the input */
		PROTO_END,     /* the reply is complete; nothing follows */
		PROTO_REFUSED, /* why: not executed, another backend may be tried */
		PROTO_BAD,     /* why: a violation of the protocol */
	} kind;
	bool reuse;        /* END: the socket can carry another request */
	bool trailers;     /* END: the reply_head has fields that follow the body, sorted */
	unsigned messages; /* read by this call; many of them may make no event */
	struct text bytes;
	const char *why;
};

struct proto {
	const char *name; /* value of proxy-core.protocol */
	const char *doc;  /* its line in the manual */
	size_t size;
	bool once;         /* a socket carries one request; keep is always false */
	bool unsized_body; /* can send a body whose length is not known before its end */
	bool secret;       /* sends proxy_request.secret */
	bool ping;         /* knows proxy_request.ping */
	bool cuts_params;  /* applications look for the path without the ";..." of its segments */
	/* Appends the request without its body.  keep: asks the application to leave the socket
	 * open. -E2BIG, -ENOMEM, or -EINVAL: the protocol cannot carry a value. */
	int (*request)(void *state, const struct proxy_request *, bool keep, struct buf *out);
	/* bytes of the body that may be sent; NULL: any number */
	size_t (*credit)(const void *state);
	void (*body)(void *state, struct text bytes, struct buf *out); /* bytes: not empty */
	void (*body_end)(void *state, struct buf *out);
	/* Removes bytes from *in up to and including the next event.  Called again, even with an
	 * empty *in, until MORE, END, REFUSED or BAD. out: answers for the application.
	 */
	void (*reply)(void *state, struct reply_head *, struct text *in, struct buf *out,
	    struct proto_event *);
	void (*eof)(void *state, struct proto_event *); /* the event is END or BAD */
};

static inline void
proto_bad(struct proto_event *ev, const char *why)
{
	ev->kind = PROTO_BAD;
	ev->why = why;
}

/* Moves bytes from *in to dst, which has *have of them; true if there are want bytes. */
static inline bool
proto_collect(uint8_t *dst, uint8_t *have, size_t want, struct text *in)
{
	struct text t = text_take(in, want - *have);

	if (t.n > 0)
		memcpy(dst + *have, t.p, t.n);
	*have = (uint8_t)(*have + t.n);
	return (*have == want);
}

extern const struct proto *const protos[]; /* from codecs.def; NULL at the end */
const struct proto *proto_find(const char *name);

#endif
