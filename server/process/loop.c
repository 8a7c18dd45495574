/* server/process/loop.c -- the loop of the main thread: one poll(2) for signals, the helper,
 * upgrades, names, applications and the control socket.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/log.h"
#include "io/start/listen.h"
#include "io/memory/memory_status.h"
#include "server/process/impl.h"
#include "server/status/counters.h"

#define STOP_MS      1500u /* TERM: waits this long for workers, then leaves */
#define POLL_MS      50    /* interval of the checks of draining generations */
#define COUNTERS_MAX (sizeof(struct server_counters) / sizeof(uint64_t))

/* What the main thread polls besides names, applications and control sockets. */
enum { POLL_SIGNALS, POLL_STDIN, POLL_RELOAD, POLL_HELPER, POLL_UPGRADE, POLL_RENEW, OWN_POLLS };

/* ---- generations that have ended */

/* Makes sockets that only an older generation uses refuse clients.  They are closed later: the
 * workers of that generation must stop accepting first, or they would log a failure. */
static void
refuse_dropped(struct process *ps, const struct generation *g)
{
	size_t i, k;

	if (g->retired_ns == 0 || clock_mono_ns() - g->retired_ns < POLL_MS * NS_PER_MS)
		return;
	for (i = 0; i < g->listeners.n; i++) {
		for (k = 0; k < ps->listeners.n && ps->listeners.v[k].fd != g->listeners.v[i].fd;
		     k++)
			;
		if (k == ps->listeners.n)
			listen_refuse(g->listeners.v[i].fd);
	}
}

/* The counters of the workers since the start, and the pressure of memory, logged at HUP and when
 * workers have ended; zeros are left out. */
static void
log_counters(const struct process *ps)
{
	struct log_field f[COUNTERS_MAX + IO_MEMORY_FIELDS];
	const struct counter_info *ci;
	struct server_counters sum;
	struct pressure p;
	size_t n = 0;

	server_counters_sum(worker_counters_first(&ps->counters_list), &sum);
	for (ci = server_counter_infos; ci->name != NULL && n < COUNTERS_MAX; ci++)
		if (counter_get(&sum, ci) != 0)
			f[n++] = LF_U64(ci->name, counter_get(&sum, ci));
	pressure_look();
	pressure_get(&p);
	n += io_memory_status_fields(&p, f + n);
	log_event_fields(LOG_INFO, NULL, "counters", f, n);
	log_suppressed_flush();
}

void
process_reap(struct process *ps)
{
	struct generation *g;
	unsigned draining = 0;
	bool freed = false;

	list_each(g, &ps->generations, link) {
		refuse_dropped(ps, g);
		if (!generation_ended(g)) {
			draining += g->retired_ns != 0;
			if (g != process_newest(ps))
				generation_free_ended(g);
			continue;
		}
		list_del(&g->link);
		process_unlisten(ps, &g->listeners);
		log_counters(ps);
		generation_free(g);
		process_spawn_drop(ps);
		process_drop_accesslogs(ps);
		freed = true;
	}
	shared_set(ps->counters_list.draining, draining);
	if (freed && draining == 0 && !ps->draining)
		heap_trim(); /* no loop sees what they have freed */
}

static void
reopen_logs(struct process *ps)
{
	ps->reopen = false;
	process_reopen_logs(ps);
	log_counters(ps);
}

/* ---- poll(2) */

struct waits {
	struct pollfd p[OWN_POLLS + RESOLVE_MAX + SPAWN_MAX + 1 + CONTROL_CLIENTS];
	struct pollfd *name, *app, *control; /* where each kind begins in p */
	size_t names, apps, controls;
	uint64_t stop_by; /* 0: not stopping */
};

static void
waits_init(const struct process *ps, struct waits *w)
{
	w->stop_by = 0;
	w->p[POLL_SIGNALS] = (struct pollfd){ .fd = ps->signals, .events = POLLIN };
	w->p[POLL_STDIN] = (struct pollfd){ .fd = ps->opt->until_eof ? 0 : -1, .events = POLLIN };
	w->p[POLL_HELPER] = (struct pollfd){ .fd = helper_fd(ps->helper), .events = POLLIN };
}

/* False: poll(2) failed. */
static bool
wait_for_events(struct process *ps, struct waits *w)
{
	bool draining = ps->draining || ps->generations.next != ps->generations.prev;
	int timeout_ms = draining ? (int)POLL_MS : ps->load.fd >= 0 ? 1000 : -1;

	w->p[POLL_RELOAD] = (struct pollfd){ .fd = ps->load.fd, .events = POLLIN };
	w->p[POLL_UPGRADE] = (struct pollfd){ .fd = ps->upgrade.fd, .events = POLLIN };
	w->p[POLL_RENEW] =
	    (struct pollfd){ .fd = process_renew_fd(ps, &timeout_ms), .events = POLLIN };
	process_watch_tick(ps, &timeout_ms);
	process_leave_tick(ps, &timeout_ms);
	if (process_alive_tick(ps, &timeout_ms))
		process_control_status(ps);
	process_reopen_tick(ps, &timeout_ms);
	w->name = w->p + OWN_POLLS;
	w->names = process_resolve_poll(ps, w->name, &timeout_ms);
	w->app = w->name + w->names;
	w->apps = process_spawn_poll(ps, w->app);
	w->control = w->app + w->apps;
	w->controls = process_control_poll(ps, w->control, &timeout_ms);
	return (poll(w->p, (nfds_t)(w->control + w->controls - w->p), timeout_ms) >= 0 ||
		errno == EINTR);
}

static void
take_events(struct process *ps, struct waits *w)
{
	char junk[256];

	if (w->p[POLL_SIGNALS].revents != 0)
		process_take_signal(ps);
	if (w->p[POLL_STDIN].revents != 0 && read(0, junk, sizeof(junk)) <= 0) {
		w->p[POLL_STDIN].fd = -1;
		process_stop(ps, "end of standard input", true);
	}
	process_resolve(ps, w->name, w->names);
	process_spawn_take(ps, w->app, w->apps);
	process_control_take(ps, w->control, w->controls);
	process_drain_check(ps);
	if (w->p[POLL_HELPER].revents != 0 && !process_helper_take(ps))
		w->p[POLL_HELPER].fd = -1;
	process_reload_more(ps);
	process_upgrade_more(ps);
	process_renew_more(ps);
	process_retired_check(ps);
	process_reap(ps);
}

static bool
stop_takes_too_long(const struct process *ps, struct waits *w)
{
	if (!ps->stopping)
		return (false);
	if (w->stop_by == 0)
		w->stop_by = clock_mono_ns() + STOP_MS * NS_PER_MS;
	if (clock_mono_ns() <= w->stop_by)
		return (false);
	log_event(LOG_WARN, NULL, "stop.timeout", LF_STR("why", "a worker did not end in time"));
	return (true);
}

void
process_loop(struct process *ps)
{
	struct waits w;

	waits_init(ps, &w);
	while (!list_empty(&ps->generations)) {
		if (ps->reopen)
			reopen_logs(ps);
		if (!wait_for_events(ps, &w))
			break;
		take_events(ps, &w);
		if (stop_takes_too_long(ps, &w))
			break;
	}
}
