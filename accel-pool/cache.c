#include "accel-pool/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

#define WINDOW (UINT64_C(256) << 20) /* bytes that are mapped at a time */

/* As Linux 6.5 declares them. */
struct range_arg {
	uint64_t off, len;
};
struct stat_result {
	uint64_t cache, dirty, writeback, evicted, recently_evicted; /* pages */
};

static uint64_t
page_size(void)
{
	return ((uint64_t)sysconf(_SC_PAGESIZE));
}

/* True for the owner, root, and users who may write to the file. */
static bool
may_ask(int fd)
{
	char name[64];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return (false);
	if (st.st_uid == geteuid() || geteuid() == 0)
		return (true);
	g_snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return (faccessat(AT_FDCWD, name, W_OK, AT_EACCESS) == 0);
}

/* Pages in memory, or -errno. */
static int64_t
count_window(int fd, uint64_t at, uint64_t n)
{
	const uint64_t pages = (n + page_size() - 1) / page_size();
	unsigned char *vec;
	int64_t in = 0;
	void *map = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, (off_t)at);

	if (map == MAP_FAILED)
		return (-errno);
	vec = g_malloc(pages);
	if (mincore(map, n, vec) < 0)
		in = -errno;
	for (uint64_t i = 0; in >= 0 && i < pages; i++)
		in += vec[i] & 1;
	g_free(vec);
	munmap(map, n);
	return (in);
}

int
cache_look_mincore(int fd, uint64_t size, struct cache_facts *f)
{
	uint64_t pages = 0;

	if (!may_ask(fd))
		return (-EPERM);
	for (uint64_t at = 0; at < size; at += WINDOW) {
		int64_t n = count_window(fd, at, MIN(size - at, WINDOW));

		if (n < 0)
			return ((int)n);
		pages += (uint64_t)n;
	}
	*f = (struct cache_facts){ MIN(pages * page_size(), size), 0 };
	return (0);
}

int
cache_look(int fd, uint64_t size, struct cache_facts *f)
{
	struct range_arg all = { 0, size };
	struct stat_result r;

	if (size == 0) {
		*f = (struct cache_facts){ 0, 0 };
		return (0);
	}
	if (syscall(SYS_cachestat, fd, &all, &r, 0) < 0)
		return (errno == ENOSYS ? cache_look_mincore(fd, size, f) : -errno);
	*f = (struct cache_facts){ MIN(r.cache * page_size(), size),
		MIN((r.dirty + r.writeback) * page_size(), size) };
	return (0);
}
