/* files/hold/hold.c -- look-ups and their answers. */
#include "files/hold/impl.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

static struct file_entry *
hit(struct file_cache *fc, struct file_entry *e)
{
	e->in_demand = true;
	if (e->err != 0)
		count(fc->counters, stat_absent_hits);
	else
		count(fc->counters, stat_hits);
	return (file_entry_ref(e));
}

/* The prepared head must fit the bytes that the descriptor gives now.  The look at the file never
 * waits, and is taken once a round of the loop.  Bytes in memory need none. */
static bool
is_stale(struct file_cache *fc, struct file_entry *e)
{
	if (e->file == NULL || e->file->stale || e->looked_ns == io_now(fc->io))
		return (e->file != NULL && e->file->stale);
	e->looked_ns = io_now(fc->io);
	return (io_file_look(e->file) != 0);
}

/* An op for e is on its way. */
static void
join(struct file_cache *fc, struct file_entry *e, struct lookup_wait *w)
{
	count(fc->counters, stat_joins);
	lookup_join(&e->lk, w);
	io_join(fc->io, &e->op, w->client);
}

static struct file_entry *
lookup_ready(struct file_cache *fc, struct file_entry *e, struct lookup_wait *w)
{
	uint64_t age = lookup_age(&e->lk);
	bool stale = is_stale(fc, e);

	if (age < fc->fresh_ns && !stale) {
		if (age > e->recheck_ms * NS_PER_MS && !e->rechecking)
			entry_recheck(e, true);
		return (hit(fc, e));
	}
	if (e->rechecking && e->trusted && !stale) {
		count(fc->counters, stat_overdue);
		return (hit(fc, e));
	}
	if (w == NULL)
		return (NULL);
	if (e->rechecking) {
		join(fc, e, w);
		return (NULL);
	}
	count(fc->counters, stat_joins);
	lookup_join(&e->lk, w);
	e->lk.client = w->client;
	entry_recheck(e, false);
	return (NULL);
}

struct file_entry *
file_lookup(struct file_cache *fc, struct file_scope *scope, struct text path,
    struct lookup_wait *w)
{
	uint64_t hash = text_hash(path) + scope->id * 0x9e3779b97f4a7c15ull;
	struct lookup *l = lookup_find(&fc->table, scope, path, hash);
	struct file_entry *e = l != NULL ? file_entry_of(l) : NULL;

	if (e != NULL && e->ready)
		return (lookup_ready(fc, e, w));
	if (w == NULL)
		return (NULL);
	if (e != NULL) {
		join(fc, e, w);
		return (NULL);
	}
	e = entry_new(fc, scope, path, hash);
	if (e == NULL)
		return (file_entry_ref(fc->no_memory));
	count(fc->counters, stat_misses);
	if (gone_take(fc, hash))
		count(fc->counters, stat_returned);
	e->lk.client = w->client;
	e->data = w->data;
	lookup_add(&e->lk);
	lookup_join(&e->lk, w);
	entry_load(e);
	return (NULL);
}

/* A queued look-up without waiters would delay others.  If a thread runs it already, the result is
 * kept for the next request. */
void
file_lookup_cancel(struct lookup_wait *w)
{
	struct lookup *l = w->lookup;

	if (lookup_leave(w) && !file_entry_of(l)->ready)
		op_withdraw(l->table->io, &file_entry_of(l)->op);
}

/* ---- answers */

bool
err_is_shortage(int err)
{
	return (err == -EMFILE || err == -ENFILE);
}

void
entry_ready(struct file_entry *e, int err)
{
	struct file_cache *fc = e->cache;

	e->err = err;
	e->ready = true;
	if (err_is_shortage(err))
		cache_shed_descriptors(fc);
	if (e->replaces != NULL && !entry_take_over(e))
		return;
	if (lookup_is_permanent(err)) {
		entry_touch(e);
		cache_keep_bounds(fc);
	} else {
		lookup_remove(&e->lk);
	}
	lookup_tell(&e->lk, &e->lk);
}

/* ---- entries and scopes */

struct file_entry *
entry_new(struct file_cache *fc, struct file_scope *scope, struct text path, uint64_t hash)
{
	struct lookup *l = lookup_new(&fc->table, sizeof(struct file_entry), scope, path, hash);
	struct file_entry *e;

	if (l == NULL)
		return (NULL);
	e = file_entry_of(l);
	if (scope != NULL)
		file_scope_ref(scope);
	e->cache = fc;
	e->recheck_ms = FILE_RECHECK_MS;
	list_init(&e->busy);
	return (e);
}

static void
entry_free(struct lookup *l)
{
	struct file_entry *e = file_entry_of(l);

	must(!list_linked(&e->busy));
	io_file_put(e->file);
	file_scope_put(l->scope);
	if (e->more != NULL)
		e->more->free(e->more);
	free(e->real);
	free(e->memory);
	free(e);
}

struct file_scope *
file_scope_ref(struct file_scope *scope)
{
	scope->refs++;
	return (scope);
}

void
file_scope_put(struct file_scope *scope)
{
	if (scope == NULL)
		return;
	must(scope->refs > 0);
	if (--scope->refs == 0 && scope->free != NULL)
		scope->free(scope);
}

/* ---- the cache */

void
file_cache_shrink(struct file_cache *fc)
{
	fc->shrunk = true;
	gone_end(fc);
	fc->lim.entries = fc->lim.fds = 0;
	fc->lim.bytes = 0;
	cache_keep_bounds(fc);
}

uint64_t
file_cache_memory(const struct file_cache *fc)
{
	return (file_cache_entries(fc) * sizeof(struct file_entry) + fc->kept.l.bytes);
}

unsigned
file_cache_entries(const struct file_cache *fc)
{
	return (fc->open.l.n + fc->kept.l.n + fc->absent.l.n);
}

struct file_cache *
file_cache_new(struct io *io, struct hold_counters *counters, const struct file_limits *lim)
{
	struct file_cache *fc = calloc(1, sizeof(*fc));

	if (fc == NULL)
		return (NULL);
	fc->no_memory = entry_new(fc, NULL, TEXT(""), 0);
	if (fc->no_memory == NULL || lookup_init(&fc->table, io, lim->entries, entry_free) != 0) {
		free(fc->no_memory);
		free(fc);
		return (NULL);
	}
	fc->no_memory->ready = true;
	fc->no_memory->err = -ENOMEM;
	fc->io = io;
	fc->counters = counters;
	fc->lim = *lim;
	fc->fresh_ns = lim->cache ? FILE_FRESH_MS * NS_PER_MS : 0;
	cache_lists_init(fc);
	list_init(&fc->busy);
	return (fc);
}

void
file_cache_free(struct file_cache *fc)
{
	struct file_entry *e;

	while (cache_lists_stop(fc) || !list_empty(&fc->busy)) {
		/* Again each round: an op that succeeded may have started the next step. */
		list_each(e, &fc->busy, busy)
			op_cancel(fc->io, &e->op);
		io_run(fc->io);
	}
	lookup_fini(&fc->table);
	gone_end(fc);
	file_entry_put(fc->no_memory);
	free(fc);
}
