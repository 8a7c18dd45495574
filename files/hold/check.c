/* files/hold/check.c -- the re-check: is the name still the same file? */
#include "files/hold/impl.h"

#include <errno.h>

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
		(a->stx_mode & S_IFMT) == (b->stx_mode & S_IFMT) &&
		same_time(a->stx_mtime, b->stx_mtime) && same_time(a->stx_ctime, b->stx_ctime));
}

/* The new entry takes over the known times of the file, and the time since when they are known. */
static void
entry_inherit(struct file_entry *now, const struct file_entry *e)
{
	now->again = e->stx;
	now->seen_ns = e->err == 0 ? e->seen_ns : 0;
	now->seen_wall = e->seen_wall;
	now->lk.client = e->lk.client;
	now->data = e->data;
}

/* Replaces e by an entry for the file that now has this name; that entry takes e's waiters. */
static void
entry_replace(struct file_entry *e)
{
	struct file_cache *fc = e->cache;
	struct file_entry *now;
	struct lookup *other;

	if (!e->lk.listed && list_empty(&e->lk.waiters))
		return;
	lookup_remove(&e->lk);
	other = lookup_find(&fc->table, e->lk.scope, e->lk.path, e->lk.hash);
	if (other != NULL && !file_entry_of(other)->ready) {
		lookup_move_waiters(other, &e->lk);
		return;
	}
	if (other != NULL)
		lookup_remove(other);
	now = entry_new(fc, e->lk.scope, e->lk.path, e->lk.hash);
	if (now == NULL) {
		lookup_tell(&e->lk, &fc->no_memory->lk);
		return;
	}
	entry_inherit(now, e);
	lookup_add(&now->lk);
	lookup_move_waiters(&now->lk, &e->lk);
	entry_load(now);
}

/* The file was read too soon after a change.  It is read again, and e serves until then. */
static void
entry_reload(struct file_entry *e)
{
	struct file_entry *now = entry_new(e->cache, e->lk.scope, e->lk.path, e->lk.hash);

	if (now == NULL) {
		lookup_tell(&e->lk, &e->cache->no_memory->lk);
		return;
	}
	entry_inherit(now, e);
	now->replaces = file_entry_ref(e);
	e->rechecking = true;
	entry_load(now);
}

bool
entry_take_over(struct file_entry *e)
{
	struct file_entry *old = e->replaces;
	bool better = lookup_is_permanent(e->err) && old->lk.listed;

	e->replaces = NULL;
	old->rechecking = false;
	if (better) {
		lookup_remove(&old->lk);
		lookup_add(&e->lk);
	} else {
		/* not checked, but the next check comes as if it were */
		old->lk.checked_ns = io_now(old->cache->io);
	}
	lookup_tell(&old->lk, better ? &e->lk : &old->lk);
	file_entry_put(old);
	if (!better)
		file_entry_put(e);
	return (better);
}

/* The disk has not answered. */
static bool
is_silence(int err)
{
	return (err == -ETIMEDOUT || err == -EAGAIN);
}

/* The check itself failed (queue full, too slow, a broken disk), which says nothing about the file.
 * If the disk did not answer, the waiters are served from memory.  Any other error is their
 * answer. */
static void
recheck_failed(struct file_entry *e, int err)
{
	bool serves = e->err == 0 && e->cache->lim.cache && is_silence(err);
	struct file_entry *answer;

	if (err_is_shortage(err))
		cache_shed_descriptors(e->cache);
	if (e->trusted || serves)
		/* not checked, but the next check comes as if it were */
		e->lk.checked_ns = io_now(e->cache->io);
	if (list_empty(&e->lk.waiters))
		return;
	if (serves) {
		count(e->cache->counters, stat_overdue);
		lookup_tell(&e->lk, &e->lk);
		return;
	}
	answer = entry_new(e->cache, e->lk.scope, e->lk.path, e->lk.hash);
	if (answer == NULL) {
		lookup_tell(&e->lk, &e->cache->no_memory->lk);
		return;
	}
	answer->ready = true;
	answer->err = err;
	lookup_tell(&e->lk, &answer->lk);
	file_entry_put(answer);
}

static void
recheck_done(struct io_op *op)
{
	struct file_entry *e = entry_of_op(op);
	bool lasting = lookup_is_permanent((int)op->res);
	bool same = (e->err == 0 && op->res == 0 && entry_same_file(&e->stx, &e->again)) ||
		    (e->err != 0 && e->err == op->res);

	e->rechecking = false;
	if (same && e->file != NULL)
		e->file->stale = false;
	if (same && e->unsettled == 0)
		e->lk.checked_ns = op->at.start != 0 ? op->at.start : op->at.submit;
	if (same && e->unsettled != 0 && e->trusted && e->lk.listed) {
		entry_reload(e);
	} else if (same && e->unsettled != 0) {
		entry_replace(e);
	} else if (same) {
		entry_touch(e);
		lookup_tell(&e->lk, &e->lk);
		if (e->trusted && e->in_demand && lookup_age(&e->lk) >= e->cache->fresh_ns)
			/* The check took long.  The next one is in time only if it begins now. */
			entry_recheck(e, true);
	} else if (lasting) {
		entry_replace(e);
	} else {
		recheck_failed(e, (int)op->res);
	}
	file_entry_put(e);
}

/* How long a request waits for the check of a file in memory. */
static uint32_t
patience(const struct file_cache *fc)
{
	return (fc->lim.cache && fc->lim.open_ms > FILE_PATIENCE_MS ? FILE_PATIENCE_MS
								    : fc->lim.open_ms);
}

void
entry_recheck(struct file_entry *e, bool trusted)
{
	e->rechecking = true;
	e->trusted = trusted;
	e->in_demand = false;
	count(e->cache->counters, stat_rechecks);
	op_init(&e->op, IO_OPEN, recheck_done);
	e->op.only_stat = true;
	e->op.urgent = true;
	e->op.open.root = e->lk.scope->root;
	e->op.open.path = e->lk.path.p;
	e->op.open.resolve = e->lk.scope->resolve;
	e->op.open.stx = &e->again;
	entry_submit(e, trusted || e->err != 0 ? e->cache->lim.open_ms : patience(e->cache));
}
