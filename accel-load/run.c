/* accel-load/run.c -- see run.h
 *
 *	threads: load <--> servers      this thread: signals, progress, standard input of --hold
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>
#include <arpa/inet.h>
#include "accel-load/limits.h"
#include "accel-load/progress.h"
#include "accel-load/report.h"
#include "accel-load/run.h"
#include "accel-load/secure.h"
#include "accel-load/thread.h"
#include "accel-load/verify.h"

#define TICK_MS 1000

struct whole {
	struct run run;
	struct thread **threads;
	unsigned nthreads; /* that exist */
	int signal_fd;
	union io_addr from;
	bool bar; /* standard error is a terminal */
	struct count_progress last;
	uint64_t last_ns;
	double seconds, cpu_s;
	uint64_t held;
};

/* ---------------------------------------------------------------- progress */

static struct count_progress
measure(const struct whole *w)
{
	struct count_progress sum = { 0 }, one;
	const struct counts *counts;

	for (unsigned i = 0; i < 2 * w->nthreads; i++) {
		counts = i % 2 == 0 ? w->threads[i / 2]->counted : w->threads[i / 2]->warming;
		if (counts == NULL)
			continue;
		count_progress(counts, &one);
		sum.requests += one.requests;
		sum.answered += one.answered;
		sum.errors += one.errors;
		sum.body_bytes += one.body_bytes;
	}
	return (sum);
}

static void
tell_progress(struct whole *w)
{
	struct count_progress now = measure(w);
	uint64_t ns = clock_mono_ns();
	struct buf b;

	buf_init(&b, 0);
	progress_line(&b, (double)(ns - w->run.start_ns) / NS_PER_S, &now, &w->last,
	    (double)(ns - w->last_ns) / NS_PER_S);
	if (w->bar)
		fprintf(stderr, "\r%.*s\033[K", (int)b.n, b.p);
	else
		fprintf(stderr, "%.*s\n", (int)b.n, b.p);
	buf_free(&b);
	w->last = now;
	w->last_ns = ns;
}

static void
clear_progress(const struct whole *w)
{
	if (w->bar && w->last_ns != w->run.start_ns)
		fputs("\r\033[K", stderr);
}

/* ---------------------------------------------------------------- the wait */

static bool
all_done(const struct whole *w)
{
	for (unsigned i = 0; i < w->nthreads; i++)
		if (__atomic_load_n(&w->threads[i]->done, __ATOMIC_ACQUIRE) < w->run.rounds)
			return (false);
	return (true);
}

static unsigned
held(const struct whole *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->nthreads; i++)
		n += __atomic_load_n(&w->threads[i]->held, __ATOMIC_RELAXED);
	return (n);
}

static void
stop_all(const struct whole *w)
{
	for (unsigned i = 0; i < w->nthreads; i++)
		thread_stop(w->threads[i]);
}

/* True if fd brought bytes, or its end: *end. */
static bool
drain(const struct pollfd *p, bool *end)
{
	char bytes[512];
	ssize_t n;

	if (p->revents == 0)
		return (false);
	n = read(p->fd, bytes, sizeof(bytes));
	*end = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
	return (true);
}

/* Until all threads are done, or a signal comes.  True: a signal. */
static bool
watch(struct whole *w)
{
	struct pollfd fds[] = { { .fd = w->run.over_fd, .events = POLLIN },
		{ .fd = w->signal_fd, .events = POLLIN } };
	bool shows = (w->bar && !w->run.conf->quiet) || w->run.conf->verbose, end;

	while (!all_done(w)) {
		if (poll(fds, 2, shows ? TICK_MS : -1) < 0)
			continue; /* revents are unchanged */
		if (drain(&fds[1], &end))
			return (true);
		if (!drain(&fds[0], &end) && shows)
			tell_progress(w);
	}
	return (false);
}

static void
tell_held(const struct whole *w)
{
	struct count_progress p = measure(w);

	clear_progress(w);
	printf("held %u answered %llu errors %llu\n", held(w), (unsigned long long)p.answered,
	    (unsigned long long)p.errors);
	fflush(stdout);
}

/* Another round.  True: a signal. */
static bool
ask_again(struct whole *w)
{
	__atomic_store_n(&w->run.rounds, w->run.rounds + 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < w->nthreads; i++)
		io_wake(w->threads[i]->io);
	return (watch(w));
}

/* Keeps the connections until standard input ends, a signal comes or the time is over. */
static void
hold(struct whole *w)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = w->signal_fd, .events = POLLIN } };
	bool end = false, signalled = false;
	uint64_t now;

	tell_held(w);
	while (!end && (now = clock_mono_ns()) < w->run.end_ns) {
		if (poll(fds, 2, (int)((w->run.end_ns - now) / NS_PER_MS % INT32_MAX) + 1) <= 0)
			continue;
		if (drain(&fds[1], &signalled))
			return;
		if (!drain(&fds[0], &end) || end)
			continue;
		if (ask_again(w))
			return;
		tell_held(w);
	}
}

/* ---------------------------------------------------------------- start and end */

