/* io/watch.c -- see watch.h */
#include "io/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "io/read_whole.h"

#define END_S   1
#define BUSY_MS 100 /* pause after changes of other files in the directory */
/* without inotify, or while the directory does not exist */
#define BLIND_LOOK_MS 2000
#define CHANGES                                                                                  \
	(IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_DELETE_SELF | \
	    IN_MOVE_SELF)

struct look { /* settings of the watch that a change of the file changes */
	int err;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

struct file_watch {
	size_t max;
	file_watch_seen *seen;
	void *arg;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	char *wanted; /* under the lock; the path from now on */
	unsigned asked;
	bool stop, done;
	int wake; /* eventfd */
	/* of the thread */
	char *path;
	unsigned answered;
	int events; /* inotify; -1: none */
	bool blind; /* no event reports changes */
	struct look last;
	uint64_t read_ns;
};

/* ---- the thread */

static void
directory_of(const char *path, char *dir, size_t size)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash == path ? 1 : (size_t)(slash - path);

	if (n >= size)
		n = size - 1;
	memcpy(dir, path, n);
	dir[n] = '\0';
}

/* A new descriptor for each directory: events of the last one are not read. */
static void
look_out(struct file_watch *w)
{
	char dir[4096];

	if (w->events >= 0)
		close(w->events);
	w->events = -1;
	w->blind = true;
	if (w->path == NULL)
		return;
	directory_of(w->path, dir, sizeof(dir));
	w->events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->events >= 0)
		w->blind = inotify_add_watch(w->events, dir, CHANGES) < 0;
}

static struct look
look(const char *path)
{
	struct look l = { 0 };
	struct stat st;

	if (stat(path, &st) != 0)
		l.err = errno;
	else
		l = (struct look){ 0, st.st_dev, st.st_ino, st.st_size, st.st_mtim };
	return (l);
}

static bool
same_look(const struct look *a, const struct look *b)
{
	return (a->err == b->err && a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
		a->mtime.tv_sec == b->mtime.tv_sec && a->mtime.tv_nsec == b->mtime.tv_nsec);
}

static void
read_now(struct file_watch *w)
{
	int err = 0;
	struct text bytes;

	w->last = look(w->path);
	bytes = io_read_whole(AT_FDCWD, w->path, w->max, &err);
	w->seen(w->arg, w->path, bytes, err);
	free((char *)bytes.p);
	w->read_ns = clock_mono_ns();
}

/* Takes over the path that is wanted.  True: the path is different from the last one. */
static bool
take_path(struct file_watch *w, bool *stop)
{
	bool other;

	pthread_mutex_lock(&w->lock);
	*stop = w->stop;
	other = w->asked != w->answered;
	w->answered = w->asked;
	if (other) {
		free(w->path);
		w->path = w->wanted != NULL ? strdup(w->wanted) : NULL;
	}
	pthread_mutex_unlock(&w->lock);
	return (other);
}

/* True: an event is about the file, or the watch is lost. */
static bool
take_events(struct file_watch *w)
{
	_Alignas(struct inotify_event) char buf[4096];
	const char *name = strrchr(w->path, '/') + 1, *p;
	const struct inotify_event *e;
	bool ours = false;
	ssize_t n;

	while ((n = read(w->events, buf, sizeof(buf))) > 0) {
		for (p = buf; p < buf + n; p += sizeof(*e) + e->len) {
			e = (const void *)p;
			ours = ours || (e->len != 0 && strcmp(e->name, name) == 0) ||
			       (e->mask & IN_Q_OVERFLOW) != 0;
			w->blind = w->blind ||
				   (e->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)) != 0;
		}
	}
	return (ours || w->blind);
}

/* Waits for timeout_ms (-1: no end), or until the watch gets another order.  True: an event of the
 * directory is there, if events counts. */
