/* t/bench/hostile/http2.h -- HTTP/2 for the attacks: frames, and heads in HPACK without Huffman
 * and without a table (RFC 9113, RFC 7541).
 *
 *   http2.c         writes frames, and counts the frames that a server sends
 *   http2_attack.c  what the attacks h2-* send
 */
#ifndef HOSTILE_HTTP2_H
#define HOSTILE_HTTP2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H2_CODES 14 /* error codes of RFC 9113; the last counter is for all others */

enum h2_type {
	H2_DATA,
	H2_HEADERS,
	H2_PRIORITY,
	H2_RST_STREAM,
	H2_SETTINGS,
	H2_PUSH_PROMISE,
	H2_PING,
	H2_GOAWAY,
	H2_WINDOW_UPDATE,
	H2_CONTINUATION,
	H2_PRIORITY_UPDATE = 16
};

#define H2_ACK         1
#define H2_END_STREAM  1
#define H2_END_HEADERS 4

enum h2_setting { H2_TABLE_SIZE = 1, H2_WINDOW = 4 };

struct peer;

/* A piece that is being written. */
struct h2_out {
	char *at, *end;
	unsigned frames, requests;
};

/* What has come of the frame that the server sends. */
struct h2_in {
	unsigned char seen[17]; /* head, and the first bytes of the payload */
	unsigned have;
	uint32_t left; /* bytes of the payload */
	bool settings; /* the SETTINGS of the server have come */
	bool acked;
};

/* What a server said, by error code. */
struct h2_said {
	uint64_t frames, goaway[H2_CODES + 1], reset[H2_CODES + 1];
};

extern const char *const h2_codes[H2_CODES + 1];

static inline size_t
h2_room(const struct h2_out *o)
{
	return ((size_t)(o->end - o->at));
}

void h2_bytes(struct h2_out *, const void *, size_t);
void h2_u32(struct h2_out *, uint32_t);
void h2_frame(struct h2_out *, unsigned type, unsigned flags, uint32_t stream, size_t len);
void h2_setting(struct h2_out *, enum h2_setting, uint32_t value); /* a frame of its own */
void h2_window(struct h2_out *, uint32_t stream, uint32_t more);
void h2_reset(struct h2_out *, uint32_t stream, uint32_t code);

/* A literal field without indexing.  index: of its name in the static table, or 0 with a name. */
void h2_field(struct h2_out *, unsigned index, const char *name, const char *value);
/* The fields of a request, without a frame. */
void h2_fields(struct h2_out *, bool post, const char *path);
/* A request in one HEADERS frame.  Counts it. */
void h2_request(struct h2_out *, uint32_t stream, bool post, const char *path, unsigned flags);

/* Counts frames, codes and replies that came to this peer. */
void h2_read(struct peer *, const unsigned char *, size_t);

/* next() of all attacks h2-*: preface, acknowledgement of settings, then frames() of the attack. */
size_t h2_next(struct peer *, char *out, unsigned *requests);

#endif
