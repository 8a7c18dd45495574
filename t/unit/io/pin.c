/* t/unit/io/pin.c -- pinned windows stay in memory, in their bounds, and no longer than their
 * time. */
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "io/counters.h"
#include "io/disk/pin.h"
#include "t/unit/io/in_dir.h"

#define SIZE   (64u << 10)
#define BUDGET (4 * SIZE)
#define LONG   (3600 * 1000u) /* ms */

static struct io_pins_counters counts;

static void
begin(uint64_t bytes, unsigned ms)
{
	const struct io_pins_conf conf = { .bytes = bytes, .ms = ms, .counters = &counts };

	memset(&counts, 0, sizeof(counts));
	io_pins_start(&conf);
}

static uint64_t
bytes(void)
{
	struct io_pins_status s;

	io_pins_status(&s);
	return (s.bytes);
}

static void
end(void)
{
	io_pins_stop();
	g_assert_cmpuint(bytes(), ==, 0);
	g_assert_false(io_pins_on());
}

/* A clean file: pages that are not on the disk yet are not dropped. */
static int
make(unsigned n, uint64_t size)
{
	char name[16], *path;
	int fd;

	g_snprintf(name, sizeof(name), "f%u", n);
	path = file_make(dir, name, size);
	fd = open(path, O_RDWR | O_CLOEXEC);
	g_assert_cmpint(fd, >=, 0);
	g_assert_cmpint(fsync(fd), ==, 0);
	g_free(path);
	return (fd);
}

static struct statx
facts(int fd)
{
	struct statx stx;

	g_assert_cmpint(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx), ==, 0);
	return (stx);
}

/* Counts the pages from off that stay when the file should leave memory. */
static unsigned
stay(int fd, uint64_t off, uint64_t len)
{
	unsigned char vec[256];
	unsigned n = 0;
	void *p;

	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, (off_t)off);
	g_assert_true(p != MAP_FAILED);
	g_assert_cmpint(mincore(p, len, vec), ==, 0);
	munmap(p, len);
	for (uint64_t i = 0; i < len / 4096; i++)
		n += vec[i] & 1;
	return (n);
}

static bool
pinned(int fd)
{
	struct statx stx = facts(fd);

	return (io_pin_again(&stx));
}

TEST("/pin/stays")
{
	int fd = make(0, SIZE + 100);
	struct statx stx = facts(fd);

	g_assert_cmpuint(stay(fd, 0, SIZE), ==, 0);
	io_pin_window(fd, 0, SIZE);
	g_assert_cmpuint(stay(fd, 0, SIZE), ==, 0); /* off */

	begin(BUDGET, LONG);
	io_pin_window(fd, 5000, 10000); /* whole pages: the second to the fourth */
	g_assert_cmpuint(bytes(), ==, 3 * 4096);
	g_assert_cmpuint(stay(fd, 0, SIZE), ==, 3);
	g_assert_cmpuint(stay(fd, 4096, 3 * 4096), ==, 3);
	io_pin_window(fd, 0, SIZE + 100);
	g_assert_cmpuint(stay(fd, 0, SIZE), ==, 16);
	io_pin_window(fd, 4096, SIZE - 4096);
	g_assert_cmpuint(counts.pinned, ==, 2); /* that one is within the second */
	io_pin_drop(&stx);
	g_assert_cmpuint(bytes(), ==, 0);
	g_assert_cmpuint(stay(fd, 0, SIZE), ==, 0);
	end();
	close(fd);
}

TEST("/pin/bound")
{
	int fd[5], big = make(9, BUDGET);

	begin(BUDGET, LONG);
	for (unsigned i = 0; i < 5; i++)
		fd[i] = make(i, SIZE);
	for (unsigned i = 0; i < 4; i++)
		io_pin_window(fd[i], 0, SIZE);
	g_assert_cmpuint(bytes(), ==, BUDGET);
	g_assert_true(pinned(fd[0])); /* the oldest is the second one now */
	io_pin_window(fd[4], 0, SIZE);
	g_assert_cmpuint(bytes(), ==, BUDGET);
	g_assert_cmpuint(counts.early, ==, 1);
	g_assert_cmpuint(stay(fd[0], 0, SIZE), ==, 16);
	g_assert_cmpuint(stay(fd[1], 0, SIZE), ==, 0);
	g_assert_cmpuint(stay(fd[4], 0, SIZE), ==, 16);

	for (unsigned i = 0; i < 4; i++) /* a long file has half at most, and its beginning */
		io_pin_window(big, i * (uint64_t)SIZE, SIZE);
	g_assert_cmpuint(counts.refused, ==, 2);
	g_assert_cmpuint(stay(big, 0, BUDGET / 2), ==, BUDGET / 2 / 4096);
	g_assert_cmpuint(bytes(), ==, BUDGET);
	end();
	for (unsigned i = 0; i < 5; i++)
		close(fd[i]);
	close(big);
}

