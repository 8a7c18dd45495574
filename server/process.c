/* server/process.c -- see process.h
 *
 * A generation is one configuration with its workers and pools.  A reload starts the next one on the same listening
 * sockets and drains the one before, so no connection is refused or dropped.
 */
#include "server/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/un.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "io/blocking.h"
#include "io/file.h"
#include "io/listen.h"
#include "io/logfile.h"
#include "server/conn.h"
#include "server/worker.h"

#define STOP_MS 1500u    /* TERM: workers are waited for this long, then left */
#define POLL_MS 50       /* how often draining generations are looked at */
#define MAX_LISTENERS 64

struct generation {
	struct list link;
	struct config *config;
	struct io_pools *pools;
	struct worker **workers;
	unsigned nworkers;
};

struct access_file {
	struct list link;
	struct logfile *log;
	char path[];
};

struct process {
	const struct options *opt;
	struct listener listeners[MAX_LISTENERS];
	size_t nlisteners;
	bool inherited;
	struct list generations;      /* newest last; the others drain */
	struct logfile *errorlog;
	pthread_mutex_t lock;         /* access_files: workers ask for them */
	struct list access_files;
	int signals;
	bool draining, stopping;
};

/* ---- logs */

static void
error_sink(void *arg, struct text line)
{
	logfile_line(arg, line);
}

static int
errorlog_open(struct process *ps, const struct conf *c)
{
	const char *path = c->errorlog != NULL && c->errorlog[0] != '\0' ? c->errorlog : NULL;
	int err = logfile_open(path, &ps->errorlog);

	if (err != 0) {
		fprintf(stderr, "accel-server: cannot open server.errorlog \"%s\": %s\n", path, strerror(-err));
		return (err);
	}
	log_set_sink(error_sink, ps->errorlog);
	return (0);
}

static struct logfile *
access_log(void *arg, const char *path)
{
	struct process *ps = arg;
	struct access_file *f = NULL;
	struct list *l, *tmp;
	int err;

	pthread_mutex_lock(&ps->lock);
	list_foreach_safe(l, tmp, &ps->access_files)
		if (strcmp(list_entry(l, struct access_file, link)->path, path) == 0)
			f = list_entry(l, struct access_file, link);
	if (f == NULL) {
		f = calloc(1, sizeof(*f) + strlen(path) + 1);
		must(f != NULL);
		strcpy(f->path, path);
		err = logfile_open(path, &f->log);
		if (err != 0)
			log_event(LOG_ERROR, NULL, "accesslog.unusable", LF_STR("path", path), LF_ERR("error", err));
		list_add_tail(&ps->access_files, &f->link);
	}
	pthread_mutex_unlock(&ps->lock);
	return (f->log);
}

static void
logs_reopen(struct process *ps)
{
	struct list *l, *tmp;
	int err = logfile_reopen(ps->errorlog);

	if (err != 0)
		log_event(LOG_ERROR, NULL, "errorlog.reopen", LF_ERR("error", err), LF_STR("then", "writing to the old file"));
	pthread_mutex_lock(&ps->lock);
	list_foreach_safe(l, tmp, &ps->access_files) {
		struct access_file *f = list_entry(l, struct access_file, link);

		if (f->log != NULL)
			(void)logfile_reopen(f->log);
	}
	pthread_mutex_unlock(&ps->lock);
	log_event(LOG_INFO, NULL, "logs.reopened", LF_STR("by", "HUP"));
}

static void
logs_close(struct process *ps)
{
	struct list *l;

	while ((l = list_pop(&ps->access_files)) != NULL) {
		struct access_file *f = list_entry(l, struct access_file, link);

		if (f->log != NULL)
			logfile_close(f->log);
		free(f);
	}
	log_set_sink(NULL, NULL);
	if (ps->errorlog != NULL)
		logfile_close(ps->errorlog);
}

/* ---- sockets, limits, user */

static int
listeners_inherit(struct process *ps)
{
	int i, n = listen_inherited();

	for (i = 0; i < n && ps->nlisteners < MAX_LISTENERS; i++) {
		struct listener *l = &ps->listeners[ps->nlisteners];

		l->fd = 3 + i;
		if (listen_name(l->fd, l->name) != 0) {
			fprintf(stderr, "accel-server: LISTEN_FDS: descriptor %d is no listening socket\n", l->fd);
			return (-EINVAL);
		}
		ps->nlisteners++;
	}
	ps->inherited = n > 0;
	return (0);
}

static struct listener *
listener_find(struct listener *ls, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(ls[i].name, name) == 0)
			return (&ls[i]);
	return (NULL);
}

