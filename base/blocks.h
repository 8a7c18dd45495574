/* base/blocks.h -- memory of one size that is taken and given back often.
 *
 * calloc(3) of glibc 2.36 does not use the memory that was freed last, and costs four times as much
 * as malloc(3).
 * Owner    who declares it; blocks_end() frees what is kept.
 * Thread   one.
 */
#ifndef BASE_BLOCKS_H
#define BASE_BLOCKS_H

#include <stddef.h>

struct blocks {
	void *first;
	unsigned n;
};

#define BLOCKS_KEEP 256u

/* The memory is all zero.  size: always the same, at least that of a pointer.  NULL: no memory. */
void *blocks_take(struct blocks *, size_t size);
void blocks_give(struct blocks *, void *);       /* keeps up to BLOCKS_KEEP */
void blocks_end(struct blocks *, unsigned keep); /* frees all but that many */

#endif
