/* server/files/table.c -- entries, the table they are found in, and its bounds */
#include "server/files/impl.h"

#include <stdlib.h>

#include "base/must.h"

static struct stat_entry **
table_slot(struct stat_cache *sc, uint64_t hash)
{
	return (&sc->table[hash & sc->mask]);
}

uint64_t
scope_hash(const struct stat_scope *scope, struct text path)
{
	return (text_hash(path) + scope->id * 0x9e3779b97f4a7c15ull);
}

struct stat_entry *
entry_find(struct stat_cache *sc, const struct stat_scope *scope, struct text path, uint64_t hash)
{
	struct stat_entry *e;

	for (e = *table_slot(sc, hash); e != NULL; e = e->chain)
		if (e->hash == hash && e->scope == scope && text_eq(e->path, path))
			return (e);
	return (NULL);
}

struct stat_entry *
entry_new(struct stat_cache *sc, struct stat_scope *scope, struct text path, uint64_t hash)
{
	struct stat_entry *e;
	char *copy;

	e = calloc(1, sizeof(*e) + path.n + 1);
	if (e == NULL)
		return (NULL);
	copy = (char *)(e + 1);
	memcpy(copy, path.p, path.n);
	e->path = (struct text){copy, path.n};
	e->scope = scope != NULL ? stat_scope_ref(scope) : NULL;
	e->cache = sc;
	e->hash = hash;
	e->refs = 1;
	e->recheck_ms = STAT_RECHECK_MS;
	list_init(&e->lru);
	list_init(&e->waiters);
	list_init(&e->busy);
	return (e);
}

void
entry_hash(struct stat_entry *e)
{
	struct stat_entry **slot = table_slot(e->cache, e->hash);

	e->chain = *slot;
	*slot = e;
	e->hashed = true;
	e->cache->nfds += e->file != NULL;
	e->cache->nbytes += e->bytes != NULL ? e->size : 0;
}

/* Out of the table: nobody finds it any more; those who hold it go on. */
void
entry_detach(struct stat_entry *e)
{
	struct stat_cache *sc = e->cache;
	struct stat_entry **pp;

	if (!e->hashed)
		return;
	for (pp = table_slot(sc, e->hash); *pp != e; pp = &(*pp)->chain)
		;
	*pp = e->chain;
	e->hashed = false;
	sc->nfds -= e->file != NULL;
	sc->nbytes -= e->bytes != NULL ? e->size : 0;
	if (list_linked(&e->lru)) {
		list_del(&e->lru);
		if (e->err != 0)
			sc->nabsent--;
		else
			sc->nfiles--;
	}
	stat_put(e);
}

struct stat_entry *
stat_ref(struct stat_entry *e)
{
	e->refs++;
	return (e);
}

void
stat_put(struct stat_entry *e)
{
	if (e == NULL || --e->refs != 0)
		return;
	must(!e->hashed && list_empty(&e->waiters) && !list_linked(&e->busy));
	io_file_put(e->file);
	stat_scope_put(e->scope);
	free(e->memory);
	free(e);
}

struct stat_scope *
stat_scope_ref(struct stat_scope *scope)
{
	scope->refs++;
	return (scope);
}

void
stat_scope_put(struct stat_scope *scope)
{
	if (scope == NULL)
		return;
	must(scope->refs > 0);
	if (--scope->refs == 0 && scope->free != NULL)
		scope->free(scope);
}

/* ---- bounds */

static struct list *
lru_of(struct stat_entry *e)
{
	struct stat_cache *sc = e->cache;

	return (e->err != 0 ? &sc->absent : e->file != NULL ? &sc->open : &sc->kept);
}

static void
evict_first(struct stat_cache *sc, struct list *lru)
{
	entry_detach(list_entry(lru->next, struct stat_entry, lru));
	count(sc->counters, stat_evicted);
}

/* Of files with and without a descriptor, the list whose first was touched longer ago. */
static struct list *
oldest(struct stat_cache *sc)
{
	struct stat_entry *a = list_entry(sc->open.next, struct stat_entry, lru);
	struct stat_entry *b = list_entry(sc->kept.next, struct stat_entry, lru);

	if (list_empty(&sc->open))
		return (&sc->kept);
	return (list_empty(&sc->kept) || a->checked_ns <= b->checked_ns ? &sc->open : &sc->kept);
}

/* Each bound at the cost of those who use it: a walk through large files pushes no small ones out. */
void
cache_keep_bounds(struct stat_cache *sc)
{
	while (sc->nfds > sc->lim.fds && !list_empty(&sc->open))
		evict_first(sc, &sc->open);
	while (sc->nbytes > sc->lim.bytes && !list_empty(&sc->kept))
		evict_first(sc, &sc->kept);
	while (sc->nfiles > sc->lim.entries)
		evict_first(sc, oldest(sc));
	while (sc->nabsent > sc->lim.entries / 4 + 16)
		evict_first(sc, &sc->absent);
}

/* Descriptors are short: let go of half of ours. */
void
cache_shed_descriptors(struct stat_cache *sc)
{
	unsigned aim = sc->nfds / 2;

	while (sc->nfds > aim && !list_empty(&sc->open))
		evict_first(sc, &sc->open);
}

void
entry_touch(struct stat_entry *e)
{
	struct stat_cache *sc = e->cache;

	if (!e->hashed)
		return;
	if (!list_linked(&e->lru)) {
		if (e->err != 0)
			sc->nabsent++;
		else
			sc->nfiles++;
	}
	list_del(&e->lru);
	list_add_tail(lru_of(e), &e->lru);
	if (e->file != NULL)
		cache_time_idle(sc, sc->lim.idle_ms);
}
