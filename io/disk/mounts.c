/* io/disk/mounts.c -- see mounts.h */
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "io/io.h"
#include "io/disk/mounts.h"
#include "io/mounts.h"

struct mount {
	uint64_t dev, id;
	bool local, whole; /* whole: the root of its file system, not a directory of it */
	bool marks;        /* a read may write an access time to a disk */
	char type[32];
	size_t len;
	char *point;
};

static struct {
	pthread_mutex_t lock;
	FILE *table;
	struct mount *v;
	size_t n, cap;
} mounts = { .lock = PTHREAD_MUTEX_INITIALIZER };

void
mounts_unescape(char *s)
{
	char *to = s;

	for (; *s != '\0'; s++, to++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] != '\0' && s[3] != '\0') {
			*to = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 3;
		} else {
			*to = *s;
		}
	}
	*to = '\0';
}

/* True for a disk of this machine, or its memory: bytes in the page cache are available without
 * asking another machine.  (overlay usually has its directories on such a disk.) */
static bool
is_local(const char *type)
{
	static const char *const types[] = { "ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs",
		"ramfs", "overlay" };
	size_t i;

	for (i = 0; i < NELEM(types); i++) {
		if (strcmp(type, types[i]) == 0)
			return (true);
	}
	return (false);
}

/* In a list with commas. */
static bool
has_word(const char *list, const char *word)
{
	size_t n = strlen(word), len;

	for (;; list += len + 1) {
		len = strcspn(list, ",");
		if (len == n && memcmp(list, word, n) == 0)
			return (true);
		if (list[len] == '\0')
			return (false);
	}
}

static bool
is_memory(const char *type)
{
	return (strcmp(type, "tmpfs") == 0 || strcmp(type, "ramfs") == 0);
}

/* Takes the string. */
static void
add(struct mount m)
{
	struct mount *more;

	if (mounts.n == mounts.cap) {
		more = realloc(mounts.v, (mounts.cap * 2 + 16) * sizeof(*more));
		if (more == NULL) {
			free(m.point);
			return;
		}
		mounts.v = more;
		mounts.cap = mounts.cap * 2 + 16;
	}
	mounts_unescape(m.point);
	m.len = strlen(m.point);
	mounts.v[mounts.n++] = m;
}

/* 36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/sda1 rw */
static void
read_line(const char *line)
{
	const char *rest = strstr(line, " - ");
	struct mount m = { .len = 0 };
	unsigned id, maj, min;
	int root;
	char *how;

	switch (
	    sscanf(line, "%u %*u %u:%u %n%*s %ms %ms", &id, &maj, &min, &root, &m.point, &how)) {
	case 5: break;
	case 4: free(m.point); /* FALLTHROUGH */
	default: return;
	}
	if (rest != NULL)
		(void)sscanf(rest, " - %31s", m.type);
	m.id = id;
	m.dev = makedev(maj, min);
	m.local = is_local(m.type);
	m.whole = strncmp(line + root, "/ ", 2) == 0;
	m.marks = !has_word(how, "noatime") && !has_word(how, "ro") && !is_memory(m.type);
	free(how);
	add(m);
}

static void
read_table(void)
{
	char *line = NULL;
	size_t size = 0;

	while (mounts.n > 0)
		free(mounts.v[--mounts.n].point);
	rewind(mounts.table);
	while (getline(&line, &size, mounts.table) > 0)
		read_line(line);
	free(line);
}

static void
open_table(void)
{
	mounts.table = fopen("/proc/self/mountinfo", "re");
	if (mounts.table != NULL)
		read_table();
}

static void
keep_current(void)
{
	struct pollfd p = { .events = POLLPRI };

	if (mounts.table == NULL) {
		open_table();
		return;
	}
	p.fd = fileno(mounts.table);
	if (poll(&p, 1, 0) > 0)
		read_table();
}

void
mounts_open(void)
{
	pthread_mutex_lock(&mounts.lock);
	if (mounts.table == NULL)
		open_table();
	pthread_mutex_unlock(&mounts.lock);
}

/* The path is the mount point or below it. */
static bool
is_below(const char *path, const struct mount *m)
{
	return (
	    strncmp(path, m->point, m->len) == 0 && (path[m->len] == '/' || path[m->len] == '\0'));
}