static int
listener_open(const struct conf *c, const char *name, struct listener *l)
{
	struct listen_conf lc = {
		.name = name, .backlog = (int)c->backlog,
		.congestion = c->congestion != NULL && c->congestion[0] != '\0' ? c->congestion : NULL,
	};
	int err = listen_open(&lc, &l->fd);

	if (err != 0) {
		log_event(LOG_ERROR, NULL, "listen.failed", LF_STR("address", name), LF_ERR("error", err),
		    LF_STR("do", err == -EADDRINUSE ? "another program listens there: stop it or change server.port"
		        : err == -EACCES ? "ports below 1024 need root or CAP_NET_BIND_SERVICE"
		                         : "see server.bind, server.port and $SERVER[\"socket\"]"));
		return (err);
	}
	snprintf(l->name, sizeof(l->name), "%s", name);
	return (0);
}

/* The sockets a configuration asks for; those that are open already are kept. */
static int
listeners_set(struct process *ps, const struct config *config)
{
	struct listener now[MAX_LISTENERS];
	const struct conf *c = config_global(config);
	const char *name;
	size_t i, n = 0;
	int err;

	if (ps->inherited)
		return (0);
	for (i = 0; (name = config_listen(config, i)) != NULL; i++) {
		struct listener *old = listener_find(ps->listeners, ps->nlisteners, name);

		if (n == MAX_LISTENERS || listener_find(now, n, name) != NULL)
			continue;
		if (old != NULL)
			now[n++] = *old;
		else if ((err = listener_open(c, name, &now[n])) == 0)
			n++;
		else
			goto failed;
	}
	for (i = 0; i < ps->nlisteners; i++)
		if (listener_find(now, n, ps->listeners[i].name) == NULL)
			listen_close(ps->listeners[i].fd);
	memcpy(ps->listeners, now, n * sizeof(now[0]));
	ps->nlisteners = n;
	return (0);
failed:
	while (n-- != 0)
		if (listener_find(ps->listeners, ps->nlisteners, now[n].name) == NULL)
			listen_close(now[n].fd);
	return (err);
}

static unsigned
raise_descriptors(const struct conf *c)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) != 0)
		return (1024);
	if (c->max_fds > rl.rlim_max) {
		struct rlimit more = {c->max_fds, c->max_fds};

		if (setrlimit(RLIMIT_NOFILE, &more) == 0)
			rl = more;
	}
	rl.rlim_cur = c->max_fds != 0 && c->max_fds < rl.rlim_max ? c->max_fds : rl.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &rl);
	(void)getrlimit(RLIMIT_NOFILE, &rl);
	return (rl.rlim_cur > 1000000 ? 1000000u : (unsigned)rl.rlim_cur);
}

static int
become_user(const struct conf *c)
{
	struct group *gr = NULL;
	struct passwd *pw = NULL;

	if (c->groupname != NULL && c->groupname[0] != '\0' && (gr = getgrnam(c->groupname)) == NULL)
		goto unknown;
	if (c->username != NULL && c->username[0] != '\0' && (pw = getpwnam(c->username)) == NULL)
		goto unknown;
	if ((gr == NULL && pw == NULL) || geteuid() != 0)
		return (0);
	if (setgid(gr != NULL ? gr->gr_gid : pw->pw_gid) != 0)
		goto failed;
	if (pw != NULL && (initgroups(pw->pw_name, gr != NULL ? gr->gr_gid : pw->pw_gid) != 0 || setuid(pw->pw_uid) != 0))
		goto failed;
	return (0);
unknown:
	log_event(LOG_ERROR, NULL, "user.unknown", LF_STR("do", "mend server.username or server.groupname"));
	return (-ENOENT);
failed:
	log_event(LOG_ERROR, NULL, "user.failed", LF_ERR("error", -errno));
	return (-EPERM);
}

static int
pidfile_write(const struct conf *c)
{
	FILE *f;

	if (c->pid_file == NULL || c->pid_file[0] == '\0')
		return (0);
	f = fopen(c->pid_file, "we");
	if (f == NULL || fprintf(f, "%d\n", (int)getpid()) < 0 || fclose(f) != 0) {
		log_event(LOG_ERROR, NULL, "pidfile.failed", LF_STR("path", c->pid_file), LF_ERR("error", -errno));
		return (-EIO);
	}
	return (0);
}

static void
notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	size_t n;
	int fd;

	if (path == NULL || (n = strlen(path)) >= sizeof(un.sun_path) || n == 0)
		return;
	memcpy(un.sun_path, path, n);
	if (un.sun_path[0] == '@')
		un.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&un,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(fd);
}

/* ---- generations */

static unsigned
worker_count(const struct conf *c)
{
	cpu_set_t set;

	if (c->max_worker != 0)
		return ((unsigned)c->max_worker);
	return (sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1);
}