static int
catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return (signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

static void
set_from(struct whole *w, const char *from)
{
	w->run.from = from != NULL ? &w->from.sa : NULL;
	if (from == NULL)
		return;
	if (strchr(from, ':') != NULL) {
		w->from.in6.sin6_family = AF_INET6;
		inet_pton(AF_INET6, from, &w->from.in6.sin6_addr);
	} else {
		w->from.in.sin_family = AF_INET;
		inet_pton(AF_INET, from, &w->from.in.sin_addr);
	}
}

static int
failed(const char *what, int err)
{
	load_message("%s: %s", what, strerror(-err));
	return (EX_OSERR);
}

static int
prepare(struct whole *w)
{
	const struct load_conf *conf = w->run.conf;
	unsigned n = conf->threads, i;
	int err, code = 0;

	w->bar = isatty(STDERR_FILENO);
	set_from(w, conf->from);
	w->signal_fd = catch_signals();
	w->run.over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->signal_fd < 0 || w->run.over_fd < 0)
		return (failed("signalfd, eventfd", -errno));
	w->threads = calloc(n, sizeof(struct thread *));
	if (w->threads == NULL)
		return (failed("start", -ENOMEM));
	for (; w->nthreads < n; w->nthreads++) {
		w->threads[w->nthreads] = thread_new(&w->run, w->nthreads, &err);
		if (w->threads[w->nthreads] == NULL)
			return (failed("start", err));
	}
	for (i = 0; i < n && code == 0; i++)
		code = secure_open(conf, w->run.urls->targets, &w->threads[i]->secure);
	return (code);
}

static void
cleanup(struct whole *w)
{
	while (w->nthreads > 0)
		thread_free(w->threads[--w->nthreads]);
	free(w->threads);
	if (w->signal_fd >= 0)
		close(w->signal_fd);
	if (w->run.over_fd >= 0)
		close(w->run.over_fd);
}

/* The time until the last thread had ended its requests, before it closed its connections. */
static double
seconds_of(const struct whole *w)
{
	uint64_t end = w->run.warm_ns;

	for (unsigned i = 0; i < w->nthreads; i++)
		if (w->threads[i]->ended_ns > end)
			end = w->threads[i]->ended_ns;
	return ((double)(end - w->run.warm_ns) / NS_PER_S);
}

/* Runs the threads to their end. */
static int
load(struct whole *w)
{
	unsigned started = 0;
	uint64_t cpu = clock_process_cpu_ns();
	bool signalled = false;
	int err = 0;

	w->run.start_ns = w->last_ns = clock_mono_ns();
	w->run.warm_ns = w->run.start_ns + w->run.conf->warm_ns;
	w->run.end_ns = w->run.warm_ns + w->run.conf->run_ns;
	while (err == 0 && started < w->nthreads)
		if ((err = thread_start(w->threads[started])) == 0)
			started++;
	if (err == 0)
		signalled = watch(w);
	w->seconds = (double)(clock_mono_ns() - w->run.start_ns) / NS_PER_S;
	if (err == 0 && !signalled && w->run.conf->hold)
		hold(w);
	w->held = held(w);
	stop_all(w);
	while (started > 0)
		thread_join(w->threads[--started]);
	if (!w->run.conf->hold)
		w->seconds = seconds_of(w);
	if (w->run.conf->warm_ns != 0)
		cpu = w->threads[0]->warm_cpu_ns;
	w->cpu_s = (double)(clock_process_cpu_ns() - cpu) / NS_PER_S;
	clear_progress(w);
	return (err != 0 ? failed("a thread", err) : 0);
}

static void
explain(const struct whole *w)
{
	const char *why = NULL;
	int trouble = 0;

	for (unsigned i = 0; i < w->nthreads && trouble == 0; i++)
		trouble = w->threads[i]->trouble;
	limits_explain(trouble);
	for (unsigned i = 0; i < w->nthreads && why == NULL; i++)
		why = w->threads[i]->tls_trouble;
	if (why != NULL)
		load_message("handshake: %s", why);
}

static int
report(const struct whole *w)
{
	const struct load_conf *conf = w->run.conf;
	struct counts *sum = counts_new(), *beside = conf->beside != NULL ? counts_new() : NULL;
	struct load_result r = { .seconds = w->seconds,
		.cpu_s = w->cpu_s,
		.threads = w->nthreads,
		.connections = conf->connections,
		.streams = conf->http2 ? conf->streams : 0,
		.held = w->held,
		.least = UINT64_MAX,
		.verbose = conf->verbose,
		.counts = sum,
		.beside = beside };
	struct buf out;
	int code;

	if (sum == NULL || (conf->beside != NULL && beside == NULL))
		return (failed("report", -ENOMEM));
	for (unsigned i = 0; i < w->nthreads; i++) {
		counts_add(sum, w->threads[i]->counted);
		if (beside != NULL)
			counts_add(beside, w->threads[i]->beside.counted);
		r.never += w->threads[i]->never;
		r.least = w->threads[i]->least < r.least ? w->threads[i]->least : r.least;
	}
	buf_init(&out, 0);
	(conf->json ? report_json : report_text)(&out, &r);
	code = out.failed || fwrite(out.p, 1, out.n, stdout) != out.n || fflush(stdout) != 0
		   ? EX_IOERR
		   : count_errors(sum) > 0 || (beside != NULL && count_errors(beside) > 0);
	buf_free(&out);
	counts_free(sum);
	counts_free(beside);
	return (code);
}

int
run_load(const struct load_conf *conf, struct urls *urls, struct urls *beside)
{
	struct whole w = {
		.run = { .conf = conf, .urls = urls, .beside = beside, .over_fd = -1, .rounds = 1 },
		.signal_fd = -1
	};
	int code;

	w.run.protocol = conf->fastcgi ? &load_fastcgi : &load_http;
	code = prepare(&w);
	if (code == 0)
		code = load(&w);
	if (code == 0) {
		explain(&w);
		code = report(&w);
	}
	cleanup(&w);
	return (code);
}
