/* server/process/balancer.c -- tells balancers before a stop: status.health-url fails, and
 * everything else is served.
 *
 *   ctl drain, or INT with server.drain-delay --> health checks fail --delay--> graceful stop
 *                                                  `--ctl undrain--> they succeed again
 *
 * Replies of this time end their connections, so that clients of a balancer that moves bytes only
 * come to other servers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/process/impl.h"

void
process_drain_first(struct process *ps, uint64_t seconds, const char *why)
{
	char state[64];

	ps->leave.at_ns = clock_mono_ns() + seconds * NS_PER_S;
	ps->leave.why = why;
	shared_set(ps->counters_list.leaving, true);
	log_event(LOG_WARN, NULL, "drain.started", LF_STR("by", why), LF_U64("seconds", seconds),
	    LF_STR("then",
		"status.health-url answers 503, requests are served, and the server stops after "
		"this time"),
	    LF_STR("do", "to go on serving: accel-server ctl undrain"));
	/* TimeoutStopSec= of a unit is shorter */
	snprintf(state, sizeof(state), "READY=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
	    (seconds + 30) * 1000000);
	process_report(ps, state);
}

bool
process_undrain(struct process *ps)
{
	static const struct text undone = TEXT("ctl undrain has ended it");

	if (ps->leave.at_ns == 0 || ps->draining)
		return (false);
	ps->leave.at_ns = 0;
	shared_set(ps->counters_list.leaving, false);
	log_event(LOG_INFO, NULL, "drain.undone", LF_STR("then", "status.health-url answers 200"));
	process_control_done(ps, CONTROL_DRAIN, EX_TEMPFAIL, undone);
	process_control_done(ps, CONTROL_QUIT, EX_TEMPFAIL, undone);
	process_report(ps, "READY=1");
	return (true);
}

uint64_t
process_leaves_in_s(const struct process *ps)
{
	uint64_t now = clock_mono_ns();

	return (ps->leave.at_ns > now ? (ps->leave.at_ns - now + NS_PER_S - 1) / NS_PER_S : 0);
}

void
process_quit(struct process *ps, const char *why)
{
	struct generation *g = process_newest(ps);
	uint64_t seconds = g != NULL ? config_global(g->config)->drain_delay : 0;

	if (seconds == 0 || ps->draining || ps->leave.at_ns != 0)
		process_stop(ps, why, false);
	else
		process_drain_first(ps, seconds, why);
}

void
process_leave_tick(struct process *ps, int *timeout_ms)
{
	uint64_t now = clock_mono_ns(), left;

	if (ps->leave.at_ns == 0 || ps->draining)
		return;
	left = ps->leave.at_ns > now ? (ps->leave.at_ns - now) / NS_PER_MS + 1 : 0;
	if (left == 0) {
		process_stop(ps, ps->leave.why, false);
		*timeout_ms = 0;
	} else if (*timeout_ms < 0 || left < (uint64_t)*timeout_ms)
		*timeout_ms = (int)left;
}
