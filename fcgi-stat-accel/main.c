/* fcgi-stat-accel/main.c -- options, then socket, threads and loop; the end frees them in reverse
 * order.
 */

#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/log.h"
#include "fcgi-stat-accel/advice_show.h"
#include "fcgi-stat-accel/counters.h"
#include "fcgi-stat-accel/listener.h"
#include "fcgi-stat-accel/log.h"
#include "fcgi-stat-accel/open_asks.h"
#include "fcgi-stat-accel/options.h"
#include "fcgi-stat-accel/peer.h"
#include "fcgi-stat-accel/pin.h"
#include "fcgi-stat-accel/serve.h"
#include "fcgi-stat-accel/status.h"
#include "fcgi-stat-accel/user.h"
#include "files/warm/warm.h"
#include "io/disk/pools.h"
#include "io/file.h"
#include "io/io.h"
#include "io/log/journal.h"
#include "io/start/notify.h"
#include "io/memory/pressure.h"
#include "io/memory/process_status.h"
#include "io/safe_open.h"
#include "io/start/sandbox.h"
#include "io/start/std_fds.h"

#define CONNS_MAX 65536
/* Four threads of each kind may run when devices hang, each with a file and the directories on
 * its path. */
#define FDS_OF_A_THREAD 8
/* 64 files that are read ahead, roots, and descriptors that are always open. */
#define FDS_OF_OURS 128
/* a device that holds all threads for this long hangs: no more requests wait for it */
#define STUCK_MS 30000
/* for threads to end; a thread that hangs in the kernel is left behind */
#define FAREWELL_MS 100
/* USR1: each request is answered at --deadline; without one it may take this long. */
#define PATIENCE_MORE_MS 500u
#define PATIENCE_MS      60000u

/* Everything that runs: made from the top, freed from the bottom. */
struct program {
	const struct options *opt;
	struct all_counters counters;
	struct advice advice;
	struct status status;
	struct listener *listener;
	struct io_pools *pools;
	struct io *io;
	struct warm *warm;
	struct open_asks *asks;
	uint64_t pinned_max; /* bytes of --pin that may be locked */
	int signal_fd;
};

/* Before anything else is opened: a wrong root is the most likely mistake. */
static int
check_roots(struct program *p)
{
	const char *const *root = p->opt->warm.roots;
	int fd, err;

	for (; root != NULL && *root != NULL; root++) {
		err = io_root_open(*root, &fd);
		if (err == 0) {
			io_close_fd(fd);
			continue;
		}
		print_error("--root %s: %s", *root, io_root_error(err));
		return (err == -EACCES ? EX_NOPERM : err == -ENOSYS ? EX_OSERR : EX_CONFIG);
	}
	p->asks = open_asks_find(p->opt->warm.roots);
	return (0);
}

static bool
has_roots(const struct options *o)
{
	return (o->warm.roots != NULL && o->warm.roots[0] != NULL);
}

static int
open_listener(struct program *p)
{
	const struct listener_conf conf = {
		.address = p->opt->listen,
		.peers = g_getenv("FCGI_WEB_SERVER_ADDRS"),
		.users = p->opt->peer_users,
		.allow_any = p->opt->allow_any,
		.replace = p->opt->replace,
		.owner = p->opt->user.uid != 0 ? &p->opt->user : NULL,
	};
	char *why = NULL;
	int code;

	code = listener_start(&conf, &p->listener, &why);
	if (code != 0)
		print_error("%s", why);
	g_free(why);
	return (code);
}

static int
drop_root(struct program *p)
{
	int err;

	pin_raise_limit(p->opt->pin);
	err = p->opt->user.name != NULL ? user_become(&p->opt->user) : 0;
	if (err == 0) {
		peer_begin();
		p->pinned_max = pin_start(p->opt->pin, &p->counters.pins);
		return (0);
	}
	print_error("--user %s: %s%s", p->opt->user.name, g_strerror(-err),
	    has_roots(p->opt) ? "" : "; it is the default without --root=DIR");
	return (EX_NOPERM);
}

/* ---------------------------------------------------------------- signals
 *
 * The loop receives them as bytes on a socket, like any other input.  Later threads must block the
 * signals, as the pools of io/ do. */

static const int caught[] = { SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGHUP, SIGUSR2 };
static int near_end = -1;

/* After a hundred unread signals another signal makes no difference. */
static void
note(int number)
{
	const int saved = errno;
	const unsigned char byte = (unsigned char)number;

	(void)!send(near_end, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	errno = saved;
}

static void
catch_all(void (*handler)(int))
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };

	sigfillset(&sa.sa_mask);
	for (size_t i = 0; i < G_N_ELEMENTS(caught); i++)
		sigaction(caught[i], &sa, NULL);
}

