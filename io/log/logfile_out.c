/* io/log/logfile_out.c -- where the lines of a log go: a file, a program, the system's log.
 *
 *   /var/log/access.log      open(2); a full disk is tried again
 *   |/usr/bin/rotate args    a pipe; a program that ended is started again, with pauses
 *   SYSLOG 24,6,/dev/log     a datagram for each line; a daemon that left is looked for again
 *   none                     standard error; the journal, if that reads it: a datagram likewise
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "io/log/journal.h"
#include "io/log/logfile_impl.h"
#include "io/safe_open.h"
#include "io/log/syslog.h"

#define RETRY_NS   NS_PER_S        /* a full disk is tried again once a second */
#define CALM_NS    (60 * NS_PER_S) /* a program that ran for this long is started again at once */
#define PAUSE_MAX  64u             /* seconds before a program is started again */
#define LOOK_MS    100             /* a closing log is noticed within this time */
#define LATE_LOOKS 9               /* looks after which the last lines are dropped */

int
logfile_check(const char *path)
{
	return (path[0] == '|' || path[0] == LOGFILE_SYSLOG ? 0 : safe_open_check(path));
}

int
logfile_open_fd(const char *path)
{
	struct syslog_target to;
	int fd;

	if (path[0] == '|')
		return (-EOPNOTSUPP); /* the helper process starts programs */
	if (path[0] == LOGFILE_SYSLOG)
		return (syslog_target_parse(path + 1, &to) ? syslog_connect(to.socket) : -EINVAL);
	/* A fifo without a reader is refused (ENXIO); without O_NONBLOCK the caller would wait
	 * for a reader. */
	fd = safe_open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, 0644);
	if (fd >= 0)
		(void)fcntl(fd, F_SETFL, O_APPEND); /* the log's thread may wait */
	return (fd);
}

int
log_open(const struct logfile *lf)
{
	int fd;

	if (lf->path == NULL) {
		fd = journal_open();
		return (fd >= 0 ? fd : STDERR_FILENO);
	}
	return (lf->open != NULL ? lf->open(lf->open_arg, lf->path) : logfile_open_fd(lf->path));
}

static void
exchange(struct logfile *lf, int fd)
{
	if (lf->fd >= 0)
		close(lf->fd);
	lf->fd = fd;
}

bool
log_reopen_locked(struct logfile *lf)
{
	void (*failed)(const char *, int) = lf->failed;
	int fd;

	lf->reopen = false;
	lf->reopening = true;
	pthread_mutex_unlock(&lf->lock);
	fd = log_open(lf);
	if (fd < 0)
		failed(lf->path, fd);
	else
		exchange(lf, fd);
	pthread_mutex_lock(&lf->lock);
	lf->reopening = false;
	lf->reopen_err = fd < 0 ? fd : 0;
	return (fd >= 0);
}

/* Until the time, or until the log is closed or reopened. */
static void
wait_locked(struct logfile *lf, uint64_t until)
{
	struct timespec ts = { .tv_sec = (time_t)(until / NS_PER_S),
		.tv_nsec = (long)(until % NS_PER_S) };

	while (!lf->stop && !lf->reopen && pthread_cond_timedwait(&lf->more, &lf->lock, &ts) == 0)
		;
}

/* Waits a second, or until the log is closed or reopened.  True: try again. */
static bool
wait_retry(struct logfile *lf, bool *moved)
{
	bool again;

	pthread_mutex_lock(&lf->lock);
	wait_locked(lf, clock_mono_ns() + RETRY_NS);
	*moved = lf->reopen && log_reopen_locked(lf);
	again = !lf->stop || *moved;
	pthread_mutex_unlock(&lf->lock);
	return (again);
}

/* The program or the daemon has no room.  False: the log was closed meanwhile, and the last lines
 * are not read. */
static bool
wait_room(struct logfile *lf)
{
	struct pollfd p = { .fd = lf->fd, .events = POLLOUT };
	unsigned late = 0;

	while (late < LATE_LOOKS && poll(&p, 1, LOOK_MS) == 0) {
		pthread_mutex_lock(&lf->lock);
		late += lf->stop;
		pthread_mutex_unlock(&lf->lock);
	}
	return (late < LATE_LOOKS);
}

