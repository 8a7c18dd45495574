/* files/hold/room.c -- which entries are dropped: those beyond the bounds, and those without
 * requests.
 *
 * Files without requests are closed, so that their file systems can be unmounted.  Names without
 * requests are forgotten, so that a burst of names does not hold memory for ever.  Each list is in
 * the order of the checks, and a name in demand is checked all the time.  So the first members have
 * been idle for longest, and the timer of a list is set for its first one.  An empty list has no
 * timer.
 */
#include "files/hold/impl.h"

#include <errno.h>
#include <limits.h>

#include "base/clock.h"

#define SWEEP    1024u /* entries looked at in one go: 0.3 ms; the rest follow a moment later */
#define SWEEP_MS 10u
/* Entries become idle one after the other.  The timer waits for an eighth of the limit more, so a
 * quiet worker does not wake up for each of them. */
#define LATER 8u

/* ---- bounds */

/* The older one of the lists of files with and without a descriptor, by their first entries. */
static struct lookup_list *
oldest(struct file_cache *fc)
{
	struct lookup *a = lookup_oldest(&fc->open.l), *b = lookup_oldest(&fc->kept.l);

	return (
	    b == NULL || (a != NULL && a->checked_ns <= b->checked_ns) ? &fc->open.l : &fc->kept.l);
}

static void
evict(struct file_cache *fc, struct lookup_list *in, unsigned n, uint64_t bytes)
{
	struct lookup *l;

	while ((l = lookup_surplus(in, n, bytes)) != NULL) {
		if (!fc->shrunk) {
			count(fc->counters, stat_evicted);
			if (in != &fc->absent.l && fc->lim.entries != 0)
				gone_note(fc, l);
		}
		lookup_remove(l);
	}
}

/* Each bound costs the entries that use it: a walk through large files evicts no small ones. */
void
cache_keep_bounds(struct file_cache *fc)
{
	struct lookup_list *in;

	evict(fc, &fc->open.l, fc->lim.fds, UINT64_MAX);
	evict(fc, &fc->kept.l, UINT_MAX, fc->lim.bytes);
	while (fc->open.l.n + fc->kept.l.n > fc->lim.entries) {
		in = oldest(fc);
		evict(fc, in, in->n - 1, UINT64_MAX);
	}
	evict(fc, &fc->absent.l, fc->lim.entries / 4 + 16, UINT64_MAX);
}

void
cache_shed_descriptors(struct file_cache *fc)
{
	evict(fc, &fc->open.l, fc->open.l.n / 2, UINT64_MAX);
}

/* ---- entries without requests */

static void time_idle(struct file_list *, uint32_t ms);

static uint32_t
next_ms(const struct file_list *fl, bool more)
{
	uint64_t idle = fl->idle_ms * NS_PER_MS, age;

	if (more)
		return (SWEEP_MS);
	age = lookup_age(lookup_oldest(&fl->l));
	return ((uint32_t)((age < idle ? idle - age : idle) / NS_PER_MS) + 1 + fl->idle_ms / LATER);
}

static void
forget(struct file_list *fl, struct file_entry *e)
{
	struct file_cache *fc = fl->cache;

	lookup_remove(&e->lk);
	if (fl == &fc->open)
		count(fc->counters, stat_idle_closed);
	else
		count(fc->counters, stat_forgotten);
}

static void
sweep(struct io_op *op)
{
	struct file_list *fl = container_of(op, struct file_list, timer);
	struct file_entry *e;
	unsigned seen = 0;

	fl->timed = false;
	if (op->res != -ETIMEDOUT)
		return;
	list_each(e, &fl->l.head, lk.link) {
		if (seen == SWEEP)
			break;
		seen++;
		if (e->rechecking)
			continue; /* it may be in demand on a disk that hangs */
		if (lookup_age(&e->lk) < fl->idle_ms * NS_PER_MS)
			break;
		forget(fl, e);
	}
	if (fl->l.n != 0)
		time_idle(fl, next_ms(fl, seen == SWEEP));
}

/* Starts the timer unless it runs. */
static void
time_idle(struct file_list *fl, uint32_t ms)
{
	if (fl->idle_ms == 0 || fl->timed)
		return;
	fl->timed = true;
	op_init(&fl->timer, IO_TIMER, sweep);
	fl->timer.deadline_ms = ms;
	op_submit(fl->cache->io, &fl->timer);
}

void
entry_touch(struct file_entry *e)
{
	struct file_cache *fc = e->cache;
	struct file_list *fl = e->err != 0 ? &fc->absent : e->file != NULL ? &fc->open : &fc->kept;

	lookup_keep(&e->lk, &fl->l, e->bytes != NULL ? e->size : 0);
	if (fl->l.n != 0)
		time_idle(fl, fl->idle_ms);
}

static void
list_begin(struct file_cache *fc, struct file_list *fl, uint32_t idle_ms)
{
	lookup_list_init(&fl->l);
	fl->cache = fc;
	fl->idle_ms = idle_ms;
}

void
cache_lists_init(struct file_cache *fc)
{
	list_begin(fc, &fc->open, fc->lim.idle_ms);
	list_begin(fc, &fc->kept, fc->lim.forget_ms);
	list_begin(fc, &fc->absent, fc->lim.forget_ms);
}

bool
cache_lists_stop(struct file_cache *fc)
{
	struct file_list *all[] = { &fc->open, &fc->kept, &fc->absent };
	bool timed = false;
	unsigned i;

	for (i = 0; i < 3; i++) {
		if (all[i]->timed)
			op_cancel(fc->io, &all[i]->timer);
		timed |= all[i]->timed;
	}
	return (timed);
}
