/* wire/http2/request.h -- the fields of a request of HTTP/2 become the head that the parser of
 * HTTP/1 reads (RFC 9113 8.3.1).
 *
 *   :method GET  :path /a  :authority b  accept x        cookie c, cookie d
 *   --> GET /a HTTP/2.0 CRLF  Host: b CRLF  accept: x CRLF  cookie: c; d CRLF CRLF
 *
 * So a request means the same in both versions, and everything that judges a head is one.
 *
 * Owner    the holder; http2_request_free().  The text of http2_request_end() is valid until the
 *          next call.
 * Pure     no clock, no socket, no library.
 */
#ifndef WIRE_HTTP2_REQUEST_H
#define WIRE_HTTP2_REQUEST_H

#include "base/buf.h"

enum http2_pseudo {
	PSEUDO_METHOD,
	PSEUDO_PATH,
	PSEUDO_AUTHORITY,
	PSEUDO_SCHEME,
	PSEUDO_PROTOCOL, /* RFC 8441 */
	PSEUDOS
};

struct http2_request {
	struct buf head, cookies;
	struct buf values; /* of the fields before the line */
	struct {
		size_t at, n;
	} pseudo[PSEUDOS];
	unsigned has; /* bit of enum http2_pseudo */
	bool begun;   /* the line is in head */
	bool has_length;
	size_t max; /* bytes of the head */
	size_t cut; /* bytes that were not taken because of it */
};

void http2_request_init(struct http2_request *, size_t max);
void http2_request_free(struct http2_request *);
void http2_request_begin(struct http2_request *);

/* NULL, or why the request is malformed, a constant text.  Bytes beyond max are counted in cut, and
 * the head is then one that http1_head() refuses as too long. */
const char *http2_request_field(struct http2_request *, struct text name, struct text value);

/* body: one follows.  Without a length it comes in chunks.  *head: TEXT_NONE without memory. */
const char *http2_request_end(struct http2_request *, bool body, struct text *head);

/* The request asks for a tunnel (RFC 8441): its bytes have no frames. */
bool http2_request_is_tunnel(const struct http2_request *);
bool http2_request_is_head(const struct http2_request *);
/* After http2_request_end(): the body comes in chunks. */
bool http2_request_is_chunked(const struct http2_request *, bool body);

#endif
