/* server/process/process.c -- see process.h
 *
 * A generation is one configuration with its workers and pools; reload.c starts the next one.
 */
#include "server/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "io/listen.h"
#include "io/notify.h"
#include "base/counter.h"
#include "server/conn/conn.h"
#include "server/process/impl.h"

#define STOP_MS 1500u    /* TERM: workers are waited for this long, then left */
#define POLL_MS 50       /* how often draining generations are looked at */
#define COUNTERS_MAX (sizeof(struct counters) / sizeof(uint64_t))

static struct generation *
newest(struct process *ps)
{
	return (list_entry(ps->generations.prev, struct generation, link));
}

/* Sockets that the newest generation does without refuse clients.  Not at once: its workers must have stopped
 * accepting, or they would log a failure. */
static void
refuse_dropped(struct process *ps, const struct generation *g)
{
	size_t i, k;

	if (g->retired_ns == 0 || clock_mono_ns() - g->retired_ns < POLL_MS * NS_PER_MS)
		return;
	for (i = 0; i < g->listeners.n; i++) {
		for (k = 0; k < ps->listeners.n && ps->listeners.v[k].fd != g->listeners.v[i].fd; k++)
			;
		if (k == ps->listeners.n)
			listen_refuse(g->listeners.v[i].fd);
	}
}

/* What the workers have counted since the start, at HUP and when some of them have ended; zeros are left out. */
static void
log_counters(const struct process *ps)
{
	struct log_field f[COUNTERS_MAX];
	const struct counter_info *ci;
	const struct tally *t;
	size_t n = 0;

	for (ci = counter_infos; ci->name != NULL && n < COUNTERS_MAX; ci++) {
		uint64_t sum = 0;

		for (t = tally_first(&ps->tallies); t != NULL; t = t->next)
			sum += counter_get(&t->counters, ci);
		if (sum != 0)
			f[n++] = LF_U64(ci->name, sum);
	}
	log_event_fields(LOG_INFO, NULL, "counters", f, n);
	log_suppressed_flush();
}

static void
reap(struct process *ps)
{
	struct list *l, *tmp;

	list_foreach_safe(l, tmp, &ps->generations) {
		struct generation *g = list_entry(l, struct generation, link);

		refuse_dropped(ps, g);
		if (!generation_ended(g))
			continue;
		list_del(&g->link);
		process_unlisten(ps, &g->listeners);
		log_counters(ps);
		generation_free(g);
		process_drop_accesslogs(ps);
	}
}

static void
tell_all(struct process *ps, enum worker_mode mode)
{
	struct list *l, *tmp;

	list_foreach_safe(l, tmp, &ps->generations)
		generation_tell(list_entry(l, struct generation, link), mode);
}

/* ---- the main thread */

static void
stop(struct process *ps, const char *why, bool now)
{
	if (!now && ps->draining)
		now = true; /* asked twice */
	if (!ps->draining)
		log_event(LOG_INFO, NULL, "stopping", LF_STR("by", why), LF_STR("how", now ? "now" : "after the running replies"));
	notify_manager("STOPPING=1");
	ps->draining = true;
	ps->stopping = ps->stopping || now;
	process_reload_stop(ps);
	handover_close(ps->handover);
	tell_all(ps, now ? WORKER_STOP : WORKER_DRAIN);
	if (!list_empty(&ps->generations)) /* empty while the first one starts */
		process_drain(ps, newest(ps));
}

