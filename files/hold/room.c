/* files/hold/room.c -- which entries are dropped: those beyond the bounds, and idle open files.
 *
 * Files without requests are closed, so that their file systems can be unmounted.  The list of open
 * files is in the order of their checks, and a file in demand is checked all the time.  So the
 * first members have been idle for longest, and the timer is set for the first one.  Without open
 * files there is no timer.
 */
#include "files/hold/impl.h"

#include <errno.h>
#include <limits.h>

#include "base/clock.h"

#define SWEEP    256u /* files closed at a time; the rest a moment later */
#define SWEEP_MS 10u

/* ---- bounds */

/* Of the lists of files with and without a descriptor, the one whose first entry is older. */
static struct lookup_list *
oldest(struct file_cache *fc)
{
	struct lookup *a = lookup_oldest(&fc->open), *b = lookup_oldest(&fc->kept);

	return (b == NULL || (a != NULL && a->checked_ns <= b->checked_ns) ? &fc->open : &fc->kept);
}

static void
evict(struct file_cache *fc, struct lookup_list *in, unsigned n, uint64_t bytes)
{
	count_add(fc->counters, stat_evicted, lookup_evict(in, n, bytes));
}

/* Each bound costs the entries that use it: a walk through large files evicts no small ones. */
void
cache_keep_bounds(struct file_cache *fc)
{
	struct lookup_list *in;

	evict(fc, &fc->open, fc->lim.fds, UINT64_MAX);
	evict(fc, &fc->kept, UINT_MAX, fc->lim.bytes);
	while (fc->open.n + fc->kept.n > fc->lim.entries) {
		in = oldest(fc);
		evict(fc, in, in->n - 1, UINT64_MAX);
	}
	evict(fc, &fc->absent, fc->lim.entries / 4 + 16, UINT64_MAX);
}

void
cache_shed_descriptors(struct file_cache *fc)
{
	evict(fc, &fc->open, fc->open.n / 2, UINT64_MAX);
}

/* ---- idle files */

static void time_idle(struct file_cache *, uint32_t ms);

static uint32_t
next_ms(const struct file_cache *fc, unsigned closed)
{
	uint64_t idle = fc->lim.idle_ms * NS_PER_MS, age;

	if (closed == SWEEP)
		return (SWEEP_MS);
	age = lookup_age(lookup_oldest(&fc->open));
	return ((uint32_t)((age < idle ? idle - age : idle) / NS_PER_MS) + 1);
}

static void
sweep(struct io_op *op)
{
	struct file_cache *fc = container_of(op, struct file_cache, idle);
	struct file_entry *e;
	unsigned seen = 0, closed = 0;

	fc->idle_timed = false;
	if (op->res != -ETIMEDOUT)
		return;
	list_each(e, &fc->open.head, lk.link) {
		if (seen++ == SWEEP)
			break;
		if (e->rechecking)
			continue; /* it may be in demand on a disk that hangs */
		if (lookup_age(&e->lk) < fc->lim.idle_ms * NS_PER_MS)
			break;
		lookup_remove(&e->lk);
		count(fc->counters, stat_idle_closed);
		closed++;
	}
	if (fc->open.n != 0)
		time_idle(fc, next_ms(fc, closed));
}

/* Starts the timer unless it runs. */
static void
time_idle(struct file_cache *fc, uint32_t ms)
{
	if (fc->lim.idle_ms == 0 || fc->idle_timed)
		return;
	fc->idle_timed = true;
	op_init(&fc->idle, IO_TIMER, sweep);
	fc->idle.deadline_ms = ms;
	op_submit(fc->io, &fc->idle);
}

void
entry_touch(struct file_entry *e)
{
	struct file_cache *fc = e->cache;

	lookup_keep(&e->lk,
	    e->err != 0       ? &fc->absent
	    : e->file != NULL ? &fc->open
			      : &fc->kept,
	    e->bytes != NULL ? e->size : 0);
	if (e->lk.in == &fc->open)
		time_idle(fc, fc->lim.idle_ms);
}
