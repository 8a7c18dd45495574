/* fcgi-stat-accel/main.c -- options, limits and signals; then threads and the loop. */

#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "fcgi-stat-accel/listen.h"
#include "fcgi-stat-accel/options.h"
#include "fcgi-stat-accel/serve.h"
#include "fcgi-stat-accel/touch.h"
#include "fcgi-stat-accel/work.h"

#define READAHEAD_MAX	  (1024 * 1024 * 1024)
#define CONNS_MAX	  65536
#define FDS_OF_A_THREAD	  3		/* its pair of sockets, and the file */
#define FDS_OF_OURS	  32

/* ---------------------------------------------------------------- what it needs to run */

static int
add_roots(const struct options *o, struct touch *t)
{
	int err;

	for (const char *const *dir = o->warm.roots; dir != NULL && *dir != NULL; dir++) {
		err = touch_add_root(t, *dir);
		if (err == -ENOSYS) {
			complain("--root needs openat2(2): Linux 5.6 or newer");
			return (EX_OSERR);
		}
		if (err != 0) {
			complain("--root %s: %s", *dir, g_strerror(-err));
			return (err == -EACCES || err == -EPERM ? EX_NOPERM : EX_CONFIG);
		}
	}
	return (0);
}

/* So many that a thread never finds the last descriptor taken by a connection. */
static unsigned
choose_max_conns(unsigned threads)
{
	const rlim_t ours = FDS_OF_OURS + (rlim_t)threads * FDS_OF_A_THREAD;
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return (1);
	r.rlim_cur = MAX(r.rlim_cur, MIN(r.rlim_max, CONNS_MAX + ours));
	setrlimit(RLIMIT_NOFILE, &r);
	getrlimit(RLIMIT_NOFILE, &r);
	return (r.rlim_cur > ours ? (unsigned)MIN(r.rlim_cur - ours, CONNS_MAX) : 1);
}

/* Blocked before there are threads, so that each inherits it and only the loop hears of them. */
static int
catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);	/* there is no log to reopen */
	return (signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

static int
open_listener(const struct options *o, struct listener **listener)
{
	const struct listen_conf conf = {
		.address = o->listen,
		.peers = g_getenv("FCGI_WEB_SERVER_ADDRS"),
		.allow_any = o->allow_any,
	};
	char *why = NULL;
	int code;

	code = listen_start(&conf, listener, &why);
	if (code != 0)
		complain("%s", why);
	g_free(why);
	return (code);
}

static int
serve(struct work_conf *conf, struct listener **listener)
{
	struct serve_conf sc = {
		.threads = conf->threads,
		.max_conns = choose_max_conns(conf->threads),
		.signal_fd = catch_signals(),
	};
	struct work *work;
	int err;

	if (sc.signal_fd < 0) {
		complain("signalfd: %s", g_strerror(errno));
		return (EX_OSERR);
	}
	err = work_start(conf, &work);
	if (err != 0) {
		complain("cannot start %u threads: %s", conf->threads, g_strerror(-err));
		return (EX_OSERR);
	}
	err = serve_run(&sc, listener, work);
	if (err == -EBUSY) {
		complain("ended while a thread was still waiting for a file");
		_exit(0);		/* it may wait for ever */
	}
	if (err != 0)
		complain("epoll: %s", g_strerror(-err));
	work_stop(&work);
	close(sc.signal_fd);
	return (err != 0 ? EX_OSERR : 0);
}

static int
run(const struct options *o, struct touch *t)
{
	struct stats stats = { 0 };
	struct work_conf conf = { .threads = o->threads, .accel = &o->accel, .touch = t, .stats = &stats };
	struct listener *listener = NULL;
	int code;

	code = add_roots(o, t);
	if (code == 0)
		code = open_listener(o, &listener);
	if (code == 0)
		code = serve(&conf, &listener);
	listen_stop(&listener);
	return (code);
}

int
main(int argc, char **argv)
{
	struct options o;
	struct touch *t;
	int code = options_read(argc, argv, &o);

	if (code == OPTIONS_RUN) {
		touch_new(o.warm.how == WARM_READ ? MIN(o.warm.before, READAHEAD_MAX) : 0, &t);
		code = run(&o, t);
		touch_free(&t);
	}
	options_free();
	return (code);
}
