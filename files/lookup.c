/* files/lookup.c -- see lookup.h */
#include "files/lookup.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "io/io.h"

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24 /* not in the headers of glibc before 2.36 */
#endif

#define PAGE 4096u
#define MANY 10000u /* entries from which on the pages of the table are given back */

/* ---- the table */

int
lookup_init(struct lookup_table *t, struct io *io, size_t names,
    void (*free_entry)(struct lookup *))
{
	size_t n = 1024;

	while (n < names && n < (1u << 20))
		n *= 2;
	*t = (struct lookup_table){ .io = io, .mask = n - 1, .free = free_entry };
	t->slot = calloc(n, sizeof(*t->slot));
	return (t->slot != NULL ? 0 : -ENOMEM);
}

void
lookup_fini(struct lookup_table *t)
{
	size_t i;

	for (i = 0; i <= t->mask; i++)
		while (t->slot[i] != NULL)
			lookup_remove(t->slot[i]);
	free(t->slot);
}

/* Each slot of an empty table is NULL, as new pages are.  A table of 10^6 names has 8 MiB. */
static void
give_pages_back(struct lookup_table *t)
{
	uintptr_t from = ((uintptr_t)t->slot + PAGE - 1) / PAGE * PAGE;
	uintptr_t to = (uintptr_t)(t->slot + t->mask + 1) / PAGE * PAGE;

	/* the first fails for memory that is locked, the second is unknown before Linux 5.18 */
	if (t->most > MANY && to > from && madvise((void *)from, to - from, MADV_DONTNEED) != 0)
		(void)madvise((void *)from, to - from, MADV_DONTNEED_LOCKED);
	t->most = 0;
}

struct lookup *
lookup_find(const struct lookup_table *t, const struct file_scope *scope, struct text path,
    uint64_t hash)
{
	struct lookup *l;

	for (l = t->slot[hash & t->mask]; l != NULL; l = l->chain)
		if (l->hash == hash && l->scope == scope && text_eq(l->path, path))
			return (l);
	return (NULL);
}

struct lookup *
lookup_new(struct lookup_table *t, size_t size, struct file_scope *scope, struct text path,
    uint64_t hash)
{
	struct lookup *l = calloc(1, size + path.n + 1);
	char *copy;

	if (l == NULL)
		return (NULL);
	copy = (char *)l + size;
	memcpy(copy, path.p, path.n);
	l->path = (struct text){ copy, path.n };
	l->scope = scope;
	l->hash = hash;
	l->table = t;
	l->refs = 1;
	list_init(&l->link);
	list_init(&l->waiters);
	return (l);
}

void
lookup_add(struct lookup *l)
{
	struct lookup **slot = &l->table->slot[l->hash & l->table->mask];

	l->chain = *slot;
	*slot = l;
	l->listed = true;
	if (++l->table->n > l->table->most)
		l->table->most = l->table->n;
}

static void
unkeep(struct lookup *l)
{
	if (l->in == NULL)
		return;
	list_del(&l->link);
	l->in->n--;
	l->in->bytes -= l->bytes;
	l->in = NULL;
}

void
lookup_remove(struct lookup *l)
{
	struct lookup **pp;

	if (!l->listed)
		return;
	for (pp = &l->table->slot[l->hash & l->table->mask]; *pp != l; pp = &(*pp)->chain)
		;
	*pp = l->chain;
	l->listed = false;
	if (--l->table->n == 0)
		give_pages_back(l->table);
	unkeep(l);
	lookup_put(l);
}

void
lookup_put(struct lookup *l)
{
	if (--l->refs != 0)
		return;
	must(!l->listed && list_empty(&l->waiters));
	l->table->free(l);
}

/* ---- waiters */

void
lookup_join(struct lookup *l, struct lookup_wait *w)
{
	w->lookup = l;
	list_add_tail(&l->waiters, &w->link);
}

bool
lookup_leave(struct lookup_wait *w)
{
	struct lookup *l = w->lookup;

	if (l == NULL)
		return (false);
	w->lookup = NULL;
	list_del(&w->link);
	return (list_empty(&l->waiters));
}

void
lookup_move_waiters(struct lookup *to, struct lookup *from)
{
	struct list *l;

	while ((l = list_pop(&from->waiters)) != NULL)
		lookup_join(to, list_entry(l, struct lookup_wait, link));
}

void
lookup_tell(struct lookup *of, struct lookup *answer)
{
	struct list waiting, *l;

	list_init(&waiting);
	list_splice_tail(&waiting, &of->waiters);
	while ((l = list_pop(&waiting)) != NULL) {
		struct lookup_wait *w = list_entry(l, struct lookup_wait, link);

		w->lookup = NULL;
		w->done(w, lookup_ref(answer));
	}
}

/* ---- eviction */

void
lookup_list_init(struct lookup_list *in)
{
	list_init(&in->head);
	in->n = 0;
	in->bytes = 0;
}

void
lookup_keep(struct lookup *l, struct lookup_list *in, uint64_t bytes)
{
	if (!l->listed)
		return;
	unkeep(l);
	list_add_tail(&in->head, &l->link);
	in->n++;
	in->bytes += l->bytes = bytes;
	l->in = in;
}

struct lookup *
lookup_oldest(const struct lookup_list *in)
{
	return (list_empty(&in->head) ? NULL : list_entry(in->head.next, struct lookup, link));
}

struct lookup *
lookup_surplus(const struct lookup_list *in, unsigned n, uint64_t bytes)
{
	return (in->n > n || in->bytes > bytes ? lookup_oldest(in) : NULL);
}

/* ---- freshness */

uint64_t
lookup_age(const struct lookup *l)
{
	uint64_t now = io_now(l->table->io);

	/* A thread may have checked it after this round began. */
	return (now > l->checked_ns ? now - l->checked_ns : 0);
}

bool
lookup_is_permanent(int err)
{
	switch (-err) {
	case 0:
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case EACCES:
	case EPERM:
	case ELOOP:
	case EXDEV:
	case ENAMETOOLONG: return (true);
	default: return (false);
	}
}
