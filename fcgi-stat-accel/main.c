/* fcgi-stat-accel/main.c -- options, then the socket, threads and the loop; at the end the same backwards. */

#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "fcgi-stat-accel/listener.h"
#include "fcgi-stat-accel/log.h"
#include "fcgi-stat-accel/options.h"
#include "fcgi-stat-accel/serve.h"
#include "fcgi-stat-accel/signals.h"
#include "fcgi-stat-accel/status.h"
#include "fcgi-stat-accel/user.h"
#include "fcgi-stat-accel/warm/warm.h"
#include "io/disk/pools.h"
#include "io/file.h"
#include "io/io.h"
#include "io/notify.h"
#include "io/sandbox.h"
#include "io/std.h"

#define CONNS_MAX	65536
#define FDS_OF_A_THREAD 8		/* four of each kind may be at work when devices hang, each with a file and its way there */
#define FDS_OF_OURS	128		/* 64 files that are read behind their answer, roots, and what is always open */
#define STUCK_MS	30000		/* a device that holds every thread for so long hangs: no more wait for it */
#define FAREWELL_MS	100		/* for threads to end; who hangs in the kernel is left there */

/* All that runs: made from the top, freed from the bottom. */
struct program {
	const struct options *opt;
	struct stats	 stats;
	struct status	 status;
	struct listener *listener;
	struct io_pools *pools;
	struct io	*io;
	struct warm	*warm;
	int		 signal_fd;
};

/* Before anything else is opened: a wrong root is the most likely mistake. */
static int
check_roots(const char *const *root)
{
	int fd, err;

	for (; root != NULL && *root != NULL; root++) {
		err = io_root_open(*root, &fd);
		if (err == 0) {
			io_root_close(fd);
			continue;
		}
		complain("--root %s: %s", *root, g_strerror(-err));
		return (err == -EACCES || err == -EPERM ? EX_NOPERM : EX_CONFIG);
	}
	return (0);
}

static int
open_listener(struct program *p)
{
	const struct listener_conf conf = {
		.address = p->opt->listen,
		.peers = g_getenv("FCGI_WEB_SERVER_ADDRS"),
		.users = p->opt->peer_users,
		.allow_any = p->opt->allow_any,
		.owner = p->opt->user.name != NULL ? &p->opt->user : NULL,
	};
	char *why = NULL;
	int code;

	code = listener_start(&conf, &p->listener, &why);
	if (code != 0)
		complain("%s", why);
	g_free(why);
	return (code);
}

static int
drop_root(struct program *p)
{
	int err = p->opt->user.name != NULL ? user_become(&p->opt->user) : 0;

	if (err == 0)
		return (0);
	complain("--user %s: %s", p->opt->user.name, g_strerror(-err));
	return (EX_NOPERM);
}

static int
open_signals(struct program *p)
{
	int err = signals_open(&p->signal_fd);

	if (err == 0)
		return (0);
	complain("cannot take signals: %s", g_strerror(-err));
	return (EX_OSERR);
}

static bool
has_roots(const struct options *o)
{
	return (o->warm.roots != NULL && o->warm.roots[0] != NULL);
}

static struct sandbox_path *
sandbox_paths(const struct options *o)
{
	GArray *v = g_array_new(TRUE, TRUE, sizeof(struct sandbox_path));
	const struct sandbox_path null = { "/dev/null", SANDBOX_WRITE | SANDBOX_OPTIONAL };	/* a chroot(2) may lack it */
	const struct sandbox_path log = { o->log, SANDBOX_APPEND | SANDBOX_BESIDE | SANDBOX_OPTIONAL };
	struct sandbox_path p = { NULL, SANDBOX_READ };

	for (const char *const *root = o->warm.roots; *root != NULL; root++) {
		p.path = *root;
		g_array_append_val(v, p);
	}
	g_array_append_val(v, null);
	if (o->log != NULL)
		g_array_append_val(v, log);
	p = (struct sandbox_path){ NULL, SANDBOX_REMOVE | SANDBOX_BESIDE };
	p.path = o->user.name == NULL && o->listen != NULL ? address_path(text_of(o->listen)).p : NULL;
	if (p.path != NULL)
		g_array_append_val(v, p);
	return ((struct sandbox_path *)g_array_free(v, FALSE));
}

