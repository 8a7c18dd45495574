/* io/watch.c -- see watch.h */
#include "io/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "io/read_whole.h"
#include "io/watch_set.h"

#define END_S 1

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
	struct watch_set *set; /* of path; NULL: none */
	uint64_t read_ns;
};

/* ---- the thread */

static void
read_now(struct file_watch *w)
{
	int err = 0;
	struct text bytes;

	(void)watch_set_changed(w->set);
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
	if (other) {
		watch_set_free(w->set);
		w->set = w->path != NULL ? watch_set_new(&w->path, 1) : NULL;
	}
	return (other);
}

/* Waits for timeout_ms (-1: no end), or until the watch gets another order.  True: an event of the
 * directory is there, if events counts. */
static bool
wait_for(struct file_watch *w, int timeout_ms, bool events)
{
	struct pollfd p[2] = { { .fd = w->wake, .events = POLLIN },
		{ .fd = events ? watch_set_fd(w->set) : -1, .events = POLLIN } };
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
	if (!wait_for(w, watch_set_look_ms(w->set), true))
		return (false);
	if (watch_set_events(w->set))
		return (true);
	(void)wait_for(w, WATCH_BUSY_MS, false);
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
	if (w->set == NULL)
		return (false);
	changed = watch_set_changed(w->set) || changed || is_new;
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
	watch_set_free(w->set);
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
