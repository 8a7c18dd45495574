/* t/unit/io/no_wait.c -- with each backend: the loop makes no call on a file that may wait for its
 * disk, even if pages leave between the look and the send, or if the disk hangs. */
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include "io/hotset.h"
#include "t/unit/io/transfer_test.h"

#define SIZE (700u << 10) /* three windows */

static pthread_t loop;
static struct stat file; /* the file under test */
static bool leaves;      /* its pages leave while it is looked at */
static bool hangs;       /* its disk does */
static unsigned looks;   /* of the loop */
static bool finds;       /* after the next look, held windows are found */
static struct io_file *f;

static bool
is_file(int fd)
{
	struct stat st;

	return (fstat(fd, &st) == 0 && st.st_ino == file.st_ino && st.st_dev == file.st_dev);
}

static bool
on_loop(int fd)
{
	return (is_file(fd) && pthread_equal(pthread_self(), loop));
}

static int
gate_inside(void)
{
	int n;

	pthread_mutex_lock(&gate.lock);
	n = gate.inside;
	pthread_mutex_unlock(&gate.lock);
	return (n);
}

static void
gate_shut(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.open = false;
	pthread_mutex_unlock(&gate.lock);
}

/* A call that may wait for the disk. */
static void
waits(int fd)
{
	if (!is_file(fd))
		return;
	if (pthread_equal(pthread_self(), loop))
		g_error("%s: the loop waits for a disk", backend->name);
	if (__atomic_load_n(&hangs, __ATOMIC_ACQUIRE))
		gate_wait();
}

ssize_t
preadv2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	if ((flags & RWF_NOWAIT) == 0)
		waits(fd);
	if (on_loop(fd)) {
		looks++;
		f->version.ctime_s += finds;
		finds = false;
		if (leaves && looks % 3 != 0)
			posix_fadvise(fd, (looks % 2) * 100000, 0, POSIX_FADV_DONTNEED);
		if (hangs) {
			errno = EAGAIN;
			return (-1);
		}
	}
	return (syscall(SYS_preadv2, fd, iov, n, off, 0, flags));
}

ssize_t
pread(int fd, void *buf, size_t n, off_t off)
{
	waits(fd);
	return (syscall(SYS_pread64, fd, buf, n, off));
}

ssize_t
preadv(int fd, const struct iovec *iov, int n, off_t off)
{
	waits(fd);
	return (syscall(SYS_preadv, fd, iov, n, off, 0));
}

ssize_t
sendfile(int out, int in, off_t *off, size_t n)
{
	waits(in);
	return (syscall(SYS_sendfile, out, in, off, n));
}

/* ---------------------------------------------------------------- a file and its replies */

static char *path;

static void
up(void)
{
	struct statx stx;

	path = file_make(dir, "f", SIZE);
	g_assert_cmpint(stat(path, &file), ==, 0);
	leaves = hangs = false;
	looks = 0;
	loop_up(backend, 2, 64);
	f = file_open(path, SIZE);
	g_assert_cmpint(statx(f->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx), ==, 0);
	io_file_watch(f, &stx);
	device_is_fit(f->dev, true);
}

static void
down(void)
{
	io_file_put(f);
	run_ms(1);
	loop_down();
	g_unlink(path);
	g_free(path);
}

static void
reply(uint64_t off, uint64_t len)
{
	struct client c = { 0 };

	client_start(&c, true, 0);
	reply_start(f, off, len);
	reply_wait();
	g_assert_cmpint(end_res, ==, 0);
	client_end(&c);
	check_bytes(c.got, off, len);
	client_free(&c);
}

static uint64_t
windows_held(void)
{
	struct io_hotset_status v;

	io_pools_hotset(pools, &v);
	return (v.windows);
}

/* Sends the file until its windows are held: the times of a file are settled a tick after it was
 * written. */
static void
hold_it(void)
{
	unsigned tries;

	for (tries = 0; windows_held() < 3; tries++) {
		g_assert_cmpuint(tries, <, 1000);
		reply(0, SIZE);
		run_ms(10);
	}
}

/* ---------------------------------------------------------------- tests */

static void
test_pages_leave(void)
{
	unsigned i;

	up();
	leaves = true;
	for (i = 0; i < 6; i++)
		reply(i * 50000, SIZE - i * 70000);
	down();
}

/* No call looks at a device that is not fit. */
static void
test_not_fit(void)
{
	up();
	device_is_fit(f->dev, false);
	reply(0, SIZE);
	reply(5, SIZE - 5);
	g_assert_cmpuint(looks, ==, 0);
	down();
}

/* A window that is wanted again is held: no look, no thread.  With another version it is not
 * sent. */
