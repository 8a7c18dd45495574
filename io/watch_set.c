/* io/watch_set.c -- see watch_set.h */
#include "io/watch_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* Without inotify, or while a directory does not exist. */
#define BLIND_LOOK_MS 2000
#define CHANGES                                                                                  \
	(IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_DELETE_SELF | \
	    IN_MOVE_SELF)

struct look {
	int err;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

struct watched {
	char *path;
	struct look last;
};

struct watch_set {
	struct watched *v;
	size_t n;
	int events; /* inotify; -1: none */
	bool begun; /* all have been looked at */
	bool blind; /* no event reports changes of some of them */
};

struct watch_set *
watch_set_new(char *const *paths, size_t n)
{
	struct watch_set *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return (NULL);
	w->events = -1;
	w->blind = true;
	w->v = calloc(n + 1, sizeof(*w->v));
	for (; w->v != NULL && w->n < n; w->n++) {
		w->v[w->n].path = strdup(paths[w->n]);
		if (w->v[w->n].path == NULL)
			break;
	}
	if (w->n == n && w->v != NULL)
		return (w);
	watch_set_free(w);
	return (NULL);
}

void
watch_set_free(struct watch_set *w)
{
	size_t i;

	if (w == NULL)
		return;
	if (w->events >= 0)
		close(w->events);
	for (i = 0; i < w->n; i++)
		free(w->v[i].path);
	free(w->v);
	free(w);
}

/* ---- looks */

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

/* ---- events */

static bool
directory_of(const char *path, char *dir, size_t size)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash == path ? 1 : (size_t)(slash - path);

	if (n >= size)
		return (false);
	memcpy(dir, path, n);
	dir[n] = '\0';
	return (true);
}

/* A new descriptor: a directory of the same name may be another one by now. */
static void
look_out(struct watch_set *w)
{
	char dir[4096], last[4096] = "";
	size_t i;

	if (w->events >= 0)
		close(w->events);
	w->events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	w->blind = w->events < 0;
	for (i = 0; i < w->n && w->events >= 0; i++) {
		if (!directory_of(w->v[i].path, dir, sizeof(dir))) {
			w->blind = true;
			continue;
		}
		if (strcmp(dir, last) != 0 && inotify_add_watch(w->events, dir, CHANGES) < 0)
			w->blind = true;
		memcpy(last, dir, sizeof(last));
	}
}

/* Files of the same name in another directory of the set count, too. */
static bool
is_ours(const struct watch_set *w, const char *name)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (strcmp(strrchr(w->v[i].path, '/') + 1, name) == 0)
			return (true);
	return (false);
}

/* ---- callers */

bool
watch_set_changed(struct watch_set *w)
{
	bool changed;
	struct look now;
	size_t i;

	if (w == NULL)
		return (false);
	changed = !w->begun;
	if (w->blind)
		look_out(w);
	for (i = 0; i < w->n; i++) {
		now = look(w->v[i].path);
		changed = changed || !same_look(&now, &w->v[i].last);
		w->v[i].last = now;
	}
	w->begun = true;
	return (changed);
}

int
watch_set_fd(const struct watch_set *w)
{
	return (w != NULL ? w->events : -1);
}

int
watch_set_look_ms(const struct watch_set *w)
{
	return (w == NULL ? -1 : w->blind ? BLIND_LOOK_MS : WATCH_LOOK_MS);
}

bool
watch_set_events(struct watch_set *w)
{
	_Alignas(struct inotify_event) char buf[4096];
	const struct inotify_event *e;
	bool ours = false;
	const char *p;
	ssize_t n;

	if (w == NULL)
		return (false);
	while ((n = read(w->events, buf, sizeof(buf))) > 0) {
		for (p = buf; p < buf + n; p += sizeof(*e) + e->len) {
			e = (const void *)p;
			ours = ours || (e->len != 0 && is_ours(w, e->name)) ||
			       (e->mask & IN_Q_OVERFLOW) != 0;
			w->blind = w->blind ||
				   (e->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)) != 0;
		}
	}
	return (ours || w->blind);
}
