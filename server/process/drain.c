/* server/process/drain.c -- old generations finish their running replies, within a time limit. */
#include "base/clock.h"
#include "base/log.h"
#include "server/process/impl.h"

/* generations that drain beside the newest: each has threads, loops and caches */
#define OLD_MAX 4u
/* connections accepted before the drain have sent their first bytes by then, or are silent */
#define HUSH_MS 1200u

void
process_drain(struct process *ps, struct generation *g)
{
	if (g->retired_ns == 0)
		g->retired_ns = clock_mono_ns();
	generation_tell(g, WORKER_DRAIN);
	process_drain_check(ps);
}

static void
cut(struct generation *g, const char *why)
{
	uint64_t n = 0;
	unsigned i, p;

	for (i = 0; i < g->nworkers; i++)
		for (p = 0; p < NPHASES && !worker_ended(g->workers[i]); p++)
			n += shared_get(g->workers[i]->counters->phase[p]);
	g->cut = true;
	log_event(LOG_WARN, NULL, "drain.cut", LF_STR("why", why), LF_U64("connections", n),
	    LF_U64("seconds", (clock_mono_ns() - g->retired_ns) / NS_PER_S));
	generation_tell(g, WORKER_CUT);
}

static unsigned
old_count(const struct process *ps)
{
	const struct generation *g;
	unsigned n = 0;

	list_each(g, &ps->generations, link)
		n += g != process_newest(ps) && !g->cut;
	return (n);
}

void
process_drain_check(struct process *ps)
{
	struct generation *last = process_newest(ps), *g;
	uint64_t age, limit = config_global(last->config)->graceful_s * NS_PER_S;
	unsigned old = old_count(ps);

	list_each(g, &ps->generations, link) {
		if (g->retired_ns == 0 || g->cut)
			continue;
		age = clock_mono_ns() - g->retired_ns;
		if (age > HUSH_MS * NS_PER_MS && !g->hushed && !ps->upgrade.retired) {
			g->hushed = true;
			generation_tell(g, WORKER_HUSH);
		}
		if (limit != 0 && age > limit)
			cut(g, "server.graceful-shutdown-timeout is over");
		else if (g != last && old > OLD_MAX)
			cut(g, "too many generations drain");
		old -= g != last && g->cut;
		ps->stopping = ps->stopping || (g == last && g->cut);
	}
}