static struct worker_conf
worker_conf_of(struct process *ps, struct generation *g, unsigned fds, const struct file_backend *backend)
{
	const struct conf *c = config_global(g->config);
	/* A third of the descriptors for connections and as many for applications and files, unless told. */
	unsigned conns = c->max_connections != 0 ? (unsigned)c->max_connections : fds - fds / 3;

	return ((struct worker_conf){
	    .config = g->config,
	    .listeners = ps->listeners,
	    .nlisteners = ps->nlisteners,
	    .pools = g->pools,
	    .backend = backend,
	    .engine = c->event_handler,
	    .max_conns = (conns + g->nworkers - 1) / g->nworkers,
	    .max_fds = fds / 5 / g->nworkers + 1,
	    .nworkers = g->nworkers,
	    .access_log = access_log,
	    .arg = ps,
	});
}

static void
generation_free(struct generation *g)
{
	unsigned i;

	for (i = 0; g->workers != NULL && i < g->nworkers; i++)
		if (g->workers[i] != NULL)
			worker_free(g->workers[i]);
	if (g->pools != NULL)
		io_pools_free(g->pools, 500);
	config_free(g->config);
	free(g->workers);
	free(g);
}

static void
generation_tell(struct generation *g, enum worker_mode mode)
{
	unsigned i;

	for (i = 0; i < g->nworkers; i++)
		if (g->workers[i] != NULL)
			worker_tell(g->workers[i], mode);
}

static bool
generation_ended(const struct generation *g)
{
	unsigned i;

	for (i = 0; i < g->nworkers; i++)
		if (g->workers[i] != NULL && g->workers[i]->running && !worker_ended(g->workers[i]))
			return (false);
	return (true);
}

static int
workers_make(struct process *ps, struct generation *g, unsigned fds)
{
	const struct conf *c = config_global(g->config);
	const char *note = NULL;
	const struct file_backend *backend = file_backend_by_name(c->network_backend, &note);
	struct worker_conf wc;
	unsigned i;
	int err = 0;

	if (backend == NULL) {
		log_event(LOG_ERROR, NULL, "backend.unknown", LF_STR("name", c->network_backend),
		    LF_STR("do", "accel-server -V lists what server.network-backend may be"));
		return (-EINVAL);
	}
	if (note != NULL)
		log_event(LOG_WARN, NULL, "backend.replaced", LF_STR("asked", c->network_backend),
		    LF_STR("used", backend->name), LF_STR("why", note));
	wc = worker_conf_of(ps, g, fds, backend);
	for (i = 0; i < g->nworkers && err == 0; i++) {
		wc.index = i;
		err = worker_new(&wc, NULL, &g->workers[i]);
	}
	for (i = 0; i < g->nworkers && err == 0 && !ps->opt->one; i++)
		err = worker_start(g->workers[i]);
	if (err != 0)
		generation_tell(g, WORKER_STOP);
	return (err);
}

static int
generation_start(struct process *ps, struct config *config, unsigned fds)
{
	const struct conf *c = config_global(config);
	struct generation *g = calloc(1, sizeof(*g));
	struct io_pools_conf pc = {
		.stat_threads = (unsigned)c->stat_threads, .read_threads = (unsigned)c->read_threads,
		.max_queue = (unsigned)c->max_queue,
	};
	int err;

	must(g != NULL);
	list_init(&g->link);
	g->config = config;
	g->nworkers = worker_count(c);
	g->workers = calloc(g->nworkers, sizeof(struct worker *));
	must(g->workers != NULL);
	err = io_pools_new(&pc, &g->pools);
	if (err == 0)
		err = workers_make(ps, g, fds);
	if (err != 0) {
		log_event(LOG_ERROR, NULL, "start.failed", LF_ERR("error", err));
		generation_free(g);
		return (err);
	}
	list_add_tail(&ps->generations, &g->link);
	return (0);
}

static struct generation *
newest(struct process *ps)
{
	return (list_entry(ps->generations.prev, struct generation, link));
}

static void
log_lines(enum log_level level, const char *ev, struct text all)
{
	struct text line;

	while (text_next(&all, '\n', &line))
		if (line.n != 0)
			log_event(level, NULL, ev, LF_TEXT("what", line));
}

static void
reload(struct process *ps)
{
	struct generation *old = newest(ps);
	struct buf err, warn;
	struct config *config;

	buf_init(&err, 0);
	buf_init(&warn, 0);
	notify("RELOADING=1");
	config = config_load(ps->opt->file, &err, &warn);
	log_lines(LOG_WARN, "config.warning", buf_as_text(&warn));
	if (config == NULL) {
		log_lines(LOG_ERROR, "reload.refused", buf_as_text(&err));
	} else if (listeners_set(ps, config) != 0) {
		config_free(config);
	} else if (generation_start(ps, config, raise_descriptors(config_global(config))) == 0) {
		generation_tell(old, WORKER_DRAIN);
		log_event(LOG_INFO, NULL, "reloaded", LF_STR("file", ps->opt->file));
	}
	notify("READY=1");
	buf_free(&err);
	buf_free(&warn);
}

