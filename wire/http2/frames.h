/* wire/http2/frames.h -- what frames of a client say of each other, and nghttp2 does not mind: it
 * skips frames of a stream that the client has ended, streams that go back in number, and, with
 * SETTINGS_NO_RFC7540_PRIORITIES, broken PRIORITY frames.  RFC 9113 5.1, 5.1.1 and 6.3, RFC 7540
 * 5.3.1.
 *
 * Pure; any split of the bytes gives the same answer.  Start with http2_frames_init().
 */
#ifndef WIRE_HTTP2_FRAMES_H
#define WIRE_HTTP2_FRAMES_H

#include "base/text.h"

struct http2_frames {
	uint32_t skip;     /* bytes until the next head */
	uint32_t last;     /* the highest stream so far */
	uint64_t began;    /* bits: last, last - 2, ... */
	uint64_t said_all; /* ... of these the client has ended */
	unsigned unknown;  /* frames of types that have no meaning; the caller resets it */
	uint8_t n;         /* of head */
	uint8_t head[13];  /* and the first four bytes of a PRIORITY */
};

enum http2_wrong { HTTP2_RIGHT, HTTP2_WRONG, HTTP2_WRONG_STATE };

void http2_frames_init(struct http2_frames *); /* the preface comes first */
/* HTTP2_WRONG: a PROTOCOL_ERROR, HTTP2_WRONG_STATE: STREAM_CLOSED; *why is a constant text. */
enum http2_wrong http2_frames_look(struct http2_frames *, struct text, const char **why);

#endif