static void
test_held(void)
{
	const struct timespec then[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };
	struct statx stx;
	uint64_t sent;

	if (!backend->holds)
		return;
	up();
	reply(0, SIZE);
	g_assert_cmpuint(io->counters->hotset_sent, ==, 0); /* wanted once */
	hold_it();
	looks = 0;
	sent = io->counters->hotset_sent;
	reply(1000, SIZE - 2000);
	g_assert_cmpuint(io->counters->hotset_sent, ==, sent + 3);
	g_assert_cmpuint(looks, ==, 0);
	g_assert_cmpuint(io->counters->hotset_filled, >=, 3);
	g_assert_cmpint(futimens(f->fd, then), ==, 0);
	g_assert_cmpint(statx(f->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx), ==, 0);
	io_file_watch(f, &stx);
	sent = io->counters->hotset_sent;
	reply(0, SIZE);
	g_assert_cmpuint(io->counters->hotset_sent, ==, sent);
	down();
}

/* The first window is read from a file that was written to after it was opened; the others are held
 * with the version at opening. */
static void
test_two_versions(void)
{
	struct client c = { 0 };
	uint64_t i;
	int fd;

	if (!backend->holds)
		return;
	up();
	hold_it();
	f->version.ctime_s--; /* the first is not found */
	finds = true;
	client_start(&c, true, 0);
	reply_start(f, 0, SIZE);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	for (i = 0; i < SIZE; i += 4)
		g_assert_cmpint(pwrite(fd, "new!", 4, (off_t)i), ==, 4);
	close(fd);
	reply_wait();
	client_end(&c);
	g_assert_cmpint(end_res, ==, -ETXTBSY);
	client_free(&c);
	down();
}

/* The first window is held, and the others are read after the file became longer.  It is sent,
 * unless the file has other bytes now where that window was. */
static void
longer_than_held(uint64_t at, int res)
{
	struct client c = { 0 };
	uint64_t sent;
	int fd;

	up();
	while (windows_held() < 1) {
		reply(0, IO_WINDOW);
		run_ms(10);
	}
	client_start(&c, true, 0);
	sent = io->counters->hotset_sent;
	reply_start(f, 0, SIZE);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	g_assert_cmpint(pwrite(fd, "more", 4, SIZE), ==, 4);
	if (at != 0)
		g_assert_cmpint(pwrite(fd, "\1\2\1\2", 4, (off_t)at), ==, 4);
	close(fd);
	reply_wait();
	client_end(&c);
	g_assert_cmpuint(io->counters->hotset_sent, >, sent);
	g_assert_cmpint(end_res, ==, res);
	if (res == 0)
		check_bytes(c.got, 0, SIZE);
	client_free(&c);
	down();
}

static void
test_longer_than_held(void)
{
	if (!backend->holds)
		return;
	longer_than_held(0, 0);
	longer_than_held(IO_WINDOW - 4, -ETXTBSY);
}

/* A held file is sent; for the others only their clients wait. */
static void
test_disk_hangs(void)
{
	struct client c = { 0 };
	bool own = strcmp(backend->name, "posix-aio") == 0 ||
		   strcmp(backend->name, "io-uring") == 0 ||
		   strcmp(backend->name, "linux-aio-sendfile") == 0; /* the kernel reads */

	up();
	if (backend->holds)
		hold_it();
	gate_shut();
	__atomic_store_n(&hangs, true, __ATOMIC_RELEASE);
	if (backend->holds)
		reply(0, SIZE);
	f->version.mtime_s++; /* another file, which is not held */
	client_start(&c, true, 0);
	reply_start(f, 0, SIZE);
	snd.begun = NULL;
	while (!ended && gate_inside() == 0)
		run_ms(1);
	run_ms(20); /* the loop turns */
	if (!ended)
		sender_cancel(&snd);
	reply_wait();
	if (!own)
		g_assert_cmpint(end_res, ==, -ECANCELED);
	__atomic_store_n(&hangs, false, __ATOMIC_RELEASE);
	gate_open();
	client_end(&c);
	client_free(&c);
	while (f->refs > 1)
		run_ms(1);
	down();
}

static const struct backend_test tests[] = {
	{ "pages-leave", test_pages_leave },
	{ "not-fit", test_not_fit },
	{ "held", test_held },
	{ "two-versions", test_two_versions },
	{ "longer-than-held", test_longer_than_held },
	{ "disk-hangs", test_disk_hangs },
};

int
main(int argc, char **argv)
{
	loop = pthread_self();
	return (run_each_backend(argc, argv, tests, NELEM(tests)));
}
