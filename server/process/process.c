/* server/process/process.c -- see process.h
 *
 * A generation is one configuration with its workers and pools; reload.c starts the next one.
 */
#include "server/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/meters.h"
#include "io/disk/pools.h"
#include "io/io.h"
#include "io/start/lock_memory.h"
#include "io/start/notify.h"
#include "server/conn/bans.h"
#include "server/conn/clients.h"
#include "server/conn/conn.h"
#include "server/conn/handover.h"
#include "server/process/impl.h"
#include "server/helper/starter.h"
#include "server/worker/worker.h"

#define SAID_MAX (16u << 10) /* bytes kept of the warnings and errors of a reload */

static void
tell_all(struct process *ps, enum worker_mode mode)
{
	struct generation *g;

	list_each(g, &ps->generations, link)
		generation_tell(g, mode);
}

/* ---- the main thread */

void
process_stop(struct process *ps, const char *why, bool now)
{
	/* of a retired server, the first request closes its idle connections */
	if (!now && ps->draining && !handover_is_retired(ps->handover))
		now = true; /* requested twice */
	if (!ps->draining || handover_is_retired(ps->handover))
		log_event(LOG_INFO, NULL, "stopping", LF_STR("by", why),
		    LF_STR("how", now ? "now" : "after the running replies"),
		    LF_U64("limit_s",
			now || list_empty(&ps->generations) ? 0 : process_stop_limit_s(ps)));
	ps->draining = true;
	shared_set(ps->counters_list.leaving, true);
	process_control_stops(ps);
	process_report(ps, "STOPPING=1");
	ps->stopping = ps->stopping || now;
	helper_load_stop(&ps->load);
	process_upgrade_stop(ps);
	handover_close(ps->handover);
	tell_all(ps, now ? WORKER_STOP : ps->upgrade.retired ? WORKER_HUSH : WORKER_DRAIN);
	if (list_empty(&ps->generations)) /* the first one starts */
		return;
	process_drain(ps, process_newest(ps));
	if (ps->upgrade.retired) /* the new server needs the memory */
		io_pools_shrink(process_newest(ps)->pools);
}

