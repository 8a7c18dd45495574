/* io/body.h -- the bytes left to send on one socket: memory and ranges of files, in order.
 *
 *   +------------+   +-------------------+   +-----------+
 *   | copied     |   | lent, with owner  |   | file      |
 *   | head bytes |   | cached small body |   | off, len  |
 *   +------------+   +-------------------+   +-----------+
 *
 * Owner    copied bytes are in chunks of the body (IO_CHUNK bytes, recycled per loop); lent bytes
 *          are released by release(owner) when they are sent or dropped; a file piece holds a
 *          reference.
 * Errors   false if memory is short or the body has BODY_PIECES pieces already.  Nothing was taken
 *          then, and bytes to lend are still the caller's.  An empty piece is released at once.
 */
#ifndef IO_BODY_H
#define IO_BODY_H

#include "base/text.h"

#define IO_CHUNK    16384u
#define BODY_PIECES 64u /* a multipart reply of 16 ranges needs 33 */

struct body_piece {
	struct io_file *file; /* NULL: memory */
	const char *p;        /* memory */
	uint64_t off, len;    /* offset in the file; bytes left */
	void (*release)(void *owner);
	void *owner;
};

struct io;
struct io_file;
struct iovec;
struct body_chunk;
struct body {
	struct io *io;
	struct body_piece *piece; /* ring of cap entries (8 inline, more from malloc) */
	uint16_t first, n, cap;
	struct body_chunk *chunks;
	uint64_t left; /* bytes */
	struct body_piece inl[8];
};

void body_init(struct body *, struct io *);
void body_clear(struct body *); /* releases everything; the body can be used again */
bool body_copy(struct body *, struct text t);
/* Space for n contiguous bytes at the end.  Write there, then call body_wrote() with the number of
 * bytes.  NULL: no memory, or n > IO_CHUNK. */
char *body_room(struct body *, size_t n);
void body_wrote(struct body *, size_t n);
bool body_lend(struct body *, struct text t, void (*release)(void *), void *owner);
bool body_file(struct body *, struct io_file *, uint64_t off, uint64_t len);

/* Copies n bytes of memory after the first skip bytes; they are there. */
void body_peek(const struct body *, uint64_t skip, char *dst, size_t n);

/* For the sender: the memory at the front as an iovec (at most max entries; *more: bytes
 * follow), and removing n sent bytes from the front. */
int body_iov(const struct body *, struct iovec *iov, int max, bool *more);
void body_sent(struct body *, uint64_t n);

static inline bool
body_empty(const struct body *b)
{
	return (b->n == 0);
}

static inline struct body_piece *
body_front(struct body *b)
{
	return (b->n != 0 ? &b->piece[b->first] : NULL);
}

#endif
