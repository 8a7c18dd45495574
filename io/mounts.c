/* io/mounts.c -- see mounts.h */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "io/mounts.h"

struct mount {
	uint64_t dev;
	size_t len;
	char *point;
};

static struct {
	pthread_mutex_t lock;
	FILE *table;
	struct mount *v;
	size_t n, cap;
} mounts = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* "\040" for a space, and the like. */
static void
unescape(char *s)
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

static void
add(unsigned maj, unsigned min, char *point)
{
	struct mount *more;

	if (mounts.n == mounts.cap) {
		more = realloc(mounts.v, (mounts.cap * 2 + 16) * sizeof(*more));
		if (more == NULL) {
			free(point);
			return;
		}
		mounts.v = more;
		mounts.cap = mounts.cap * 2 + 16;
	}
	unescape(point);
	mounts.v[mounts.n++] = (struct mount){makedev(maj, min), strlen(point), point};
}

static void
read_table(void)
{
	char *line = NULL, *point;
	unsigned maj, min;
	size_t size = 0;

	while (mounts.n > 0)
		free(mounts.v[--mounts.n].point);
	rewind(mounts.table);
	while (getline(&line, &size, mounts.table) > 0) {
		/* 36 35 98:0 /root /mount/point ... */
		if (sscanf(line, "%*u %*u %u:%u %*s %ms", &maj, &min, &point) == 3)
			add(maj, min, point);
	}
	free(line);
}

static void
keep_current(void)
{
	struct pollfd p = {.events = POLLPRI};

	if (mounts.table == NULL) {
		mounts.table = fopen("/proc/self/mountinfo", "re");
		if (mounts.table != NULL)
			read_table();
		return;
	}
	p.fd = fileno(mounts.table);
	if (poll(&p, 1, 0) > 0)
		read_table();
}

/* The path is the mount point or lies below it. */
static bool
is_below(const char *path, const struct mount *m)
{
	return (strncmp(path, m->point, m->len) == 0 && (path[m->len] == '/' || path[m->len] == '\0'));
}

uint64_t
mounts_dev_below(const char *root, const char *path)
{
	size_t i, best = strcmp(root, "/") == 0 ? 0 : strlen(root);
	uint64_t dev = MOUNTS_UNKNOWN;

	pthread_mutex_lock(&mounts.lock);
	keep_current();
	for (i = 0; i < mounts.n; i++) {
		/* The last of equal ones hides the others. */
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
