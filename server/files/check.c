/* server/files/check.c -- re-checking: does the name still stand for that file? */
#include "server/files/impl.h"

#include <errno.h>

#include "base/clock.h"

static bool
same_time(struct statx_timestamp a, struct statx_timestamp b)
{
	return (a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec);
}

bool
entry_same_file(const struct statx *a, const struct statx *b)
{
	return (a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major &&
	    a->stx_dev_minor == b->stx_dev_minor && a->stx_size == b->stx_size &&
	    (a->stx_mode & S_IFMT) == (b->stx_mode & S_IFMT) && same_time(a->stx_mtime, b->stx_mtime) &&
	    same_time(a->stx_ctime, b->stx_ctime));
}

/* The new entry knows how the file looked before, and since when. */
static void
entry_inherit(struct stat_entry *now, const struct stat_entry *e)
{
	now->again = e->stx;
	now->seen_ns = e->err == 0 ? e->seen_ns : 0;
	now->seen_wall = e->seen_wall;
	now->client = e->client;
	now->data = e->data;
}

/* What the name stands for now takes the place of e; those who wait for e wait for that. */
static void
entry_replace(struct stat_entry *e)
{
	struct stat_cache *sc = e->cache;
	struct stat_entry *now;

	if (!e->hashed && list_empty(&e->waiters))
		return;
	entry_detach(e);
	now = entry_find(sc, e->scope, e->path, e->hash);
	if (now != NULL && now->stage == ST_LOADING) {
		entry_move_waiters(now, e);
		return;
	}
	if (now != NULL)
		entry_detach(now);
	now = entry_new(sc, e->scope, e->path, e->hash);
	if (now == NULL) {
		entry_tell(e, sc->no_memory);
		return;
	}
	entry_inherit(now, e);
	entry_hash(now);
	entry_move_waiters(now, e);
	entry_load(now);
}

/* Read too soon after a change to be believed: it is read again, and serves until that is done. */
static void
entry_reload(struct stat_entry *e)
{
	struct stat_entry *now = entry_new(e->cache, e->scope, e->path, e->hash);

	if (now == NULL)
		return;
	entry_inherit(now, e);
	now->replaces = stat_ref(e);
	e->rechecking = true;
	entry_load(now);
}

bool
entry_take_over(struct stat_entry *e)
{
	struct stat_entry *old = e->replaces;
	bool better = (e->err == 0 || io_error_lasts(e->err)) && old->hashed;

	e->replaces = NULL;
	old->rechecking = false;
	if (better) {
		entry_detach(old);
		entry_hash(e);
	} else {
		old->checked_ns = io_now(old->cache->io); /* not true, but asked again as often as if it were */
	}
	entry_tell(old, better ? e : old);
	stat_put(old);
	if (!better)
		stat_put(e);
	return (better);
}

/* The disk says nothing at all. */
static bool
is_silence(int err)
{
	return (err == -ETIMEDOUT || err == -EAGAIN);
}

/* The check itself failed (queue full, too slow, a broken disk): that is no news about the file.  Who waits for it is served
 * from memory if the disk is silent; other errors are passed on. */
static void
recheck_failed(struct stat_entry *e, int err)
{
	bool serves = e->err == 0 && e->cache->lim.cache && is_silence(err);
	struct stat_entry *answer;

	if (err_is_shortage(err))
		cache_shed_descriptors(e->cache);
	if (e->trusted || serves)
		e->checked_ns = io_now(e->cache->io); /* not true, but asked again as often as if it were */
	if (list_empty(&e->waiters))
		return;
	if (serves) {
		count(e->cache->counters, stat_overdue);
		entry_tell(e, e);
		return;
	}
	answer = entry_new(e->cache, e->scope, e->path, e->hash);
	if (answer == NULL) {
		entry_tell(e, e->cache->no_memory);
		return;
	}
	answer->stage = ST_READY;
	answer->err = err;
	entry_tell(e, answer);
	stat_put(answer);
}

uint64_t
entry_age(const struct stat_entry *e)
{
	uint64_t now = io_now(e->cache->io);

	return (now > e->checked_ns ? now - e->checked_ns : 0); /* a thread may have checked it after this round began */
}

static void
recheck_done(struct io_op *op)
{
	struct stat_entry *e = entry_of_op(op);
	bool lasting = op->res == 0 || io_error_lasts((int)op->res);
	bool same = (e->err == 0 && op->res == 0 && entry_same_file(&e->stx, &e->again)) ||
	    (e->err != 0 && e->err == op->res);

	e->rechecking = false;
	if (same && e->file != NULL)
		e->file->stale = false;
	if (same && e->unsettled == 0)
		e->checked_ns = op->at.start != 0 ? op->at.start : op->at.submit;
	if (same && e->unsettled != 0 && e->trusted && e->hashed) {
		entry_reload(e);
	} else if (same && e->unsettled != 0) {
		entry_replace(e);
	} else if (same) {
		entry_touch(e);
		entry_tell(e, e);
		if (e->trusted && e->in_demand && entry_age(e) >= e->cache->fresh_ns)
			entry_recheck(e, true); /* it took long: the next one has begun in time only if it begins now */
	} else if (lasting) {
		entry_replace(e);
	} else {
		recheck_failed(e, (int)op->res);
	}
	stat_put(e);
}

/* How long a request waits for the check of a file that is in memory. */
static uint32_t
patience(const struct stat_cache *sc)
{
	return (sc->lim.cache && sc->lim.open_ms > STAT_PATIENCE_MS ? STAT_PATIENCE_MS : sc->lim.open_ms);
}

void
entry_recheck(struct stat_entry *e, bool trusted)
{
	e->rechecking = true;
	e->trusted = trusted;
	e->in_demand = false;
	count(e->cache->counters, stat_rechecks);
	op_init(&e->op, IO_STAT, recheck_done);
	e->op.urgent = true;
	e->op.open.root = e->scope->root;
	e->op.open.path = e->path.p;
	e->op.open.resolve = e->scope->resolve;
	e->op.open.stx = &e->again;
	entry_submit(e, trusted || e->err != 0 ? e->cache->lim.open_ms : patience(e->cache));
}
