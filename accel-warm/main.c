/* accel-warm/main.c -- accel-warm: starts the threads and the list, then waits and reports.
 *
 * 	roots or list --> queue <--> threads     this thread: signals, hung threads, state file,
 * 	                                         progress bar
 *
 * The threads may hang in the kernel.  This thread uses only the state file and the terminal, so a
 * signal always ends it.
 */
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rate.h"
#include "accel-warm/thread_group.h"
#include "accel-warm/list.h"
#include "accel-warm/options.h"
#include "accel-warm/progress.h"
#include "accel-warm/report.h"
#include "io/std_fds.h"

#define TICK_MS    250
#define SAVE_NS    (2 * NS_PER_S)
#define VERBOSE_NS (10 * NS_PER_S)
#define NOFILE_MAX 65536
#define FDS_EACH   3 /* per thread: a file, and a directory twice */
#define FDS_OURS   32

struct run {
	const struct walk_conf *conf;
	struct walk_queue *queue;
	struct walk_state *state; /* NULL: none, or given up */
	struct thread_group *threads;
	struct walk_list *list; /* NULL: a tree */
	size_t max_open;
	int over_fd, signal_fd;
	uint64_t start_ns, save_ns, verbose_ns;
	bool bar, save_failed;
	struct rate rate;
	unsigned stuck;
};

/* ---------------------------------------------------------------- reports */

/* Assumes that the unread part of a list has entries of the same length. */
static uint64_t
total(const struct run *r, const struct walk_counters *t)
{
	double part = r->list != NULL ? walk_list_part(r->list) : 0;

	if (walk_queue_all_read(r->queue))
		return (t->found);
	return (part > 0 ? (uint64_t)((double)t->found / part) : 0);
}

static struct walk_progress
measure(struct run *r)
{
	struct walk_progress p = { .stuck = r->stuck };
	uint64_t now = clock_mono_ns();

	thread_group_counters(r->threads, &p.counters);
	if (r->list != NULL)
		walk_list_counters(r->list, &p.counters);
	p.total = total(r, &p.counters);
	p.seconds = (double)(now - r->start_ns) / NS_PER_S;
	rate_note(&r->rate, now, p.counters.finished);
	p.rate = p.seconds > RATE_SECONDS + 1 ? rate_read(&r->rate, now)
					      : (double)p.counters.finished / MAX(p.seconds, 1e-6);
	return (p);
}

static unsigned
columns(void)
{
	struct winsize size;

	return (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u
										: 79);
}

static void
tell(struct run *r, bool in_a_line)
{
	struct walk_progress p = measure(r);
	GString *s = g_string_new(NULL);

	walk_progress_line(&p, in_a_line ? 0 : columns(), s);
	if (in_a_line)
		walk_message("%s", s->str);
	else
		walk_status_line(s->str);
	g_string_free(s, TRUE);
}

static void
summary(struct run *r, bool interrupted)
{
	struct walk_progress p = measure(r);
	GString *s = g_string_new(NULL);

	walk_status_line(NULL);
	(r->conf->json ? walk_progress_json : walk_progress_summary)(&p, interrupted, s);
	if (r->conf->json || !r->conf->quiet)
		fputs(s->str, stdout);
	fflush(stdout);
	g_string_free(s, TRUE);
}

/* ---------------------------------------------------------------- state */

static int
open_state(struct run *r)
{
	char *cwd = g_get_current_dir(), *why = NULL;
	GString *head = g_string_new(NULL);
	int err;

	walk_state_head(r->conf, cwd, head);
	err = walk_state_open(r->conf->state, head->str, &r->state, &why);
	if (err == -EBUSY)
		walk_message("state file %s: %s; use the options of that run, or remove the file",
		    r->conf->state, why);
	else if (err != 0)
		walk_message("state file %s: %s", r->conf->state, why);
	g_string_free(head, TRUE);
	g_free(cwd);
	g_free(why);
	if (err == 0)
		return (0);
	return (err == -EBUSY || err == -EPROTO ? EX_DATAERR
		: err == -EAGAIN                ? EX_TEMPFAIL
						: EX_CANTCREAT);
}

/* After an error the run goes on, and the next save tries again: the disk may have space then. */
static void
save(struct run *r)
{
	int err;

	if (r->state == NULL)
		return;
	err = walk_state_save(r->state);
	if (err != 0 && !r->save_failed)
		walk_message("state file %s: %s; its old contents stay, the next save tries again",
		    r->conf->state, g_strerror(-err));
	else if (err == 0 && r->save_failed)
		walk_message("state file %s: written again", r->conf->state);
	r->save_failed = err != 0;
}

/* ---------------------------------------------------------------- the wait */

static void
tick(struct run *r)
{
	uint64_t now = clock_mono_ns();

	r->stuck = thread_group_tick(r->threads);
	if (now >= r->save_ns) {
		save(r);
		r->save_ns = now + SAVE_NS;
	}
	if (r->bar)
		tell(r, false);
	if (r->conf->verbose && !r->bar && now >= r->verbose_ns) {
		tell(r, true);
		r->verbose_ns = now + VERBOSE_NS;
	}
}