static void
take_signal(struct process *ps)
{
	struct signalfd_siginfo si;

	if (read(ps->signals, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	switch (si.ssi_signo) {
	case SIGTERM:
		stop(ps, "TERM", true);
		break;
	case SIGINT:
	case SIGQUIT:
		stop(ps, si.ssi_signo == SIGINT ? "INT" : "QUIT", false);
		break;
	case SIGHUP:
		ps->reopen = true; /* watch() does it: what waits for the helper may hold the table of logs */
		break;
	case SIGUSR1:
		if (!ps->draining)
			process_reload(ps);
		break;
	}
}

/* While an answer of the helper is waited for. */
static bool
interrupted(void *arg)
{
	struct process *ps = arg;

	take_signal(ps);
	return (ps->draining);
}

static int
signals_open(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return (signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

static void
reopen_logs(struct process *ps)
{
	ps->reopen = false;
	process_reopen_logs(ps);
	log_counters(ps);
}

static void
watch(struct process *ps)
{
	struct pollfd p[4] = {{.fd = ps->signals, .events = POLLIN}, {.fd = ps->opt->until_eof ? 0 : -1, .events = POLLIN},
	    {.events = POLLIN}, {.fd = helper_fd(ps->helper), .events = POLLIN}};
	uint64_t stop_by = 0;
	char junk[256];

	while (!list_empty(&ps->generations)) {
		bool waiting = ps->draining || ps->generations.next != ps->generations.prev;

		if (ps->reopen)
			reopen_logs(ps);
		p[2].fd = ps->load.fd;
		if (poll(p, NELEM(p), waiting ? POLL_MS : p[2].fd >= 0 ? 1000 : -1) < 0 && errno != EINTR)
			break;
		if (p[0].revents != 0)
			take_signal(ps);
		if (p[1].revents != 0 && read(0, junk, sizeof(junk)) <= 0) {
			p[1].fd = -1;
			stop(ps, "end of standard input", true);
		}
		process_drain_mind(ps);
		if (p[3].revents != 0) {
			p[3].fd = -1;
			log_event(LOG_ERROR, NULL, "helper.ended", LF_STR("then", "serving goes on; reloads and HUP fail"),
			    LF_STR("do", "restart the server"));
		}
		process_reload_more(ps);
		reap(ps);
		if (ps->stopping && stop_by == 0)
			stop_by = clock_mono_ns() + STOP_MS * NS_PER_MS;
		if (ps->stopping && clock_mono_ns() > stop_by) {
			log_event(LOG_WARN, NULL, "stop.impatient", LF_STR("why", "a worker did not end in time"));
			break;
		}
	}
}

static int
prepare(struct process *ps, const struct config *config, struct listeners *now)
{
	const struct conf *c = config_global(config);

	if (process_inherit(ps) != 0)
		return (EX_USAGE);
	if (process_listen(ps, config, now) != 0)
		return (EX_UNAVAILABLE);
	if (now->n == 0) {
		log_event(LOG_ERROR, NULL, "listen.nothing", LF_STR("do", "set server.port"));
		return (EX_CONFIG);
	}
	if (process_pidfile(ps, c) != 0)
		return (EX_CANTCREAT);
	ps->has_pidfile = true;
	return (0);
}

static int
start(struct process *ps, struct config *config)
{
	unsigned fds = process_descriptors(config_global(config));
	struct listeners now;
	int rc = prepare(ps, config, &now);

	if (rc != 0)
		config_free(config);
	else if (generation_start(ps, config, &now, fds) != 0)
		rc = EX_CONFIG;
	return (rc);
}

static void
say_ready(struct process *ps)
{
	size_t i;

	for (i = 0; i < ps->listeners.n; i++)
		log_event(LOG_INFO, NULL, "listening", LF_STR("address", ps->listeners.v[i].name),
		    LF_U64("workers", newest(ps)->nworkers));
	notify_manager("READY=1");
}

/* -1: the connection is standard input, as inetd passes it; one request, then the end. */
static int
serve_one(struct process *ps)
{
	struct generation *g = newest(ps);
	union io_addr peer;
	socklen_t len = sizeof(peer);
	int fd;

	memset(&peer, 0, sizeof(peer));
	if (getpeername(0, &peer.sa, &len) != 0 || (fd = fcntl(0, F_DUPFD_CLOEXEC, 3)) < 0) {
		fprintf(stderr, "accel-server: -1 needs a connected socket as standard input, as inetd passes it\n");
		return (EX_USAGE);
	}
	g->workers[0]->draining = true; /* no second request */
	conn_new(g->workers[0], fd, &peer, "stdin");
	while (g->workers[0]->nconns != 0)
		worker_round(g->workers[0]);
	return (0);
}

static int
run_one(struct process *ps, struct config *config)
{
	unsigned fds = process_descriptors(config_global(config));
	int rc = generation_start(ps, config, &ps->listeners, fds) == 0 ? serve_one(ps) : EX_CONFIG;

	reap(ps); /* its worker has no thread: ended from the start */
	return (rc);
}

static int
run(struct process *ps, struct config *config)
{
	int rc = start(ps, config);

	if (rc != 0)
		return (rc);
	say_ready(ps);
	watch(ps);
	return (0);
}

/* Before there are threads, which inherit it.  Logs, ports and the pid file come from the helper. */
static int
confine(struct process *ps, const struct config *config)
{
	if (process_become(config_global(config)) != 0)
		return (EX_NOPERM);
	return (process_sandbox(ps, config) == 0 ? 0 : EX_CONFIG);
}

int
process_run(const struct options *opt, struct config *config, struct helper *helper)
{
	struct process ps = {.opt = opt, .helper = helper, .load.fd = -1};
	const char *pidfile = config_global(config)->pid_file;
	char *pid_path = pidfile != NULL && pidfile[0] != '\0' ? strdup(pidfile) : NULL;
	int rc;

	tallies_init(&ps.tallies);
	list_init(&ps.generations);
	list_init(&ps.access_files);
	ps.signals = signals_open();
	if (helper != NULL)
		helper_interrupted_by(helper, ps.signals, interrupted, &ps);
	process_early_lines(&ps);
	rc = opt->one ? 0 : confine(&ps, config);
	if (process_errorlog(&ps, config_global(config)) != 0) {
		config_free(config);
		free(pid_path);
		return (EX_CANTCREAT);
	}
	ps.clients = clients_new();
	must(ps.clients != NULL);
	ps.handover = handover_new(ps.clients);
	must(ps.handover != NULL);
	if (rc == 0)
		rc = opt->one ? run_one(&ps, config) : run(&ps, config);
	else
		config_free(config);
	if (rc != 0 && !opt->one)
		fprintf(stderr, "accel-server: not started; the error log says why\n");
	process_reload_stop(&ps);
	if (!list_empty(&ps.generations)) {
		process_close_logs(&ps); /* a thread is stuck in the kernel: leave without it */
		_exit(rc);
	}
	if (pid_path != NULL && ps.has_pidfile)
		(void)helper_unpid(helper, pid_path);
	free(pid_path);
	log_suppressed_flush();
	log_event(LOG_INFO, NULL, "stopped", LF_STR("how", rc == 0 ? "cleanly" : "could not start"));
	process_close_logs(&ps);
	tallies_free(&ps.tallies);
	handover_free(ps.handover);
	clients_free(ps.clients);
	close(ps.signals);
	return (rc);
}