/* From now on each signal writes one byte to *fdp: its number. */
static int
signals_open(int *fdp)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) < 0)
		return (-errno);
	near_end = fd[0];
	*fdp = fd[1];
	catch_all(note);
	signal(SIGPIPE, SIG_IGN);
	return (0);
}

/* The signals are ignored from now on. */
static void
signals_close(int fd)
{
	catch_all(SIG_IGN);
	close(near_end);
	close(fd);
	near_end = -1;
}

static int
open_signals(struct program *p)
{
	int err = signals_open(&p->signal_fd);

	if (err == 0)
		return (0);
	print_error("cannot receive signals: %s", g_strerror(-err));
	return (EX_OSERR);
}

static struct sandbox_path *
sandbox_paths(const struct options *o)
{
	GArray *v = g_array_new(TRUE, TRUE, sizeof(struct sandbox_path));
	/* it may be missing after chroot(2) */
	const struct sandbox_path null = { "/dev/null", SANDBOX_WRITE | SANDBOX_OPTIONAL };
	const struct sandbox_path log = { o->log,
		SANDBOX_APPEND | SANDBOX_BESIDE | SANDBOX_OPTIONAL };
	struct sandbox_path p = { NULL, SANDBOX_READ };

	for (const char *const *root = o->warm.roots; *root != NULL; root++) {
		p.path = *root;
		g_array_append_val(v, p);
	}
	g_array_append_val(v, null);
	if (o->log != NULL)
		g_array_append_val(v, log);
	p = (struct sandbox_path){ NULL, SANDBOX_REMOVE | SANDBOX_BESIDE };
	p.path = o->user.uid == 0 && o->listen != NULL ? address_path(text_of(o->listen)).p : NULL;
	if (p.path != NULL)
		g_array_append_val(v, p);
	return ((struct sandbox_path *)g_array_free(v, FALSE));
}

/* Call it before there are threads, which inherit the sandbox, and after all files outside of it
 * were opened. */
static int
enter_sandbox(struct program *p)
{
	struct sandbox_path *paths;
	char why[512];
	int err;

	process_status_open();
	pressure_open();
	if (!p->opt->sandbox)
		return (0);
	notify_open();
	(void)journal_open();
	paths = has_roots(p->opt) ? sandbox_paths(p->opt) : NULL;
	err = sandbox_enter(SANDBOX_ACCELERATOR, paths, &p->status.sandbox, why, sizeof(why));
	g_free(paths);
	if (err != 0)
		print_error("cannot enter the sandbox: %s\n--no-sandbox starts without it", why);
	return (err != 0 ? EX_OSERR : 0);
}

/* A client that can forge one request can read the file of any X-Sendfile, so an answer should name
 * only files that the web server may read anyway. */
static void
warn_no_root(const struct options *o)
{
	char uid[24];

	g_snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
	log_event(LOG_WARN, NULL, "root.none",
	    LF_STR("user", o->user.name != NULL ? o->user.name : uid),
	    LF_STR("answered", "every file that this user may read, to everyone who may connect"),
	    LF_STR("change", "--root=DIR names the directory of the site"));
}

static int
open_log(struct program *p)
{
	int err;

	/* the journal gets fields, which are made of text */
	log_set_json(p->opt->log_json != 0 && (p->opt->log != NULL || journal_open() < 0));
	err = accel_log_open(p->opt->log);

	if (err != 0) {
		print_error("--log %s: %s; %s", p->opt->log != NULL ? p->opt->log : "",
		    g_strerror(-err),
		    p->opt->user.uid != 0 && err == -EACCES
			? "the user of --user (--help has its default) must be able to write to "
			  "its directory"
			: safe_open_help(err));
		return (EX_CANTCREAT);
	}
	if (p->opt->sandbox)
		sandbox_log(&p->status.sandbox, has_roots(p->opt));
	listener_log(p->listener);
	open_asks_log(p->asks);
	pin_log(p->opt->pin, p->pinned_max);
	if (!has_roots(p->opt))
		warn_no_root(p->opt);
	return (0);
}

/* The limit leaves enough descriptors for the threads.  With very few (ulimit -n 64) a thread
 * may find none, and its file is answered with 503. */
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
	return ((unsigned)CLAMP(r.rlim_cur > ours ? r.rlim_cur - ours : 0, MAX(r.rlim_cur / 4, 1),
	    CONNS_MAX));
}

static int
start_loop(struct program *p)
{
	const struct io_pools_conf pools = {
		.stat_threads = p->opt->threads,
		.read_threads = p->opt->threads,
		.per_device = p->opt->per_device,
		.max_queue = p->opt->queue,
		.stuck_ms = STUCK_MS,
		.tells_awake = true, /* advice.h */
	};
	struct io_conf conf = { .backend = file_backends[0] };
	int err = io_pools_new(&pools, &p->pools);

	if (err != 0) {
		print_error("cannot start %u threads: %s", p->opt->threads, g_strerror(-err));
		return (EX_OSERR);
	}
	conf.pools = p->pools;
	p->io = io_new(&conf, &err);
	if (err == 0)
		return (0);
	print_error("cannot start the loop: %s", g_strerror(-err));
	return (EX_OSERR);
}

