/* wire/codec.h -- what a wire protocol is: bytes to events, events to bytes, nothing else.
 *
 * Pure: no socket, no clock, no log.  Any cut of the same bytes gives the same events (BODY and
 * NOTE may come in other pieces).  An exchange owns one state of .size zeroed bytes; it holds no
 * memory of its own.
 *
 * End of the stream: eof() follows the last byte.  It is called at most once, and only if the
 * stream had a byte and reply() gave no END, REFUSED or BAD.  An application that hangs up
 * without a byte, or resets the connection, fails in every protocol; no codec is asked.
 */
#ifndef WIRE_CODEC_H
#define WIRE_CODEC_H

#include "base/buf.h"
#include "wire/message.h"
#include "wire/headers.h"

#define PROTO_REQUEST_MAX (256u << 10) /* a request head on the wire */

struct proto_event {
	enum proto_kind {
		PROTO_MORE,    /* the input is spent */
		PROTO_HEAD,    /* the reply_head is complete */
		PROTO_BODY,    /* bytes: of the reply's body, a slice of the input */
		PROTO_NOTE,    /* bytes: for the error log, a slice of the input */
		PROTO_END,     /* the reply is complete; nothing follows */
		PROTO_REFUSED, /* why: not executed, may be tried elsewhere */
		PROTO_BAD,     /* why: not this protocol, or not this request */
	} kind;
	bool reuse;            /* END: the socket is fit for another request */
	struct text bytes;
	const char *why;
};

struct proto {
	const char *name; /* value of proxy-core.protocol */
	const char *doc;  /* its line in the manual */
	size_t size;
	bool once;        /* a socket carries one request; keep is never asked for */
	/* Appends the request without its body; keep: the application shall leave the socket open.
	 * -E2BIG, -ENOMEM, or -EINVAL: a value holds what this protocol cannot carry. */
	int (*request)(void *state, const struct proxy_request *, bool keep, struct buf *out);
	void (*body)(void *state, struct text bytes, struct buf *out); /* a piece, not empty */
	void (*body_end)(void *state, struct buf *out);
	/* Takes bytes off *in up to and with the next event; to be called again, if need be with an
	 * empty *in, until MORE, END, REFUSED or BAD. */
	void (*reply)(void *state, struct reply_head *, struct text *in, struct proto_event *);
	void (*eof)(void *state, struct proto_event *); /* END or BAD */
};

extern const struct proto *const protos[]; /* codecs.def, NULL at the end */
const struct proto *proto_find(const char *name);

#endif
