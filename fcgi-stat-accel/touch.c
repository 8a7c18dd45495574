#include "fcgi-stat-accel/touch.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A fifo must not hold the thread, a terminal must not become ours. */
#define FLAGS	    (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define CHUNK	    (64 * 1024)
#define RACE_LOST   16			/* openat2: EAGAIN when a rename passes by a ".." */

struct root {
	char *name, *real;		/* as given, and without symbolic links */
	int   fd;
};

struct touch {
	size_t	readahead;
	GArray *roots;			/* struct root */
};

static void
root_clear(gpointer p)
{
	struct root *r = p;

	g_free(r->name);
	g_free(r->real);
	close(r->fd);
}

int
touch_new(size_t readahead, struct touch **tp)
{
	struct touch *t = g_new0(struct touch, 1);

	t->readahead = readahead;
	t->roots = g_array_new(FALSE, FALSE, sizeof(struct root));
	g_array_set_clear_func(t->roots, root_clear);
	*tp = t;
	return (0);
}

void
touch_free(struct touch **tp)
{
	if (*tp == NULL)
		return;
	g_array_free((*tp)->roots, TRUE);
	g_free(*tp);
	*tp = NULL;
}

static int
open_below(int dir, const char *name, int flags)
{
	struct open_how how = {
		.flags = flags,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	for (int i = 0; i < RACE_LOST; i++) {
		fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));
		if (fd >= 0)
			return ((int)fd);
		if (errno != EAGAIN && errno != EINTR)
			break;
	}
	return (-errno);
}

/* Without slashes at the end, so that what follows the name must start with one. */
static char *
root_name(const char *dir)
{
	char *name = g_strdup(dir);
	size_t n = strlen(name);

	while (n > 0 && name[n - 1] == '/')
		name[--n] = '\0';
	return (name);
}

static char *
real_name(const char *dir)
{
	char *found = realpath(dir, NULL), *name = root_name(found != NULL ? found : dir);

	free(found);
	return (name);
}

int
touch_add_root(struct touch *t, const char *dir)
{
	struct root r;
	int probe;

	r.fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r.fd < 0)
		return (-errno);
	probe = open_below(r.fd, ".", O_PATH | O_CLOEXEC);
	if (probe < 0) {
		close(r.fd);
		return (probe);
	}
	close(probe);
	r.name = root_name(dir);
	r.real = real_name(dir);
	g_array_append_val(t->roots, r);
	return (0);
}

/* What follows "root/" in path, or NULL. */
static const char *
tail_after(const char *root, const char *path)
{
	size_t n = strlen(root);

	if (strncmp(path, root, n) != 0 || path[n] != '/')
		return (NULL);
	for (path += n; *path == '/'; path++)
		;
	return (path);
}

static const char *
tail_below(const struct root *r, const char *path)
{
	const char *tail = tail_after(r->name, path);

	return (tail != NULL ? tail : tail_after(r->real, path));
}

/* Roots may nest: a link that leaves the inner one may still end in the outer one. */
static int
open_in_roots(const struct touch *t, const char *path)
{
	int fd = -EXDEV;

	for (guint i = 0; i < t->roots->len && fd == -EXDEV; i++) {
		const struct root *r = &g_array_index(t->roots, struct root, i);
		const char *tail = tail_below(r, path);

		if (tail != NULL)
			fd = open_below(r->fd, tail, FLAGS);
	}
	return (fd);
}

static int
open_anywhere(const char *path)
{
	int fd;

	do
		fd = open(path, FLAGS);
	while (fd < 0 && errno == EINTR);
	return (fd < 0 ? -errno : fd);
}

static int
only_regular(const struct stat *st)
{
	if (S_ISREG(st->st_mode))
		return (0);
	return (S_ISDIR(st->st_mode) ? -EISDIR : -EPERM);
}

/* Started as a whole with fadvise, so that the disk sees one request; then really read, so that
 * the bytes are here when the server comes for them. */
static int
read_start(int fd, off_t want)
{
	char buf[CHUNK];
	ssize_t n;
	off_t at;

	posix_fadvise(fd, 0, want, POSIX_FADV_WILLNEED);
	for (at = 0; at < want; at += n) {
		n = pread(fd, buf, MIN(want - at, CHUNK), at);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n < 0)
			return (-errno);
		else if (n == 0)
			break;			/* shorter than it was */
	}
	return (0);
}

static int
warm(const struct touch *t, int fd)
{
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return (-errno);
	err = only_regular(&st);
	if (err != 0 || t->readahead == 0)
		return (err);
	return (read_start(fd, MIN(st.st_size, (off_t)t->readahead)));
}

int
touch_file(const struct touch *t, const char *path)
{
	int fd, err;

	fd = t->roots->len > 0 ? open_in_roots(t, path) : open_anywhere(path);
	if (fd < 0)
		return (fd);
	err = warm(t, fd);
	close(fd);
	return (err);
}
