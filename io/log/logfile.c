/* io/log/logfile.c -- two buffers: callers fill one while the thread writes the other. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "io/log/logfile_impl.h"

/* Lines of this time are written together: a thread that wakes for each line interrupts a loop
 * 2,600 times a second, for 34 ms of each second. */
#define GATHER_US 5000u

/* ---------------------------------------------------------------- the thread */

static uint64_t all_dropped; /* atomic */

/* Written to the error log, because readers of an access log expect requests only.  The error log
 * itself has room again, and gets this line after the lines that it took. */
static void
tell_dropped(struct logfile *lf, uint64_t lines)
{
	const struct log_field f[] = { LF_STR("path", lf->path != NULL ? lf->path : "stderr"),
		LF_U64("lines", lines),
		LF_STR("why", "its disk, or the program that reads it, did not take them in time"),
		LF_STR("do", "make room on the disk, or look at that program") };
	const struct log_entry e = { LOG_WARN, NULL, "log.dropped", f, NELEM(f) };
	char line[LOG_LINE_MAX];

	if (log_goes_to(lf))
		log_write(lf, line, log_line(line, &e));
	else
		log_event_fields(LOG_WARN, NULL, "log.dropped", f, NELEM(f));
}

/* Releases the lock meanwhile.  Half a buffer is enough. */
static void
gather_locked(struct logfile *lf)
{
	if (lf->stop || lf->reopen || lf->npending > LOGFILE_PENDING / 2)
		return;
	pthread_mutex_unlock(&lf->lock);
	usleep(GATHER_US);
	pthread_mutex_lock(&lf->lock);
}

static void *
log_thread(void *arg)
{
	struct logfile *lf = arg;
	uint64_t lost;
	size_t n;
	char *p;

	pthread_setname_np(pthread_self(), "log");
	pthread_mutex_lock(&lf->lock);
	for (;;) {
		while (lf->reopen)
			log_reopen_locked(lf);
		if (lf->npending == 0 && lf->dropped == lf->told) {
			if (lf->stop)
				break;
			pthread_cond_wait(&lf->more, &lf->lock);
			gather_locked(lf);
			continue;
		}
		p = lf->pending;
		n = lf->npending;
		lf->pending = lf->out;
		lf->out = p;
		lf->npending = 0;
		lost = lf->dropped - lf->told;
		lf->told = lf->dropped;
		pthread_mutex_unlock(&lf->lock);
		log_write(lf, p, n);
		if (lost != 0)
			tell_dropped(lf, lost);
		pthread_mutex_lock(&lf->lock);
	}
	lf->done = true;
	pthread_cond_signal(&lf->ended);
	pthread_mutex_unlock(&lf->lock);
	return (NULL);
}

/* ---------------------------------------------------------------- callers */

static void
log_free(struct logfile *lf)
{
	if (lf->fd >= 0 && lf->path != NULL)
		close(lf->fd);
	free(lf->path);
	free(lf->pending);
	free(lf->out);
	free(lf);
}

static int
start_thread(struct logfile *lf)
{
	pthread_condattr_t mono;
	sigset_t all, old;
	int err;

	pthread_mutex_init(&lf->lock, NULL);
	pthread_condattr_init(&mono);
	pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
	pthread_cond_init(&lf->more, &mono);
	pthread_cond_init(&lf->ended, &mono);
	pthread_condattr_destroy(&mono);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&lf->thread, NULL, log_thread, lf);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return (-err);
}

/* A daemon that starts after the server is found when there are lines. */
static bool
waits_for_daemon(const struct logfile *lf)
{
	return (lf->path != NULL && lf->path[0] == LOGFILE_SYSLOG &&
		(lf->fd == -ENOENT || lf->fd == -ECONNREFUSED));
}

const char *
logfile_path(const struct logfile *lf)
{
	return (lf->path);
}

int
logfile_open(const char *path, logfile_opener *open, void *arg, struct logfile **out)
{
	struct logfile *lf = calloc(1, sizeof(*lf));
	int err;

	if (lf == NULL)
		return (-ENOMEM);
	lf->open = open;
	lf->open_arg = arg;
	lf->path = path != NULL ? strdup(path) : NULL;
	lf->fd = path != NULL && lf->path == NULL ? -ENOMEM : log_open(lf);
	lf->pending = malloc(LOGFILE_PENDING);
	lf->out = malloc(LOGFILE_PENDING);
	if (lf->fd < 0 && !waits_for_daemon(lf))
		err = lf->fd;
	else if (lf->pending == NULL || lf->out == NULL)
		err = -ENOMEM;
	else
		err = start_thread(lf);
	if (err != 0) {
		log_free(lf);
		return (err);
	}
	*out = lf;
	return (0);
}

uint64_t
logfile_dropped(void)
{
	return (__atomic_load_n(&all_dropped, __ATOMIC_RELAXED));
}

void
logfile_line(void *logfile, struct text line)
{
	struct logfile *lf = logfile;

	pthread_mutex_lock(&lf->lock);
	if (lf->npending + line.n > LOGFILE_PENDING) {
		lf->dropped++;
		__atomic_add_fetch(&all_dropped, 1, __ATOMIC_RELAXED);
	} else {
		memcpy(lf->pending + lf->npending, line.p, line.n);
		lf->npending += line.n;
		/* the first line wakes the thread; lines that come during a write go with the
		 * next one */
		if (lf->npending == line.n)
			pthread_cond_signal(&lf->more);
	}
	pthread_mutex_unlock(&lf->lock);
}

void
logfile_reopen(struct logfile *lf, void (*failed)(const char *, int))
{
	if (lf->path == NULL || lf->path[0] == '|')
		return;
	pthread_mutex_lock(&lf->lock);
	lf->reopen = true;
	lf->failed = failed;
	pthread_cond_signal(&lf->more);
	pthread_mutex_unlock(&lf->lock);
}

bool
logfile_reopened(struct logfile *lf, int *err)
{
	bool done;

	pthread_mutex_lock(&lf->lock);
	done = !lf->reopen && !lf->reopening;
	*err = lf->reopen_err;
	pthread_mutex_unlock(&lf->lock);
	return (done);
}

void
logfile_stop(struct logfile *lf)
{
	pthread_mutex_lock(&lf->lock);
	if (!lf->stop)
		lf->end_ns = clock_mono_ns() + NS_PER_S;
	lf->stop = true;
	pthread_cond_signal(&lf->more);
	pthread_mutex_unlock(&lf->lock);
}

void
logfile_close(struct logfile *lf)
{
	struct timespec ts;
	bool done;

	if (lf == NULL)
		return;
	logfile_stop(lf);
	ts = (struct timespec){ .tv_sec = (time_t)(lf->end_ns / NS_PER_S),
		.tv_nsec = (long)(lf->end_ns % NS_PER_S) };
	pthread_mutex_lock(&lf->lock);
	while (!lf->done && pthread_cond_timedwait(&lf->ended, &lf->lock, &ts) == 0)
		;
	done = lf->done;
	pthread_mutex_unlock(&lf->lock);
	if (!done) {
		pthread_detach(lf->thread); /* stuck in write(2); it still needs *lf */
		return;
	}
	pthread_join(lf->thread, NULL);
	pthread_cond_destroy(&lf->more);
	pthread_cond_destroy(&lf->ended);
	pthread_mutex_destroy(&lf->lock);
	log_free(lf);
}