/* Before there are threads, which inherit it, and after all that lies elsewhere has been opened. */
static int
enter_sandbox(struct program *p)
{
	struct sandbox_path *paths;
	char why[512];
	int err;

	if (!p->opt->sandbox)
		return (0);
	notify_open();
	paths = has_roots(p->opt) ? sandbox_paths(p->opt) : NULL;
	err = sandbox_enter(SANDBOX_ACCELERATOR, paths, &p->status.sandbox, why, sizeof(why));
	g_free(paths);
	if (err != 0)
		complain("the sandbox cannot be entered: %s\n--no-sandbox starts without it", why);
	return (err != 0 ? EX_OSERR : 0);
}

static int
open_log(struct program *p)
{
	int err = accel_log_open(p->opt->log);

	if (err != 0) {
		complain("--log %s: %s%s", p->opt->log != NULL ? p->opt->log : "", g_strerror(-err),
		    p->opt->user.name != NULL && err == -EACCES ? "; the user of --user must be able to write to its directory" : "");
		return (EX_CANTCREAT);
	}
	if (p->opt->sandbox)
		sandbox_log(&p->status.sandbox, has_roots(p->opt));
	return (0);
}

/* So many that a thread never finds the last descriptor taken by a connection; where there are very few (ulimit -n 64) it may,
 * and then the file is answered with 503. */
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
	return ((unsigned)CLAMP(r.rlim_cur > ours ? r.rlim_cur - ours : 0, MAX(r.rlim_cur / 4, 1), CONNS_MAX));
}

static int
start_loop(struct program *p)
{
	const struct io_pools_conf pools = {
		.stat_threads = p->opt->threads, .read_threads = p->opt->threads,
		.per_device = p->opt->per_device, .max_queue = p->opt->queue, .stuck_ms = STUCK_MS,
	};
	struct io_conf conf = { .backend = file_backends[0] };
	int err = io_pools_new(&pools, &p->pools);

	if (err != 0) {
		complain("cannot start %u threads: %s", p->opt->threads, g_strerror(-err));
		return (EX_OSERR);
	}
	conf.pools = p->pools;
	p->io = io_new(&conf, &err);
	if (err == 0)
		return (0);
	complain("cannot start the loop: %s", g_strerror(-err));
	return (EX_OSERR);
}

static int
start_warm(struct program *p)
{
	const char *root = NULL;
	int err = warm_new(&p->opt->warm, p->io, &p->stats, &p->warm, &root);

	if (err == 0)
		return (0);
	if (err == -ENOSYS)
		complain("--root needs openat2(2): Linux 5.6 or newer");
	else
		complain("cannot look at files%s%s: %s", root != NULL ? " below " : "", root != NULL ? root : "",
		    g_strerror(-err));
	return (EX_OSERR);
}

static void
describe(struct program *p)
{
	p->status.status_path = p->opt->status_path;
	p->status.ping_path = p->opt->ping_path;
	p->status.mode = p->opt->accel.mode == MODE_AUTH ? "auth" : "sendfile";
	p->status.stats = &p->stats;
	p->status.pools = p->pools;
	p->status.started_ns = clock_mono_ns();
}

static int
serve(struct program *p)
{
	const struct serve_conf conf = {
		.io = p->io, .warm = p->warm, .stats = &p->stats, .accel = &p->opt->accel,
		.status = &p->status, .timing = p->opt->timing,
		.max_conns = choose_max_conns(p->opt->threads), .signal_fd = p->signal_fd,
	};
	int err;

	describe(p);
	notify_manager("READY=1");
	err = serve_run(&conf, &p->listener);
	if (err == -EBUSY) {
		complain("ended while a thread was still waiting for a file");
		accel_log_close();
		_exit(0);		/* it may wait for ever */
	}
	if (err != 0)
		complain("cannot serve: %s", g_strerror(-err));
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
	if (p->pools != NULL)
		io_pools_free(p->pools, FAREWELL_MS);
	accel_log_close();
}

static int
run(const struct options *o)
{
	struct program p = { .opt = o, .signal_fd = -1 };
	int code = check_roots(o->warm.roots);

	if (code == 0)
		code = open_listener(&p);
	if (code == 0)
		code = open_signals(&p);
	if (code == 0)
		code = drop_root(&p);
	if (code == 0)
		code = enter_sandbox(&p);
	if (code == 0)
		code = open_log(&p);
	if (code == 0)
		code = start_loop(&p);
	if (code == 0)
		code = start_warm(&p);
	if (code == 0)
		code = serve(&p);
	stop(&p);
	return (code);
}

int
main(int argc, char **argv)
{
	struct options o;
	int code;

	if (io_std_open() != 0)
		return (EX_OSERR);
	code = options_read(argv, &o);
	if (code == OPTIONS_RUN)
		code = run(&o);
	options_free();
	return (code);
}