static int
start_warm(struct program *p)
{
	const char *root = NULL;
	int err = warm_new(&p->opt->warm, p->io, &p->counters.files, &p->counters.accel.warm,
	    &p->warm, &root);

	if (err == 0)
		return (0);
	print_error("cannot open files%s%s: %s", root != NULL ? " below " : "",
	    root != NULL ? root : "", io_root_error(err));
	return (EX_OSERR);
}

static void
forgotten(void *arg, bool gone)
{
	advice_forgotten(arg, gone);
}

static bool
forget(struct advice *a, const char *path)
{
	return (warm_forget(a->forget_arg, path, forgotten, a));
}

static void
describe(struct program *p)
{
	p->status.status_path = p->opt->status_path;
	p->status.ping_path = p->opt->ping_path;
	p->status.mode = p->opt->accel.mode == MODE_AUTH ? "auth" : "sendfile";
	p->status.counters = &p->counters;
	p->status.advice = &p->advice;
	p->advice.roots = p->opt->warm.roots;
	p->advice.forget = p->opt->prove_order ? forget : NULL;
	p->advice.forget_arg = p->warm;
	p->status.accel = &p->opt->accel;
	p->status.warm = &p->opt->warm;
	p->status.pools = p->pools;
	p->status.open_asks = open_asks_count(p->asks);
	p->status.started_ns = clock_mono_ns();
	p->status.started_s = clock_wall_ns() / NS_PER_S;
}

/* From here on new connections come to this process; the old one finishes its own. */
static int
replace(struct program *p)
{
	char pid[16];
	pid_t old;
	int err = p->opt->replace ? listener_replace(p->listener, &old) : 0;

	if (err != 0) {
		print_error("--replace %s: %s", p->opt->listen, g_strerror(-err));
		return (EX_CANTCREAT);
	}
	if (!p->opt->replace || old == 0)
		return (0);
	g_snprintf(pid, sizeof(pid), "%d", (int)old);
	if (old > 0)
		log_event(LOG_INFO, NULL, "replaced", LF_STR("pid", pid),
		    LF_STR("then", "it answers its requests and ends"));
	else
		log_event(LOG_WARN, NULL, "replaced.unknown",
		    LF_STR("why", "the process that listened there is not known"),
		    LF_STR("do", "send USR1 to the old process"));
	return (0);
}

static int
serve(struct program *p)
{
	const struct serve_conf conf = {
		.conns = { .io = p->io,
		    .warm = p->warm,
		    .counters = &p->counters.accel,
		    .accel = &p->opt->accel,
		    .advice = &p->advice,
		    .status = &p->status,
		    .timing = p->opt->timing },
		.max_conns = choose_max_conns(p->opt->threads),
		.signal_fd = p->signal_fd,
		.patience_ms = p->opt->warm.deadline_ms != 0
				   ? p->opt->warm.deadline_ms + PATIENCE_MORE_MS
				   : PATIENCE_MS,
	};
	int err;

	describe(p);
	accel_log_started();
	notify_manager("READY=1");
	err = serve_run(&conf, &p->listener);
	if (err == -EBUSY) {
		print_error("ended while a thread was still waiting for a file");
		accel_log_close();
		_exit(0); /* a thread may wait for ever */
	}
	if (err != 0)
		print_error("cannot serve: %s", g_strerror(-err));
	return (err != 0 ? EX_OSERR : 0);
}

static void
stop(struct program *p)
{
	listener_stop(&p->listener);
	if (p->signal_fd >= 0)
		signals_close(p->signal_fd);
	if (p->warm != NULL)
		warm_free(&p->warm);
	while (p->io != NULL && io_busy(p->io))
		io_run(p->io);
	io_free(p->io);
	open_asks_free(p->asks);
	if (p->pools != NULL)
		io_pools_free(p->pools, FAREWELL_MS);
	accel_log_close();
}

static int
run(const struct options *o)
{
	static int (*const steps[])(struct program *) = { check_roots, open_listener, open_signals,
		drop_root, enter_sandbox, open_log, start_loop, start_warm, replace, serve };
	struct program p = { .opt = o,
		.advice = { .window_ns = o->advice_ms * NS_PER_MS, .say = advice_log },
		.signal_fd = -1 };
	int code = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(steps) && code == 0; i++)
		code = steps[i](&p);
	stop(&p);
	return (code);
}

int
main(int argc, char **argv)
{
	struct options o;
	int code;

	if (io_open_std_fds() != 0)
		return (EX_OSERR);
	accel_log_begin(accel_command.name);
	code = accel_options_read(argv, &o);
	if (code == OPTIONS_RUN)
		code = run(&o);
	return (code);
}
