/* base/arena.h -- memory that lives as long as one request and is freed at once.
 *
 * The caller may lend the first block (a slab), so that small requests allocate nothing.
 * Bounds   max bytes in all (0: no bound); get functions return NULL above that, or without memory.
 * Thread   one at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/buf.h"

struct arena_block;
struct arena {
	char *p, *end;            /* free part of the current block */
	struct arena_block *more; /* blocks from malloc, newest first */
	size_t used, max;
	char *lent;
	size_t lent_size;
};

void arena_init(struct arena *, void *lent, size_t lent_size, size_t max);
void arena_reset(struct arena *);          /* frees all blocks except the lent one */
void *arena_get(struct arena *, size_t n); /* aligned to 16, not cleared */
/* Copies with a NUL at their end; .p NULL: full. */
struct text arena_text(struct arena *, struct text t);
struct text arena_join(struct arena *, struct text t, struct text u); /* u follows t */
/* Copies what is in the buffer, and frees the buffer.  .p NULL: no memory, now or while the buffer
 * was filled. */
struct text arena_take(struct arena *, struct buf *);

#endif