uint64_t
mounts_dev_below(const char *root, const char *path)
{
	size_t i, best = strcmp(root, "/") == 0 ? 0 : strlen(root);
	uint64_t dev = MOUNTS_UNKNOWN;

	pthread_mutex_lock(&mounts.lock);
	keep_current();
	for (i = 0; i < mounts.n; i++) {
		/* The last of equal mount points hides the others. */
		if (mounts.v[i].len > best || (mounts.v[i].len == best && dev != MOUNTS_UNKNOWN)) {
			if (!is_below(path, &mounts.v[i]))
				continue;
			best = mounts.v[i].len;
			dev = mounts.v[i].dev;
		}
	}
	pthread_mutex_unlock(&mounts.lock);
	return (dev);
}

bool
mounts_local(uint64_t id)
{
	bool local = false;
	size_t i;

	pthread_mutex_lock(&mounts.lock);
	keep_current();
	for (i = 0; i < mounts.n; i++) {
		if (mounts.v[i].id == id)
			local = mounts.v[i].local;
	}
	pthread_mutex_unlock(&mounts.lock);
	return (local);
}

bool
mounts_marks(uint64_t id)
{
	bool marks = true;
	size_t i;

	pthread_mutex_lock(&mounts.lock);
	keep_current();
	for (i = 0; i < mounts.n; i++) {
		if (mounts.v[i].id == id)
			marks = mounts.v[i].marks;
	}
	pthread_mutex_unlock(&mounts.lock);
	return (marks);
}

/* A later mount at the same point hides this one. */
static bool
is_hidden_locked(const struct mount *m)
{
	const struct mount *later;

	for (later = m + 1; later < mounts.v + mounts.n; later++)
		if (later->len == m->len && memcmp(later->point, m->point, m->len) == 0)
			return (true);
	return (false);
}

static bool
names_better(const struct mount *m, const struct mount *best)
{
	if (best == NULL || m->whole != best->whole)
		return (best == NULL || m->whole);
	return (m->len < best->len);
}

void
mounts_point(uint64_t dev, char *point, size_t size)
{
	const struct mount *best = NULL, *m;

	pthread_mutex_lock(&mounts.lock);
	keep_current();
	for (m = mounts.v; m < mounts.v + mounts.n; m++)
		if (m->dev == dev && names_better(m, best) && !is_hidden_locked(m))
			best = m;
	snprintf(point, size, "%s", best != NULL ? best->point : "");
	pthread_mutex_unlock(&mounts.lock);
}

/* The last of equal mount points hides the others. */
static const struct mount *
holder_locked(const char *dir)
{
	const struct mount *best = NULL;

	for (size_t i = 0; i < mounts.n; i++) {
		const struct mount *m = &mounts.v[i];

		if ((m->len <= 1 || is_below(dir, m)) && (best == NULL || m->len >= best->len))
			best = m;
	}
	return (best);
}

void
io_mounts_of(const char *dir, io_mount_seen *seen, void *arg)
{
	const size_t n = strlen(dir);
	const struct mount *m;

	pthread_mutex_lock(&mounts.lock);
	keep_current();
	m = holder_locked(dir);
	if (m != NULL)
		seen(arg, m->point, m->type);
	for (m = mounts.v; m < mounts.v + mounts.n; m++)
		if (m->len > n + 1 && strncmp(m->point, dir, n) == 0 && m->point[n] == '/')
			seen(arg, m->point, m->type);
	pthread_mutex_unlock(&mounts.lock);
}

void
io_mount_of(int root, const char *name, char *point, size_t size)
{
	char link[40], path[2 * PATH_MAX];
	const struct mount *m;
	ssize_t n;

	point[0] = '\0';
	snprintf(link, sizeof(link), "/proc/self/fd/%d", root);
	n = readlink(link, path, PATH_MAX); /* asks no disk */
	if (n <= 0)
		return;
	snprintf(path + n, sizeof(path) - (size_t)n, "/%s", name);
	pthread_mutex_lock(&mounts.lock);
	keep_current();
	m = holder_locked(path[1] == '/' ? path + 1 : path);
	if (m != NULL)
		snprintf(point, size, "%s", m->point);
	pthread_mutex_unlock(&mounts.lock);
}
