/* io/http2/batch.h -- inside io/http2/ only: the frames that go out with the next send.
 *
 *   http2_batch_open()  --> put(), put_in_place() while has_room() --> a send of iov
 *                       --> skip() what the socket took --> keep_rest() --> free()
 *
 * Frames and small pieces lie in out.  Large pieces of bodies stay where they lie, until the call
 * that collects and sends them returns: keep_rest() copies what the socket did not take.
 *
 * Owner    the batch has out, a window of the loop or memory of its own.
 * Thread   the loop's.
 */
#ifndef IO_HTTP2_BATCH_H
#define IO_HTTP2_BATCH_H

#include "io/transport.h"

/* Bytes of a batch at most, less than a long send (IO_LONG_SEND).  What the socket does not take of
 * it is copied, so after that the next one is small. */
#define HTTP2_BATCH (112u << 10)
/* ... over TLS: with the last frame it is what one send takes. */
#define HTTP2_BATCH_TLS (IO_TLS_SEND - (16u << 10))
#define HTTP2_BATCH_MIN (16u << 10)
#define HTTP2_PIECES    64 /* of a batch */

struct http2_batch {
	struct iovec iov[HTTP2_PIECES];
	int niov;
	bool out_owned; /* out is from malloc */
	char *out;      /* NULL: the batch is not open */
	size_t out_n, out_size;
	size_t left;        /* bytes of iov */
	size_t limit, most; /* has_room() below the limit; see http2_batch_grow(), _shrink() */
};

void http2_batch_init(struct http2_batch *, size_t most);
bool http2_batch_open(struct http2_batch *, struct io *); /* false: no memory */
void http2_batch_free(struct http2_batch *, struct io *); /* drops what is left */

bool http2_batch_has_room(const struct http2_batch *); /* for a frame */
void http2_batch_put(struct http2_batch *, const void *, size_t);
void http2_batch_put_in_place(struct http2_batch *, const void *, size_t);

/* The socket took n bytes. */
void http2_batch_skip(struct http2_batch *, size_t n);
/* The socket may be full for minutes: what is left moves to memory of its size, and bodies are
 * their owners' again.  False: no memory, and nothing has changed. */
bool http2_batch_keep_rest(struct http2_batch *, struct io *);
/* The next batch: the socket took all of this one, or is full. */
void http2_batch_grow(struct http2_batch *);
void http2_batch_shrink(struct http2_batch *);

#endif
