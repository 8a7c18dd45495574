/* server/files/idle.c -- descriptors of files that nobody asks for are closed, so that what they lie on can be unmounted.
 *
 * The list of open files is in the order of their checks, and a file in demand is checked all the time.  So its first members are
 * those idle for longest, and the timer is set for the first.  Without open files there is no timer.
 */
#include "server/files/impl.h"

#include <errno.h>

#include "base/clock.h"

#define SWEEP 256u /* files closed in one go; the rest a moment later */
#define SWEEP_MS 10u

static bool
is_idle(const struct stat_entry *e)
{
	return (entry_age(e) >= e->cache->lim.idle_ms * NS_PER_MS);
}

static uint32_t
next_ms(const struct stat_cache *sc, unsigned closed)
{
	uint64_t idle = sc->lim.idle_ms * NS_PER_MS, age;

	if (closed == SWEEP)
		return (SWEEP_MS);
	age = entry_age(list_entry(sc->open.next, struct stat_entry, lru));
	return ((uint32_t)((age < idle ? idle - age : idle) / NS_PER_MS) + 1);
}

static void
sweep(struct io_op *op)
{
	struct stat_cache *sc = container_of(op, struct stat_cache, idle);
	struct list *l, *tmp;
	unsigned seen = 0, closed = 0;

	sc->idle_timed = false;
	if (op->res != -ETIMEDOUT)
		return;
	list_foreach_safe(l, tmp, &sc->open) {
		struct stat_entry *e = list_entry(l, struct stat_entry, lru);

		if (seen++ == SWEEP)
			break;
		if (e->rechecking)
			continue; /* it may be in demand, and its disk hang */
		if (!is_idle(e))
			break;
		entry_detach(e);
		count(sc->counters, stat_idle_closed);
		closed++;
	}
	if (!list_empty(&sc->open))
		cache_time_idle(sc, next_ms(sc, closed));
}

void
cache_time_idle(struct stat_cache *sc, uint32_t ms)
{
	if (sc->lim.idle_ms == 0 || sc->idle_timed)
		return;
	sc->idle_timed = true;
	op_init(&sc->idle, IO_TIMER, sweep);
	sc->idle.deadline_ms = ms;
	op_submit(sc->io, &sc->idle);
}

void
cache_untime_idle(struct stat_cache *sc)
{
	while (sc->idle_timed) {
		op_cancel(sc->io, &sc->idle);
		io_run(sc->io);
	}
}