static void
reap(struct process *ps)
{
	struct list *l, *tmp;

	list_foreach_safe(l, tmp, &ps->generations) {
		struct generation *g = list_entry(l, struct generation, link);

		if (!generation_ended(g))
			continue;
		list_del(&g->link);
		generation_free(g);
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
	notify("STOPPING=1");
	ps->draining = true;
	ps->stopping = ps->stopping || now;
	tell_all(ps, now ? WORKER_STOP : WORKER_DRAIN);
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
		logs_reopen(ps);
		break;
	case SIGUSR1:
		if (!ps->draining)
			reload(ps);
		break;
	}
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
watch(struct process *ps)
{
	struct pollfd p[2] = {{.fd = ps->signals, .events = POLLIN}, {.fd = ps->opt->until_eof ? 0 : -1, .events = POLLIN}};
	uint64_t stop_by = 0;
	char junk[256];

	while (!list_empty(&ps->generations)) {
		bool waiting = ps->draining || ps->generations.next != ps->generations.prev;

		if (poll(p, 2, waiting ? POLL_MS : -1) < 0 && errno != EINTR)
			break;
		if (p[0].revents != 0)
			take_signal(ps);
		if (p[1].revents != 0 && read(0, junk, sizeof(junk)) <= 0) {
			p[1].fd = -1;
			stop(ps, "end of standard input", true);
		}
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
start(struct process *ps, struct config *config)
{
	const struct conf *c = config_global(config);
	unsigned fds = raise_descriptors(c);

	if (listeners_set(ps, config) != 0)
		return (EX_UNAVAILABLE);
	if (ps->nlisteners == 0) {
		log_event(LOG_ERROR, NULL, "listen.nothing", LF_STR("do", "set server.port"));
		return (EX_CONFIG);
	}
	if (pidfile_write(c) != 0)
		return (EX_CANTCREAT);
	if (become_user(c) != 0)
		return (EX_NOPERM);
	if (generation_start(ps, config, fds) != 0)
		return (EX_CONFIG);
	return (0);
}

static void
say_ready(struct process *ps)
{
	size_t i;

	for (i = 0; i < ps->nlisteners; i++)
		log_event(LOG_INFO, NULL, "listening", LF_STR("address", ps->listeners[i].name),
		    LF_U64("workers", newest(ps)->nworkers));
	notify("READY=1");
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
	conn_new(g->workers[0], fd, &peer, "stdin");
	worker_tell(g->workers[0], WORKER_DRAIN); /* no second request */
	while (g->workers[0]->nconns != 0)
		worker_round(g->workers[0]);
	return (0);
}

static int
run_one(struct process *ps, struct config *config)
{
	int rc = generation_start(ps, config, raise_descriptors(config_global(config))) == 0 ? serve_one(ps) : EX_CONFIG;

	reap(ps); /* its worker has no thread: ended from the start */
	return (rc);
}

static int
run(struct process *ps, struct config *config)
{
	int rc = listeners_inherit(ps) == 0 ? start(ps, config) : EX_USAGE;

	if (rc != 0) {
		fprintf(stderr, "accel-server: not started; the error log says why\n");
		return (rc);
	}
	say_ready(ps);
	watch(ps);
	return (0);
}

int
process_run(const struct options *opt, struct config *config)
{
	struct process ps = {.opt = opt, .lock = PTHREAD_MUTEX_INITIALIZER};
	const char *pidfile = config_global(config)->pid_file;
	char *pid_path = pidfile != NULL && pidfile[0] != '\0' ? strdup(pidfile) : NULL;
	int rc;

	list_init(&ps.generations);
	list_init(&ps.access_files);
	ps.signals = signals_open();
	if (errorlog_open(&ps, config_global(config)) != 0) {
		config_free(config);
		free(pid_path);
		return (EX_CANTCREAT);
	}
	rc = opt->one ? run_one(&ps, config) : run(&ps, config);
	if (!list_empty(&ps.generations)) {
		logs_close(&ps); /* a thread is stuck in the kernel: leave without it */
		_exit(rc);
	}
	if (pid_path != NULL)
		(void)unlink(pid_path);
	free(pid_path);
	log_event(LOG_INFO, NULL, "stopped", LF_STR("how", "cleanly"));
	logs_close(&ps);
	close(ps.signals);
	return (rc);
}
