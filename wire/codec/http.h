/* wire/codec/http.h -- replies of HTTP/1.x (RFC 9112), for the codecs whose applications send them:
 * http, uwsgi.  Pure, as codec.h says; the exchange owns the state. */
#ifndef WIRE_HTTP_H
#define WIRE_HTTP_H

#include "wire/codec/codec.h"
#include "wire/http1/http1.h"

struct http {
	/* of the request */
	bool keep, head, chunks_out, upgrade;
	/* The application says HTTP/2.0 if the client does, and frames are as ever. */
	bool echoes;
	/* of the reply */
	uint8_t phase, minor;
	bool interim; /* a 1xx came */
	bool cr;      /* the last byte of the status line */
	bool reuse;
	bool untrailed;        /* no field after the body may pass */
	uint16_t status, line; /* received bytes of the status line */
	uint64_t left;         /* P_BODY */
	struct http1_chunked chunked;
};

/* reply and eof of struct proto; state is a struct http. */
void http_reply(void *state, struct reply_head *, struct text *in, struct buf *out,
    struct proto_event *);
void http_eof(void *state, struct proto_event *);

#endif
