/* server/process/drain.c -- old generations finish their running replies, within a time limit. */
#include "base/clock.h"
#include "base/log.h"
#include "server/process/impl.h"
#include "server/worker/worker.h"

/* Generations that drain, besides the newest.  One with a single download has a worker with its
 * loop: 0.4 MB, 5 descriptors and a thread were measured.  All of them together have at most about
 * a twelfth of the descriptors, but OLD_MIN are always allowed. */
#define OLD_MAX 50u
#define OLD_MIN 4u
#define FDS_OLD 64u /* for each worker of an old generation: 12 times what it uses */
/* by then connections accepted before the drain have sent their first bytes, or are silent */
#define HUSH_MS 1200u
/* Nobody has requested this stop, and clients are refused until the service manager has started the
 * server again. */
#define WITHOUT_HELPER_S 5u
/* A manager that stops a service waits for it, and a reboot waits for the manager: less than
 * TimeoutStopSec=15 of our units, and less than the 300 s of server.graceful-shutdown-timeout. */
#define MANAGED_S 10u
#define ASK_S     5u

void
process_drain(struct process *ps, struct generation *g)
{
	if (g->retired_ns == 0)
		g->retired_ns = clock_mono_ns();
	generation_tell(g, WORKER_DRAIN);
	process_drain_check(ps);
}

static uint64_t
connections(const struct generation *g)
{
	uint64_t n = 0;
	unsigned i, p;

	for (i = 0; i < g->nworkers; i++)
		for (p = 0; p < NPHASES && g->workers[i] != NULL && !worker_ended(g->workers[i]);
		     p++)
			n += shared_get(g->workers[i]->base.counters->phase[p]);
	return (n);
}

static void
cut(struct generation *g, const char *why)
{
	uint64_t n = connections(g);

	g->cut = true;
	log_event(LOG_WARN, NULL, "drain.cut", LF_STR("why", why), LF_U64("connections", n),
	    LF_U64("seconds", (clock_mono_ns() - g->retired_ns) / NS_PER_S));
	generation_tell(g, WORKER_CUT);
}

static unsigned
old_allowed(const struct process *ps)
{
	unsigned n = ps->fds / FDS_OLD / process_newest(ps)->nworkers;

	return (n < OLD_MIN ? OLD_MIN : n > OLD_MAX ? OLD_MAX : n);
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

uint64_t
process_stop_limit_s(const struct process *ps)
{
	const struct conf *conf = config_global(process_newest(ps)->config);

	return (ps->by_manager && !conf->graceful_set ? MANAGED_S : conf->graceful_s);
}

/* How long a drain may last, in ns.  0: no limit. */
static uint64_t
drain_limit(const struct process *ps)
{
	const struct generation *last = process_newest(ps);
	const struct conf *conf = config_global(last->config);
	bool ends = last->retired_ns != 0 && !ps->upgrade.retired;

	if (ps->ended_without_helper)
		return (WITHOUT_HELPER_S * NS_PER_S);
	return (ends || conf->graceful_set ? process_stop_limit_s(ps) * NS_PER_S : 0);
}

/* While the server stops, it says so to the service manager, which kills a service after
 * TimeoutStopSec= and knows nothing of server.graceful-shutdown-timeout. */
static void
ask_for_time(struct process *ps)
{
	uint64_t now = clock_mono_ns();

	if (!ps->draining || ps->upgrade.retired || now < ps->ask_again_ns)
		return;
	ps->ask_again_ns = now + ASK_S * NS_PER_S;
	process_report(ps, "EXTEND_TIMEOUT_USEC=30000000");
}

void
process_drain_check(struct process *ps)
{
	struct generation *last = process_newest(ps), *g;
	uint64_t age, limit = drain_limit(ps);
	unsigned old = old_count(ps), allowed = old_allowed(ps);

	ask_for_time(ps);
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
		else if (g != last && old > allowed)
			cut(g, "too many generations drain");
		old -= g != last && g->cut;
		ps->stopping = ps->stopping || (g == last && g->cut);
	}
}
