/* server/process/alive.c -- asks each loop whether it goes round, for accel-server ctl status.
 *
 * Each loop is woken, and counts its rounds.  One that has made none after ALIVE_MS stands still:
 * the kernel made it wait, or the machine gives it no time.
 */
#include "base/clock.h"
#include "io/io.h"
#include "server/process/impl.h"
#include "server/worker/worker.h"

#define ALIVE_MS 1000u
#define LOOK_MS  2

typedef void each_worker(struct worker *, void *arg);

static void
each(const struct process *ps, each_worker *f, void *arg)
{
	const struct generation *g;
	unsigned i;

	list_each(g, &ps->generations, link)
		for (i = 0; i < g->nworkers; i++)
			if (g->workers[i] != NULL && !worker_ended(g->workers[i]))
				f(g->workers[i], arg);
}

static void
ask(struct worker *w, void *arg)
{
	(void)arg;
	w->rounds_asked = shared_get(w->rounds);
	io_wake(w->base.io);
}

void
process_alive_ask(struct process *ps)
{
	if (ps->alive.until_ns != 0)
		return; /* the answer is on its way */
	ps->alive.until_ns = clock_mono_ns() + ALIVE_MS * NS_PER_MS;
	each(ps, ask, NULL);
}

struct still {
	unsigned n;
	struct buf *names;
};

static void
find_still(struct worker *w, void *arg)
{
	struct still *s = arg;

	if (shared_get(w->rounds) != w->rounds_asked)
		return;
	if (s->names != NULL)
		buf_printf(s->names, "%s%u", s->n != 0 ? ", " : "", w->base.conf.index);
	s->n++;
}

unsigned
process_alive_still(const struct process *ps, struct buf *names)
{
	struct still s = { 0, names };

	each(ps, find_still, &s);
	return (s.n);
}

static bool
is_known(const struct process *ps)
{
	return (clock_mono_ns() >= ps->alive.until_ns || process_alive_still(ps, NULL) == 0);
}

bool
process_alive_tick(struct process *ps, int *timeout_ms)
{
	if (ps->alive.until_ns == 0)
		return (false);
	if (is_known(ps)) {
		ps->alive.until_ns = 0;
		return (true);
	}
	if (*timeout_ms < 0 || *timeout_ms > LOOK_MS)
		*timeout_ms = LOOK_MS;
	return (false);
}
