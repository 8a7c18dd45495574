/* server/files/stat.c -- look-ups and their answers */
#include "server/files/impl.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

static struct stat_entry *
hit(struct stat_cache *sc, struct stat_entry *e)
{
	e->in_demand = true;
	if (e->err != 0)
		count(sc->counters, stat_absent_hits);
	else
		count(sc->counters, stat_hits);
	return (stat_ref(e));
}

/* The head that was prepared and the bytes that a descriptor gives now belong together.  A look that never waits, once a round of
 * the loop; bytes in memory need none. */
static bool
is_stale(struct stat_cache *sc, struct stat_entry *e)
{
	if (e->file == NULL || e->file->stale || e->looked_ns == io_now(sc->io))
		return (e->file != NULL && e->file->stale);
	e->looked_ns = io_now(sc->io);
	return (io_file_look(e->file) != 0);
}

static struct stat_entry *
lookup_ready(struct stat_cache *sc, struct stat_entry *e, struct stat_wait *w)
{
	uint64_t age = entry_age(e);
	bool stale = is_stale(sc, e);

	if (age < sc->fresh_ns && !stale) {
		if (age > e->recheck_ms * NS_PER_MS && !e->rechecking)
			entry_recheck(e, true);
		return (hit(sc, e));
	}
	if (e->rechecking && e->trusted && !stale) {
		count(sc->counters, stat_overdue);
		return (hit(sc, e));
	}
	if (w == NULL)
		return (NULL);
	count(sc->counters, stat_joins);
	entry_add_waiter(e, w);
	if (e->rechecking) {
		io_join(sc->io, &e->op, w->client);
	} else {
		e->client = w->client;
		entry_recheck(e, false);
	}
	return (NULL);
}

struct stat_entry *
stat_lookup(struct stat_cache *sc, struct stat_scope *scope, struct text path, struct stat_wait *w)
{
	uint64_t hash = scope_hash(scope, path);
	struct stat_entry *e = entry_find(sc, scope, path, hash);

	if (e != NULL && e->stage == ST_READY)
		return (lookup_ready(sc, e, w));
	if (w == NULL)
		return (NULL);
	if (e != NULL) {
		count(sc->counters, stat_joins);
		entry_add_waiter(e, w);
		io_join(sc->io, &e->op, w->client);
		return (NULL);
	}
	e = entry_new(sc, scope, path, hash);
	if (e == NULL)
		return (stat_ref(sc->no_memory));
	count(sc->counters, stat_misses);
	entry_hash(e);
	e->client = w->client;
	e->data = w->data;
	entry_add_waiter(e, w);
	entry_load(e);
	return (NULL);
}

/* The last one has gone before its turn came: what is looked up for nobody only makes others wait.  (If a thread is at it
 * already the result is kept, for the client that asks again.) */
static void
leave_queue(struct stat_entry *e)
{
	if (e->stage == ST_LOADING && list_empty(&e->waiters))
		op_withdraw(e->cache->io, &e->op);
}

void
stat_cancel(struct stat_wait *w)
{
	struct stat_entry *e = w->entry;

	if (e == NULL)
		return;
	w->entry = NULL;
	list_del(&w->link);
	leave_queue(e);
}

/* ---- answers */

bool
err_is_shortage(int err)
{
	return (err == -EMFILE || err == -ENFILE);
}

void
entry_add_waiter(struct stat_entry *e, struct stat_wait *w)
{
	w->entry = e;
	list_add_tail(&e->waiters, &w->link);
}

void
entry_move_waiters(struct stat_entry *to, struct stat_entry *from)
{
	struct list *l;

	while ((l = list_pop(&from->waiters)) != NULL)
		entry_add_waiter(to, list_entry(l, struct stat_wait, link));
}

/* Each gets a reference to the answer: the entry it waits for, or one that stands in. */
void
entry_tell(struct stat_entry *e, struct stat_entry *answer)
{
	struct list waiting, *l;

	list_init(&waiting);
	list_splice_tail(&waiting, &e->waiters);
	while ((l = list_pop(&waiting)) != NULL) {
		struct stat_wait *w = list_entry(l, struct stat_wait, link);

		w->entry = NULL;
		w->done(w, stat_ref(answer));
	}
}

void
entry_ready(struct stat_entry *e, int err)
{
	struct stat_cache *sc = e->cache;

	e->err = err;
	e->stage = ST_READY;
	if (err_is_shortage(err))
		cache_shed_descriptors(sc);
	if (e->replaces != NULL && !entry_take_over(e))
		return;
	if (err == 0 || io_error_lasts(err)) {
		entry_touch(e);
		cache_keep_bounds(sc);
	} else {
		entry_detach(e);
	}
	entry_tell(e, e);
}

/* ---- the cache */

void
stat_cache_shrink(struct stat_cache *sc)
{
	sc->lim.entries = sc->lim.fds = 0;
	sc->lim.bytes = 0;
	cache_keep_bounds(sc);
}

unsigned
stat_cache_entries(const struct stat_cache *sc)
{
	return (sc->nfiles + sc->nabsent);
}

struct stat_cache *
stat_cache_new(struct io *io, struct counters *counters, const struct stat_limits *lim)
{
	struct stat_cache *sc;
	size_t n = 1024;

	while (n < lim->entries && n < (1u << 20))
		n *= 2;
	sc = calloc(1, sizeof(*sc));
	if (sc == NULL)
		return (NULL);
	sc->table = calloc(n, sizeof(struct stat_entry *));
	sc->no_memory = entry_new(sc, NULL, TEXT(""), 0);
	if (sc->table == NULL || sc->no_memory == NULL) {
		free(sc->no_memory);
		free(sc->table);
		free(sc);
		return (NULL);
	}
	sc->no_memory->stage = ST_READY;
	sc->no_memory->err = -ENOMEM;
	sc->mask = n - 1;
	sc->io = io;
	sc->counters = counters;
	sc->lim = *lim;
	sc->fresh_ns = lim->cache ? STAT_FRESH_MS * NS_PER_MS : 0;
	list_init(&sc->open);
	list_init(&sc->kept);
	list_init(&sc->absent);
	list_init(&sc->busy);
	return (sc);
}

void
stat_cache_free(struct stat_cache *sc)
{
	struct list *l, *tmp;
	size_t i;

	cache_untime_idle(sc);
	while (!list_empty(&sc->busy)) {
		/* Again each round: what came back in spite of it may have started the next step. */
		list_foreach_safe(l, tmp, &sc->busy)
			op_cancel(sc->io, &list_entry(l, struct stat_entry, busy)->op);
		io_run(sc->io);
	}
	for (i = 0; i <= sc->mask; i++)
		while (sc->table[i] != NULL)
			entry_detach(sc->table[i]);
	stat_put(sc->no_memory);
	free(sc->table);
	free(sc);
}
