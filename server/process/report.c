/* server/process/report.c -- reports to the service manager: the state, and that every loop goes
 * round.
 *
 *   each half of $WATCHDOG_USEC:  has each worker gone round since it was last woken?
 *                                   yes: WATCHDOG=1, and wake them again
 *                                   no:  look again each second; the manager loses patience
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/io.h"
#include "io/start/notify.h"
#include "server/process/impl.h"
#include "server/worker/worker.h"

#define STATE_MAX 200

uint64_t
process_connections(const struct process *ps)
{
	const struct worker_counters *t;
	uint64_t n = 0;
	unsigned i;

	for (t = worker_counters_first(&ps->counters_list); t != NULL; t = t->next)
		for (i = 0; i < NPHASES; i++)
			n += shared_get(t->phase[i]);
	return (n);
}

unsigned
process_generations(const struct process *ps)
{
	const struct generation *g;
	unsigned n = 0;

	list_each(g, &ps->generations, link)
		n++;
	return (n);
}

/* Until the next one succeeds; accel-server ctl status has the reason of a reload. */
static const char *
last_failure(const struct process *ps)
{
	if (ps->upgrade.failed)
		return (", the last upgrade failed: see the error log");
	return (ps->last.status != 0 ? ", the last reload failed: see the error log" : "");
}

void
process_report(const struct process *ps, const char *state)
{
	char line[STATE_MAX];
	unsigned n = process_generations(ps);

	if (ps->upgrade.retired) /* the newer process reports */
		return;
	snprintf(line, sizeof(line),
	    "%s\nSTATUS=%s%" PRIu64 " connections, configuration %u since the start%s%s", state,
	    ps->draining           ? "stopping: "
	    : ps->leave.at_ns != 0 ? "draining, stops soon: "
				   : "",
	    process_connections(ps), ps->nstarted, n > 1 ? ", older ones drain" : "",
	    last_failure(ps));
	notify_manager(line);
}

void
process_watch_loops(struct process *ps)
{
	ps->watchdog.interval_ns = notify_watchdog_ns() / 2;
}

void
process_watch_no_more(struct process *ps)
{
	ps->watchdog.interval_ns = 0;
}

static void
wake_all(struct process *ps)
{
	struct generation *g;
	unsigned i;

	list_each(g, &ps->generations, link) {
		for (i = 0; i < g->nworkers; i++) {
			struct worker *w = g->workers[i];

			if (w == NULL || worker_ended(w))
				continue;
			w->rounds_seen = shared_get(w->rounds);
			io_wake(w->base.io);
		}
	}
}

/* The first worker whose loop has made no round since the last check; NULL: every loop has. */
static const struct worker *
find_still(const struct process *ps)
{
	const struct generation *g;
	unsigned i;

	list_each(g, &ps->generations, link) {
		for (i = 0; i < g->nworkers; i++) {
			const struct worker *w = g->workers[i];

			if (w != NULL && !worker_ended(w) &&
			    shared_get(w->rounds) == w->rounds_seen)
				return (w);
		}
	}
	return (NULL);
}

static void
check(struct process *ps)
{
	const struct worker *w = find_still(ps);
	struct watchdog *wd = &ps->watchdog;

	if (w != NULL && !wd->still)
		log_event(LOG_ERROR, NULL, "worker.stands-still",
		    LF_U64("worker", w->base.conf.index),
		    LF_U64("seconds", wd->interval_ns / NS_PER_S),
		    LF_STR("then", "the service manager restarts the server if it stays so"));
	else if (w == NULL && wd->still)
		log_event(LOG_WARN, NULL, "worker.goes-on", LF_STR("then", "none stands still"));
	wd->still = w != NULL;
	if (!wd->still) {
		process_report(ps, "WATCHDOG=1");
		wake_all(ps);
	}
}

void
process_watch_tick(struct process *ps, int *timeout_ms)
{
	struct watchdog *wd = &ps->watchdog;
	uint64_t now;
	int ms;

	if (wd->interval_ns == 0)
		return;
	now = clock_mono_ns();
	if (now >= wd->due_ns) {
		check(ps);
		wd->due_ns =
		    now + (wd->still && wd->interval_ns > NS_PER_S ? NS_PER_S : wd->interval_ns);
	}
	ms = (int)((wd->due_ns - now) / NS_PER_MS) + 1;
	if (*timeout_ms < 0 || ms < *timeout_ms)
		*timeout_ms = ms;
}