static void
tell_ended(const struct logfile *lf)
{
	if (lf->path[0] == '|')
		log_limited(1, LOG_WARN, NULL, "log.program", LF_STR("command", lf->path + 1),
		    LF_STR("why", "it has ended, or does not read its standard input"),
		    LF_U64("again_s", lf->pause_s),
		    LF_STR("do", "see what it says on standard error"));
}

/* The program or the daemon has ended: starts a new program, or looks for a new daemon.  False: the
 * log was closed meanwhile. */
static bool
start_again(struct logfile *lf)
{
	bool stop;
	int fd;

	if (clock_mono_ns() - lf->opened_ns > CALM_NS)
		lf->pause_s = 0;
	tell_ended(lf);
	pthread_mutex_lock(&lf->lock);
	lf->reopen = false; /* the opened log is the new one */
	wait_locked(lf, clock_mono_ns() + lf->pause_s * NS_PER_S);
	stop = lf->stop;
	pthread_mutex_unlock(&lf->lock);
	if (stop)
		return (false);
	lf->pause_s = lf->pause_s == 0 ? 1 : lf->pause_s < PAUSE_MAX ? 2 * lf->pause_s : PAUSE_MAX;
	lf->opened_ns = clock_mono_ns();
	fd = log_open(lf);
	if (fd >= 0)
		exchange(lf, fd);
	return (true);
}

/* The bytes after the line that began in the old file. */
static const char *
next_line(const char *start, const char *p, const char *end)
{
	while (p > start && p < end && p[-1] != '\n')
		p++;
	return (p);
}

static bool
is_gone(ssize_t err)
{
	return (err == -EPIPE || err == -ENOTCONN || err == -ECONNREFUSED || err == -ECONNRESET ||
		err == -EDESTADDRREQ || err == -ENOENT);
}

static bool
is_full(ssize_t err)
{
	return (err == -EAGAIN || err == -ENOBUFS || err == -EINTR);
}

static bool
is_datagrams(const struct logfile *lf)
{
	return (lf->path != NULL ? lf->path[0] == LOGFILE_SYSLOG : lf->fd != STDERR_FILENO);
}

static ssize_t
send_line(const struct logfile *lf, struct text line)
{
	return (lf->path != NULL ? syslog_send(lf->fd, lf->path + 1, line) : journal_send(line));
}

/* Returns the bytes that were taken, or -errno.  A line that the daemon refuses is dropped. */
static ssize_t
put(const struct logfile *lf, const char *p, const char *end)
{
	const char *newline;
	ssize_t n, done;

	if (lf->fd < 0)
		return (-ENOTCONN);
	if (!is_datagrams(lf)) {
		n = write(lf->fd, p, (size_t)(end - p));
		return (n < 0 ? -errno : n);
	}
	newline = memchr(p, '\n', (size_t)(end - p));
	n = (newline != NULL ? newline + 1 : end) - p;
	done = send_line(lf, (struct text){ p, (size_t)n });
	return (done < 0 && !is_gone(done) && !is_full(done) ? n : done);
}

/* A line whose beginning is on the disk is finished when the disk takes bytes again, so that lines
 * are whole or absent.  If the file was replaced meanwhile (HUP ends a full disk), that line stays
 * incomplete in the old file. */
void
log_write(struct logfile *lf, const char *start, size_t n)
{
	const char *p = start, *end = start + n;
	bool moved, again;
	ssize_t done;

	while (p < end) {
		moved = false;
		done = put(lf, p, end);
		if (done > 0)
			p += done;
		if (done >= 0 || done == -EINTR)
			continue;
		if (is_full(done) && (lf->path != NULL || !is_datagrams(lf)))
			again = wait_room(lf);
		else if (is_gone(done) && lf->path != NULL)
			moved = again = start_again(lf);
		else
			again = wait_retry(lf, &moved);
		if (!again)
			return;
		if (moved)
			p = next_line(start, p, end);
	}
}