TEST("/pin/time")
{
	int fd = make(0, SIZE);

	begin(BUDGET, LONG);
	io_pin_window(fd, 0, SIZE);
	io_pins_expire();
	g_assert_true(pinned(fd));
	g_assert_cmpuint(counts.again, ==, 1);
	end();
	begin(BUDGET, 0);
	io_pin_window(fd, 0, SIZE);
	g_assert_cmpuint(bytes(), ==, SIZE);
	while (bytes() != 0) /* a nanosecond */
		io_pins_expire();
	g_assert_false(pinned(fd));
	g_assert_cmpuint(stay(fd, 0, SIZE), ==, 0);
	g_assert_cmpuint(counts.early, ==, 0);
	end();
	close(fd);
}

static const char *
bytes_of(size_t n)
{
	static char some[SIZE];

	return (memset(some, 'x', n));
}

/* Neither a signal nor lost room. */
TEST("/pin/shorter")
{
	int fd = make(0, SIZE), other = make(1, SIZE);

	begin(BUDGET, LONG);
	io_pin_window(fd, 0, SIZE);
	g_assert_cmpint(ftruncate(fd, 100), ==, 0);
	g_assert_false(pinned(fd)); /* not these contents */
	g_assert_cmpint(pwrite(fd, bytes_of(SIZE), SIZE, 0), ==, SIZE);
	g_assert_cmpint(fsync(fd), ==, 0);
	g_assert_cmpuint(stay(fd, 0, SIZE), ==, 0);
	io_pin_window(fd, 0, SIZE);
	g_assert_true(pinned(fd));
	g_assert_cmpuint(stay(fd, 0, SIZE), ==, 16);
	g_assert_cmpuint(bytes(), ==, SIZE);
	g_assert_cmpint(ftruncate(other, 100), ==, 0);
	io_pin_window(other, 0, SIZE); /* it was longer when it was read */
	g_assert_cmpuint(counts.refused, ==, 1);
	g_assert_false(pinned(other));
	g_assert_cmpuint(bytes(), ==, SIZE);
	end();
	close(fd);
	close(other);
}

/* Another user than root, with room for one window. */
static void
refused(void)
{
	const struct rlimit two = { SIZE + 4096, SIZE + 4096 };
	int a = make(0, SIZE), b = make(1, SIZE);

	begin(BUDGET, LONG);
	if (setrlimit(RLIMIT_MEMLOCK, &two) < 0 || (geteuid() == 0 && setuid(65534) < 0))
		_exit(2);
	io_pin_window(a, 0, SIZE);
	io_pin_window(b, 0, SIZE);
	_exit(counts.pinned == 1 && counts.refused == 1 && bytes() == SIZE ? 0 : 1);
}

TEST("/pin/refused")
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		refused();
	g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
	g_assert_cmpint(status, ==, 0);
}

/* Threads pin more than fits, and others give files a new time and unpin them. */
static void *
busy(void *arg)
{
	const int *fd = arg;

	for (unsigned i = 0; i < 2000; i++) {
		struct statx stx = facts(fd[i % 7]);

		io_pin_window(fd[i % 7], 0, SIZE);
		(void)io_pin_again(&stx);
		if (i % 50 == 0)
			io_pin_drop(&stx);
		g_assert_cmpuint(bytes(), <=, BUDGET);
	}
	return (NULL);
}

TEST("/pin/threads")
{
	GThread *t[4];
	int fd[7];

	for (unsigned i = 0; i < 7; i++)
		fd[i] = make(i, SIZE);
	begin(BUDGET, LONG);
	for (unsigned i = 0; i < 4; i++)
		t[i] = g_thread_new("busy", busy, fd);
	for (unsigned i = 0; i < 4; i++)
		g_thread_join(t[i]);
	end();
	for (unsigned i = 0; i < 7; i++)
		close(fd[i]);
}