/* The signal that ends the program, or 0. */
static int
take_signal(struct run *r)
{
	struct signalfd_siginfo si;

	if (read(r->signal_fd, &si, sizeof(si)) != sizeof(si))
		return (0);
	if (si.ssi_signo != SIGUSR1)
		return ((int)si.ssi_signo);
	tell(r, true);
	return (0);
}

/* Waits for the end of the work or a signal.  0, or the signal. */
static int
watch(struct run *r)
{
	struct pollfd fds[] = { { .fd = r->over_fd, .events = POLLIN },
		{ .fd = r->signal_fd, .events = POLLIN } };
	int signo = 0;

	while (signo == 0 && !(fds[0].revents & POLLIN)) {
		if (poll(fds, G_N_ELEMENTS(fds), TICK_MS) < 0)
			continue; /* revents are unchanged */
		if (fds[1].revents & POLLIN)
			signo = take_signal(r);
		tick(r);
	}
	return (fds[0].revents & POLLIN ? 0 : signo);
}

static int
catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return (signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

/* ---------------------------------------------------------------- start and end */

static size_t
raise_nofile(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return (FDS_OURS);
	r.rlim_cur = MAX(r.rlim_cur, MIN(r.rlim_max, NOFILE_MAX));
	setrlimit(RLIMIT_NOFILE, &r);
	getrlimit(RLIMIT_NOFILE, &r);
	return (MIN(r.rlim_cur, NOFILE_MAX));
}

/* Threads take at most half of the descriptors; the rest is for open directories. */
static size_t
share_nofile(struct walk_conf *conf)
{
	size_t n = raise_nofile(), left = n > FDS_OURS ? n - FDS_OURS : 0,
	       most = MAX(left / 2 / FDS_EACH, 1);

	if (conf->threads > most) {
		walk_message("using %u threads instead of %u: only %u files may be open (ulimit "
			     "-n)",
		    (unsigned)most, conf->threads, (unsigned)n);
		conf->threads = (unsigned)most;
	}
	return (left / 2 + 1);
}

static int
add_work(struct run *r)
{
	const char *bad;
	int err;

	r->queue = walk_queue_new(r->max_open, r->over_fd);
	for (const char *const *root = r->conf->roots; root != NULL && *root != NULL; root++)
		walk_queue_add_dir(r->queue, walk_dir_new(NULL, *root));
	if (r->conf->list == NULL)
		return (0);
	err = walk_list_start(r->conf, r->queue, r->state, &r->list, &bad);
	if (err == 0)
		return (0);
	walk_message("%s: %s", bad, g_strerror(-err));
	walk_queue_free(&r->queue);
	return (EX_NOINPUT);
}

static int
prepare(struct run *r)
{
	r->over_fd = eventfd(0, EFD_CLOEXEC);
	r->signal_fd = catch_signals();
	if (r->over_fd < 0 || r->signal_fd < 0) {
		walk_message("eventfd, signalfd: %s", g_strerror(errno));
		return (EX_OSERR);
	}
	r->start_ns = clock_mono_ns();
	r->save_ns = r->start_ns + SAVE_NS;
	r->verbose_ns = r->start_ns + VERBOSE_NS;
	r->bar = !r->conf->quiet && isatty(STDERR_FILENO);
	return (r->conf->state != NULL ? open_state(r) : 0);
}

/* Threads may hang for ever, so it waits for nothing and frees nothing. */
static void
end_at_once(struct run *r, int signo)
{
	save(r);
	summary(r, true);
	_exit(128 + signo);
}

static int
end(struct run *r)
{
	int code = measure(r).counters.errors > 0 ? 1 : 0;

	summary(r, false);
	thread_group_join(&r->threads);
	if (r->list != NULL)
		walk_list_join(&r->list);
	walk_queue_free(&r->queue);
	walk_state_remove(&r->state);
	close(r->over_fd);
	close(r->signal_fd);
	return (code);
}

static int
walk(struct walk_conf *conf)
{
	struct run r = { .conf = conf, .max_open = share_nofile(conf) };
	int code = prepare(&r), signo, err;

	if (code == 0)
		code = add_work(&r);
	if (code != 0) {
		walk_state_close(&r.state);
		return (code);
	}
	err = thread_group_start(conf, r.queue, r.state, &r.threads);
	if (err != 0) {
		walk_message("cannot start a thread: %s", g_strerror(-err));
		_exit(EX_OSERR); /* a thread may be reading the list */
	}
	signo = watch(&r);
	if (signo != 0)
		end_at_once(&r, signo);
	return (end(&r));
}

int
main(int argc, char **argv)
{
	struct walk_conf conf;
	int code;

	if (io_open_std_fds() != 0)
		return (EX_OSERR);
	code = walk_options_read(argv, &conf);
	if (code == OPTIONS_RUN)
		code = walk(&conf);
	return (code);
}