void
process_take_signal(struct process *ps)
{
	struct signalfd_siginfo si;

	if (read(ps->signals, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	switch (si.ssi_signo) {
	case SIGTERM: process_stop(ps, "TERM", true); break;
	case SIGINT:
	case SIGQUIT:
		ps->by_manager = notify_is_heard();
		process_quit(ps, si.ssi_signo == SIGINT ? "INT" : "QUIT");
		break;
	case SIGHUP:
		/* the loop does it: code that waits for the helper may hold the table of logs */
		ps->reopen = true;
		break;
	case SIGUSR1: process_reload(ps); break;
	case SIGUSR2: process_upgrade(ps); break;
	}
}

/* While the main thread waits for an answer of the helper. */
static bool
interrupted(void *arg)
{
	struct process *ps = arg;

	process_take_signal(ps);
	return (ps->draining);
}

/* Blocks the signals that would end a server that still reads its configuration. */
void
process_block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
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
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return (signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
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
		log_event(LOG_ERROR, NULL, "listen.none", LF_STR("do", "set server.port"));
		return (EX_CONFIG);
	}
	/* the pid file of a running server is taken over last */
	if (starter_socket() < 0 && process_pidfile(ps, c) != 0)
		return (EX_CANTCREAT);
	return (process_spawn(ps, config) == 0 ? 0 : EX_UNAVAILABLE);
}

static int
start(struct process *ps, struct config *config)
{
	unsigned fds = process_descriptors(config_global(config));
	struct listeners now, all;
	int rc = prepare(ps, config, &now);

	all = ps->listeners; /* inherited ones, which the configuration may not name */
	if (rc != 0)
		config_free(config);
	else if (generation_start(ps, config, &now, fds) != 0)
		rc = EX_CONFIG;
	else {
		process_control_open(ps, process_newest(ps)->config);
		process_unlisten(ps, &all);
		process_spawn_drop(ps);
	}
	return (rc);
}

/* The warnings and errors go to the process that waits for the start: a terminal, or an old
 * server. */
static void
say_what_came(struct process *ps)
{
	(void)log_overhear(NULL);
	starter_say(buf_as_text(&ps->last.said));
	ps->last.said.n = 0;
}

static void
remove_pidfile(struct process *ps)
{
	if (ps->pidfile != NULL)
		(void)helper_remove_pidfile(ps->helper, ps->pidfile);
	free(ps->pidfile);
	ps->pidfile = NULL;
}

/* The last step of a start.  In an upgrade it is the one that cannot be undone. */
static int
take_place(struct process *ps)
{
	const struct conf *c = config_global(process_newest(ps)->config);
	bool waits = starter_waits(); /* otherwise the old server keeps its pid file */
	bool upgrades = starter_socket() >= 0, ready;

	if (waits && upgrades && process_pidfile(ps, c) != 0) {
		starter_leave();
		return (EX_CANTCREAT);
	}
	say_what_came(ps);
	ready = waits && (upgrades ? process_take_place() : starter_ready());
	if (upgrades && ready)
		(void)starter_ready();
	else if (upgrades)
		remove_pidfile(ps); /* before the old server takes it back */
	starter_leave();
	if (ready)
		return (0);
	log_event(LOG_ERROR, NULL, "start.abandoned",
	    LF_STR("why", "the process that waited for this start has ended"));
	return (EX_TEMPFAIL);
}

static void
say_ready(struct process *ps)
{
	size_t i;

	for (i = 0; i < ps->listeners.n; i++)
		log_event(LOG_INFO, NULL, "listening", LF_STR("address", ps->listeners.v[i].name),
		    LF_U64("workers", process_newest(ps)->nworkers));
	process_report(ps, "READY=1");
	process_watch_loops(ps);
}

/* -1: the connection is standard input, as inetd passes it; one request, then exit. */
static int
serve_one(struct process *ps)
{
	struct generation *g = process_newest(ps);
	union io_addr peer;
	socklen_t len = sizeof(peer);
	int fd;

	memset(&peer, 0, sizeof(peer));
	if (getpeername(0, &peer.sa, &len) != 0 || (fd = fcntl(0, F_DUPFD_CLOEXEC, 3)) < 0) {
		fprintf(stderr, "accel-server: -1 needs a connected socket as standard input, as "
				"inetd passes it\n");
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

	process_reap(ps); /* its worker has no thread: it has ended from the start */
	return (rc);
}

static int
run(struct process *ps, struct config *config)
{
	bool upgrades = starter_socket() >= 0;
	int rc = start(ps, config);

	if (rc != 0)
		return (rc);
	rc = take_place(ps);
	if (rc == 0) {
		generation_adopts(ps, process_newest(ps));
		say_ready(ps);
	} else if (!ps->draining) {
		/* In an upgrade its workers have accepted connections, which get their replies
		 * first; the supervisor limits that time. */
		ps->abandoned = true;
		process_stop(ps, "a failed start", !upgrades);
	}
	process_loop(ps);
	return (rc);
}

/* Runs before there are threads, which inherit its settings.  The helper opens logs, ports and the
 * pid file. */
static int
confine(struct process *ps, const struct config *config)
{
	const struct conf *c = config_global(config);
	struct lock_memory lm;

	process_lock_program(config, &lm);
	if (process_become(c) != 0)
		return (EX_NOPERM);
	process_core_files(c);
	process_lock_rest(c, &lm);
	return (process_sandbox(ps, config) == 0 ? 0 : EX_CONFIG);
}

/* Makes the objects that all generations share. */
static bool
shared_make(struct process *ps)
{
	ps->clients = clients_new();
	ps->tunnels = clients_new();
	ps->meters = meters_new(METERS_SETS);
	ps->bans = bans_new();
	if (ps->clients != NULL && ps->tunnels != NULL && ps->bans != NULL && ps->meters != NULL)
		ps->handover = handover_new(ps->clients);
	if (ps->handover == NULL)
		process_start_failed(-ENOMEM);
	return (ps->handover != NULL);
}

static void
shared_free(struct process *ps)
{
	counters_list_free(&ps->counters_list);
	handover_free(ps->handover);
	clients_free(ps->clients);
	clients_free(ps->tunnels);
	meters_free(ps->meters);
	bans_free(ps->bans);
}

static void
process_init(struct process *ps, const struct options *opt, struct helper *helper)
{
	*ps = (struct process){ .opt = opt,
		.helper = helper,
		.load.fd = -1,
		.upgrade.fd = -1,
		.renewal.load.fd = -1,
		.control.fd = -1,
		.starter = getuid(),
		.started_at = (time_t)(clock_wall_ns() / NS_PER_S),
		.started_ns = clock_mono_ns(),
		.cgi.block = CGI_BLOCK };
	buf_init(&ps->last.said, SAID_MAX);
	counters_list_init(&ps->counters_list);
	ps->counters_list.first_started_s = starter_chain().first_s;
	ps->counters_list.upgrades = starter_chain().upgrades;
	list_init(&ps->generations);
	list_init(&ps->access_files);
	ps->signals = signals_open();
	if (helper != NULL)
		helper_interrupted_by(helper, ps->signals, interrupted, ps);
	(void)log_overhear(&ps->last.said);
}

static void
process_end(struct process *ps)
{
	(void)log_overhear(NULL);
	buf_free(&ps->last.said);
	close(ps->signals);
}

static void
say_stopped(struct process *ps, int rc)
{
	remove_pidfile(ps);
	log_suppressed_flush();
	log_event(LOG_INFO, NULL, "stopped",
	    LF_STR("how", rc == 0                    ? "cleanly"
			  : ps->ended_without_helper ? "without its helper process"
						     : "could not start"));
	process_close_logs(ps);
}

int
process_run(const struct options *opt, struct config *config, struct helper *helper)
{
	struct process ps;
	int rc;

	/* a reload starts the same number of workers again */
	heap_begin(2 * generation_workers(config_global(config)));
	process_init(&ps, opt, helper);
	process_early_lines(&ps, config_global(config));
	rc = opt->one ? 0 : confine(&ps, config);
	if (process_errorlog(&ps, config_global(config)) != 0) {
		config_free(config);
		process_end(&ps);
		return (ps.draining ? 0 : EX_CANTCREAT);
	}
	if (!shared_make(&ps))
		rc = EX_OSERR;
	process_pressure_watch(&ps, true);
	if (rc == 0)
		rc = opt->one ? run_one(&ps, config) : run(&ps, config);
	else
		config_free(config);
	if (ps.draining && !ps.abandoned)
		rc = 0; /* a signal ended the start */
	if (rc == 0 && ps.ended_without_helper)
		rc = EX_OSERR;
	say_what_came(&ps);
	if (rc != 0 && !opt->one)
		process_say_failed(&ps);
	helper_load_stop(&ps.load);
	process_renew_stop(&ps);
	if (!list_empty(&ps.generations)) {
		process_close_logs(&ps); /* a thread is stuck in the kernel: exit without it */
		_exit(rc);
	}
	process_pressure_watch(&ps, false);
	say_stopped(&ps, rc);
	process_end(&ps);
	shared_free(&ps);
	return (rc);
}
