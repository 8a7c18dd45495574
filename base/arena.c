/* base/arena.c -- memory of one request: a lent block first, then blocks from malloc(). */
#include <stdlib.h>
#include "base/arena.h"

#define ALIGN      16
#define BLOCK_SIZE 4096

struct arena_block {
	struct arena_block *next;
	_Alignas(ALIGN) char data[];
};

static char *
align_up(char *p)
{
	return (p + (-(uintptr_t)p & (ALIGN - 1)));
}

static void
arena_use_lent(struct arena *a)
{
	a->p = a->lent;
	a->end = a->lent != NULL ? a->lent + a->lent_size : NULL;
	a->used = 0;
	if (a->p != NULL && align_up(a->p) <= a->end)
		a->p = align_up(a->p);
	else
		a->p = a->end;
}

void
arena_init(struct arena *a, void *lent, size_t lent_size, size_t max)
{
	*a = (struct arena){ .lent = lent, .lent_size = lent_size, .max = max };
	arena_use_lent(a);
}

void
arena_reset(struct arena *a)
{
	struct arena_block *b;

	while ((b = a->more) != NULL) {
		a->more = b->next;
		free(b);
	}
	arena_use_lent(a);
}

static bool
arena_block(struct arena *a, size_t n)
{
	size_t size = n > BLOCK_SIZE ? n : BLOCK_SIZE;
	struct arena_block *b;

	b = malloc(sizeof(*b) + size);
	if (b == NULL)
		return (false);
	b->next = a->more;
	a->more = b;
	a->p = b->data;
	a->end = b->data + size;
	return (true);
}

void *
arena_get(struct arena *a, size_t n)
{
	void *p;

	if (n > SIZE_MAX / 2)
		return (NULL);
	n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (a->max != 0 && (n > a->max || a->used > a->max - n))
		return (NULL);
	if (a->p == NULL || n > (size_t)(a->end - a->p))
		if (!arena_block(a, n))
			return (NULL);
	p = a->p;
	a->p += n;
	a->used += n;
	return (p);
}

struct text
arena_join(struct arena *a, struct text t, struct text u)
{
	char *p = t.n <= SIZE_MAX / 4 && u.n <= SIZE_MAX / 4 ? arena_get(a, t.n + u.n + 1) : NULL;

	if (p == NULL)
		return (TEXT_NONE);
	if (t.n > 0)
		memcpy(p, t.p, t.n);
	if (u.n > 0)
		memcpy(p + t.n, u.p, u.n);
	p[t.n + u.n] = '\0';
	return ((struct text){ p, t.n + u.n });
}

struct text
arena_text(struct arena *a, struct text t)
{
	return (arena_join(a, t, TEXT_NONE));
}

struct text
arena_take(struct arena *a, struct buf *b)
{
	struct text t = b->failed ? TEXT_NONE : arena_text(a, buf_as_text(b));

	buf_free(b);
	return (t);
}
