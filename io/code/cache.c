/* io/code/cache.c -- see cache.h */
#include "io/code/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"

#define TEMP_PREFIX "tmp-"
#define TEMP_OLD_S  3600    /* a temporary file of this age was left by a process that ended */
#define TOUCH_S     3600    /* the time of use is exact to this many seconds */
#define FILES_MAX   200000u /* files that are looked at together */

int
code_cache_init(struct code_cache *k, int dir, uint64_t max, void (*free)(struct code_cache *))
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return (-errno);
	if ((st.st_uid != geteuid() && geteuid() != 0) || (st.st_mode & 022) != 0)
		return (-EPERM);
	*k = (struct code_cache){ .refs = 1, .free = free, .dir = dir, .max = max };
	pthread_mutex_init(&k->lock, NULL);
	return (0);
}

struct code_cache *
code_cache_ref(struct code_cache *k)
{
	if (k != NULL)
		__atomic_add_fetch(&k->refs, 1, __ATOMIC_RELAXED);
	return (k);
}

void
code_cache_put(struct code_cache *k)
{
	if (k == NULL || __atomic_sub_fetch(&k->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	pthread_mutex_destroy(&k->lock);
	k->free(k);
}

void
cache_file_name(const struct code_file *c, char name[CODE_NAME_MAX])
{
	const struct statx *s = &c->stx;
	const struct coder_conf *k = &c->conf;

	snprintf(name, CODE_NAME_MAX,
	    "%x-%x-%" PRIx64 "-%" PRIx64 "-%" PRIx64 ".%x-%" PRIx64 ".%x.%.*s-%d-%u-%u-%u",
	    s->stx_dev_major, s->stx_dev_minor, (uint64_t)s->stx_ino, (uint64_t)s->stx_size,
	    (uint64_t)s->stx_mtime.tv_sec, s->stx_mtime.tv_nsec, (uint64_t)s->stx_ctime.tv_sec,
	    s->stx_ctime.tv_nsec, (int)coding_name(k->coding).n, coding_name(k->coding).p, k->level,
	    k->window, k->memory, k->strategy);
}

int
cache_open(struct code_cache *k, const char *name, struct stat *st)
{
	int fd = openat(k->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return (-errno);
	if (fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
	    st->st_size > 0) {
		if (st->st_mtime + TOUCH_S < time(NULL))
			(void)futimens(fd, NULL);
		return (fd);
	}
	close(fd);
	return (-EPERM);
}

int
cache_begin(struct code_cache *k, struct cache_file *f)
{
	static uint64_t number;

	snprintf(f->temp, sizeof(f->temp), TEMP_PREFIX "%d-%" PRIx64, (int)getpid(),
	    clock_mono_ns() ^ __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED) << 48);
	f->fd = openat(k->dir, f->temp,
	    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
	return (f->fd >= 0 ? 0 : -errno);
}

int
cache_write(struct cache_file *f, struct text t)
{
	ssize_t n;

	while (t.n != 0) {
		n = write(f->fd, t.p, t.n);
		if (n < 0 && errno != EINTR)
			return (-errno);
		if (n > 0)
			text_take(&t, (size_t)n);
	}
	return (0);
}

void
cache_drop(struct code_cache *k, struct cache_file *f)
{
	if (f->fd < 0)
		return;
	close(f->fd);
	f->fd = -1;
	if (f->temp[0] != '\0')
		(void)unlinkat(k->dir, f->temp, 0);
}

/* ---- the bound */

struct found {
	time_t used;
	uint64_t size;
	char name[CODE_NAME_MAX];
};

static int
older_first(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return (x->used < y->used ? -1 : x->used > y->used);
}

/* Notes a file; removes a temporary one that a process left. */
static void
note(struct code_cache *k, struct buf *all, const char *name)
{
	struct found f = { .used = 0 };
	struct stat st;
	bool temporary = strncmp(name, TEMP_PREFIX, strlen(TEMP_PREFIX)) == 0;

	if (name[0] == '.' || strlen(name) >= sizeof(f.name) ||
	    fstatat(k->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_uid != geteuid())
		return;
	if (temporary) {
		if (st.st_mtime + TEMP_OLD_S < time(NULL))
			(void)unlinkat(k->dir, name, 0);
		return;
	}
	f.used = st.st_mtime;
	f.size = (uint64_t)st.st_blocks * 512;
	memcpy(f.name, name, strlen(name) + 1);
	buf_add(all, &f, sizeof(f));
}

static int
list_files(struct code_cache *k, struct buf *all)
{
	int fd = openat(k->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *d;
	DIR *dir;

	if (fd < 0 || (dir = fdopendir(fd)) == NULL) {
		if (fd >= 0)
			close(fd);
		return (-errno);
	}
	while ((d = readdir(dir)) != NULL)
		note(k, all, d->d_name);
	closedir(dir);
	return (0);
}

/* Counts the files and removes those used longest ago, down to nine tenths. */
static void
trim(struct code_cache *k)
{
	uint64_t bytes = 0, most;
	struct found *f;
	struct buf all;
	size_t i, n;

	buf_init(&all, FILES_MAX * sizeof(*f));
	if (list_files(k, &all) == 0) {
		f = (struct found *)(void *)all.p;
		n = all.n / sizeof(*f);
		if (n != 0)
			qsort(f, n, sizeof(*f), older_first);
		for (i = 0; i < n; i++)
			bytes += f[i].size;
		most = bytes > k->max ? k->max - k->max / 10 : k->max;
		for (i = 0; i < n && bytes > most; i++)
			if (unlinkat(k->dir, f[i].name, 0) == 0)
				bytes -= f[i].size;
		__atomic_store_n(&k->bytes, bytes, __ATOMIC_RELAXED);
		__atomic_store_n(&k->counted, true, __ATOMIC_RELAXED);
	}
	buf_free(&all);
}

/* One thread at a time does this; others go on with their work. */
static void
keep_bound(struct code_cache *k, uint64_t more)
{
	if (__atomic_add_fetch(&k->bytes, more, __ATOMIC_RELAXED) <= k->max &&
	    __atomic_load_n(&k->counted, __ATOMIC_RELAXED))
		return;
	if (pthread_mutex_trylock(&k->lock) != 0)
		return;
	trim(k);
	pthread_mutex_unlock(&k->lock);
}

int
cache_name(struct code_cache *k, struct cache_file *f, const char *name, uint64_t size)
{
	if (size > k->max / 2)
		return (-EFBIG);
	if (fdatasync(f->fd) != 0 || renameat(k->dir, f->temp, k->dir, name) != 0)
		return (-errno);
	f->temp[0] = '\0';
	keep_bound(k, (size + 4095) & ~4095ull);
	return (0);
}
