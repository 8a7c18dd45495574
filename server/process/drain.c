/* server/process/drain.c -- old generations let their running replies end, but not for ever. */
#include "base/clock.h"
#include "base/log.h"
#include "server/config/features.h"
#include "server/process/impl.h"

#define OLD_MAX 4u     /* generations that drain beside the newest: each has threads, loops and caches */
#define HUSH_MS 1200u  /* what was accepted when a drain began has sent its first bytes by then, or is silent */

void
process_drain(struct process *ps, struct generation *g)
{
	if (g->retired_ns == 0)
		g->retired_ns = clock_mono_ns();
	generation_tell(g, WORKER_DRAIN);
	process_drain_mind(ps);
}

static void
cut(struct generation *g, const char *why)
{
	uint64_t n = 0;
	unsigned i, p;

	for (i = 0; i < g->nworkers; i++)
		for (p = 0; p < NPHASES && !worker_ended(g->workers[i]); p++)
			n += tally_get(g->workers[i]->tally->phase[p]);
	g->cut = true;
	log_event(LOG_WARN, NULL, "drain.cut", LF_STR("why", why), LF_U64("connections", n),
	    LF_U64("seconds", (clock_mono_ns() - g->retired_ns) / NS_PER_S));
	generation_tell(g, WORKER_CUT);
}

static unsigned
old_count(const struct process *ps)
{
	const struct list *l;
	unsigned n = 0;

	for (l = ps->generations.next; l != &ps->generations && l->next != &ps->generations; l = l->next)
		n += !list_entry(l, struct generation, link)->cut;
	return (n);
}

void
process_drain_mind(struct process *ps)
{
	struct generation *last = list_entry(ps->generations.prev, struct generation, link), *g;
	uint64_t age, limit = features_graceful_s(config_global(last->config)) * NS_PER_S;
	unsigned old = old_count(ps);
	struct list *l;

	for (l = ps->generations.next; l != &ps->generations; l = l->next) {
		g = list_entry(l, struct generation, link);
		if (g->retired_ns == 0 || g->cut)
			continue;
		age = clock_mono_ns() - g->retired_ns;
		if (age > HUSH_MS * NS_PER_MS && !g->hushed) {
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
