/* t/unit/io/half_written.c -- with each backend: a reply looks at its file while a write is under
 * way, so the time is new and the size is still the old one. */
#include <sys/syscall.h>
#include "t/unit/io/transfer_test.h"

#define SIZE (3u << 20)

static struct io_file *f;
static char *path;
static ino_t ino;
static unsigned half; /* looks that see the old size */
static bool ends;     /* the write does end */

int
statx(int at, const char *restrict name, int flags, unsigned mask, struct statx *restrict stx)
{
	int res = (int)syscall(SYS_statx, at, name, flags, mask, stx);

	if (res != 0 || stx->stx_ino != ino || stx->stx_size <= SIZE)
		return (res);
	if (!ends || __atomic_load_n(&half, __ATOMIC_ACQUIRE) > 0) {
		stx->stx_size = SIZE;
		__atomic_sub_fetch(&half, 1, __ATOMIC_ACQ_REL);
	}
	return (res);
}

static void
grow(void)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	g_assert_cmpint(write(fd, "more", 4), ==, 4);
	close(fd);
}

static int
reply_of_growing(bool write_ends)
{
	const struct timespec lately = { .tv_sec = time(NULL) - 100 }, then[2] = { lately, lately };
	struct client c = { 0 };
	struct statx stx;

	path = file_make(dir, "f", SIZE);
	loop_up(backend, 2, 64);
	f = file_open(path, SIZE);
	g_assert_cmpint(futimens(f->fd, then), ==, 0);
	g_assert_cmpint(statx(f->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx), ==, 0);
	ino = stx.stx_ino;
	io_file_watch(f, &stx);
	half = 1;
	ends = write_ends;
	client_start(&c, true, 0);
	reply_start(f, 0, SIZE);
	grow();
	reply_wait();
	client_end(&c);
	if (end_res == 0)
		check_bytes(c.got, 0, SIZE);
	client_free(&c);
	io_file_put(f);
	run_ms(1);
	loop_down();
	g_unlink(path);
	g_free(path);
	return (end_res);
}

static void
test_ends(void)
{
	g_assert_cmpint(reply_of_growing(true), ==, 0);
	g_assert_cmpuint(half, ==, 0);
}

static void
test_does_not_end(void)
{
	g_assert_cmpint(reply_of_growing(false), ==, -ETXTBSY);
}

static const struct backend_test tests[] = {
	{ "ends", test_ends },
	{ "does-not-end", test_does_not_end },
};

int
main(int argc, char **argv)
{
	return (run_each_backend(argc, argv, tests, NELEM(tests)));
}