static bool
wait_for(struct file_watch *w, int timeout_ms, bool events)
{
	struct pollfd p[2] = { { .fd = w->wake, .events = POLLIN },
		{ .fd = events && w->path != NULL ? w->events : -1, .events = POLLIN } };
	uint64_t told;

	if (poll(p, 2, timeout_ms) <= 0)
		return (false);
	if (p[0].revents != 0 && read(w->wake, &told, sizeof(told)) < 0)
		return (false);
	return (p[1].revents != 0);
}

/* True: the file may have changed. */
static bool
wait_for_change(struct file_watch *w)
{
	int ms = w->path == NULL ? -1 : w->blind ? BLIND_LOOK_MS : WATCH_LOOK_MS;

	if (!wait_for(w, ms, true))
		return (false);
	if (take_events(w))
		return (true);
	(void)wait_for(w, BUSY_MS, false);
	return (false);
}

/* False: the file was read less than a second ago.  Waits for the rest of that second. */
static bool
may_read(struct file_watch *w)
{
	uint64_t past_ms = (clock_mono_ns() - w->read_ns) / NS_PER_MS;

	if (w->read_ns == 0 || past_ms >= WATCH_GAP_MS)
		return (true);
	(void)wait_for(w, (int)(WATCH_GAP_MS - past_ms), false);
	return (false);
}

/* True: the file has changed, and is still to be read. */
static bool
look_after(struct file_watch *w, bool is_new, bool changed)
{
	struct look now;

	if (is_new || w->blind)
		look_out(w);
	if (w->path == NULL)
		return (false);
	now = look(w->path);
	changed = changed || is_new || !same_look(&now, &w->last);
	if (changed && (is_new || may_read(w))) {
		read_now(w);
		changed = false;
	}
	return (changed);
}

static void *
watch_thread(void *arg)
{
	struct file_watch *w = arg;
	bool stop, is_new, changed = false;

	pthread_setname_np(pthread_self(), "watch");
	for (;;) {
		is_new = take_path(w, &stop);
		if (stop)
			break;
		changed = look_after(w, is_new, changed);
		if (!changed)
			changed = wait_for_change(w);
	}
	pthread_mutex_lock(&w->lock);
	w->done = true;
	pthread_cond_signal(&w->ended);
	pthread_mutex_unlock(&w->lock);
	return (NULL);
}

/* ---- callers */

static int
start(struct file_watch *w)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are for the main thread */
	err = pthread_create(&w->thread, NULL, watch_thread, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return (err);
}

static void
throw_away(struct file_watch *w)
{
	if (w->events >= 0)
		close(w->events);
	close(w->wake);
	free(w->path);
	free(w->wanted);
	pthread_cond_destroy(&w->ended);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

struct file_watch *
file_watch_new(size_t max, file_watch_seen *seen, void *arg)
{
	struct file_watch *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return (NULL);
	w->max = max;
	w->seen = seen;
	w->arg = arg;
	w->events = -1;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->ended, NULL);
	w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->wake >= 0 && start(w) == 0)
		return (w);
	if (w->wake >= 0)
		close(w->wake);
	free(w);
	return (NULL);
}

static void
tell(struct file_watch *w)
{
	static const uint64_t one = 1;

	if (write(w->wake, &one, sizeof(one)) < 0)
		return; /* the previous order still waits */
}

void
file_watch_set(struct file_watch *w, const char *path)
{
	must(path == NULL || path[0] == '/');
	pthread_mutex_lock(&w->lock);
	free(w->wanted);
	w->wanted = path != NULL ? strdup(path) : NULL;
	w->asked++;
	pthread_mutex_unlock(&w->lock);
	tell(w);
}

bool
file_watch_free(struct file_watch *w)
{
	struct timespec until;
	bool done;

	if (w == NULL)
		return (true);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += END_S;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	tell(w);
	while (
	    !w->done && pthread_cond_clockwait(&w->ended, &w->lock, CLOCK_MONOTONIC, &until) == 0)
		;
	done = w->done;
	pthread_mutex_unlock(&w->lock);
	if (!done) {
		pthread_detach(w->thread);
		return (false);
	}
	pthread_join(w->thread, NULL);
	throw_away(w);
	return (true);
}
