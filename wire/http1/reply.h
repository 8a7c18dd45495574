/* wire/http1/reply.h -- the head of a reply as a client reads it: status, and where the body ends.
 *
 * Pure.  For programs that pass nothing on: a reply for a client goes through wire/codec/http.h,
 * which collects all fields.  Both refuse the same heads, because a reply has one meaning (see
 * wire/codec/http.c).
 */
#ifndef WIRE_HTTP1_REPLY_H
#define WIRE_HTTP1_REPLY_H

#include "wire/http1/http1.h"

struct http1_reply {
	int status;
	uint8_t minor; /* HTTP/1.minor */
	bool keep_alive;
	bool chunked;
	int64_t content_length; /* -1: none */
	/* Content-Range: bytes FIRST-LAST/TOTAL; -1: unknown */
	int64_t first, total;
};

/* Reads one head from the front of in, which is at least as long as *used after PARSE_DONE.
 * PARSE_BAD: *why.  PARSE_MORE: call it again with more bytes; nothing is kept. */
enum parse http1_reply(struct text in, struct http1_reply *, size_t *used, const char **why);

/* A value of Content-Range, "bytes 0-99/1234".  A star for the total or the range leaves it as it
 * is. */
void http1_content_range(struct text value, int64_t *first, int64_t *total);

#endif
