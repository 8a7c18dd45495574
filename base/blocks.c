/* base/blocks.c -- see blocks.h */
#include "base/blocks.h"

#include <stdlib.h>
#include <string.h>

void *
blocks_take(struct blocks *b, size_t size)
{
	void *p = b->first;

	if (p == NULL)
		return (calloc(1, size));
	b->first = *(void **)p;
	b->n--;
	return (memset(p, 0, size));
}

void
blocks_give(struct blocks *b, void *p)
{
	if (b->n >= BLOCKS_KEEP) {
		free(p);
		return;
	}
	*(void **)p = b->first;
	b->first = p;
	b->n++;
}

void
blocks_end(struct blocks *b, unsigned keep)
{
	void *p;

	while (b->n > keep) {
		p = b->first;
		b->first = *(void **)p;
		b->n--;
		free(p);
	}
}
