/* t/unit/io/at_once.c -- the loop opens and reads what is in memory; a thread does the rest. */
#include <stdarg.h>
#include <sys/syscall.h>
#include "io/disk/mounts.h"
#include "io/disk/open.h"
#include "t/unit/io/in_dir.h"

#define SMALL 1000u
#define LARGE (600u << 10)
#define KEEP  (16u << 10)

static unsigned slow_ms;
static bool waited;

/* A file system that waits although all is in memory. */
int
statx(int at, const char *path, int flags, unsigned mask, struct statx *stx)
{
	if ((mask & STATX_ATIME) != 0 && slow_ms != 0)
		g_usleep(slow_ms * 1000);
	return ((int)syscall(SYS_statx, at, path, flags, mask, stx));
}

static bool foreign;
static unsigned tries;

/* Files of another user. */
int
fcntl(int fd, int cmd, ...)
{
	va_list ap;
	long arg;

	va_start(ap, cmd);
	arg = va_arg(ap, long);
	va_end(ap);
	if (cmd == F_SETFL && (arg & O_NOATIME) != 0 && foreign) {
		tries++;
		errno = EPERM;
		return (-1);
	}
	return ((int)syscall(SYS_fcntl, fd, cmd, arg));
}

struct asked {
	struct waiter w;
	struct io_first first;
	struct statx stx;
};

static int64_t
ask(struct asked *a, int root, const char *path, uint64_t resolve)
{
	wait_init(&a->w, IO_OPEN, NULL);
	device_is_fit(io_dev_of(root), !waited);
	memset(&a->stx, 0, sizeof(a->stx));
	a->first = (struct io_first){ .keep = KEEP, .warm = true, .shut = KEEP };
	a->w.op.open.root = root;
	a->w.op.open.path = path;
	a->w.op.open.resolve = IO_LOCAL | resolve;
	a->w.op.open.stx = &a->stx;
	a->w.op.open.first = &a->first;
	return (wait_op(&a->w));
}

/* Checks that the op ends with this result, by a thread or not. */
static void
check(int root, const char *path, uint64_t resolve, int64_t res, bool threaded)
{
	struct asked a;

	g_assert_cmpint(ask(&a, root, path, resolve), ==, res);
	g_assert_cmpint(a.w.op.threaded, ==, threaded);
	free(a.first.bytes);
	free(a.first.real);
}

static char *
make(const char *name, size_t size)
{
	char *path = file_make(dir, name, size);

	file_was_read(path);
	return (path);
}

static int
begin(void)
{
	int root = -1;

	g_assert_cmpint(io_root_open(dir, &root), ==, 0);
	g_assert_true(io_fd_is_local(root));
	loop_up(file_backends[0], 1, 8);
	return (root);
}

static void
end(int root)
{
	loop_down();
	close(root);
}

/* ---------------------------------------------------------------- in memory */

TEST("/at-once/small")
{
	g_autofree char *path = make("small", SMALL), *empty = make("empty", 0);
	int root = begin(), fds = fd_count();
	struct asked a;

	g_assert_cmpint(ask(&a, root, "small", IO_BENEATH), ==, 0);
	g_assert_false(a.w.op.threaded);
	g_assert_true(a.first.closed);
	g_assert_cmpuint(a.first.n, ==, SMALL);
	g_assert_cmpuint(a.stx.stx_size, ==, SMALL);
	g_assert_nonnull(a.first.bytes);
	free(a.first.bytes);
	check(root, "", IO_BENEATH, 0, false); /* the directory itself */
	g_assert_cmpint(fd_count(), ==, fds);
	g_assert_cmpint(ask(&a, root, "empty", IO_BENEATH), >=, 0);
	g_assert_false(a.w.op.threaded || a.first.closed);
	close((int)a.w.res);
	end(root);
}

/* The ends of the file are in memory; the sender looks for the rest. */
TEST("/at-once/large")
{
	g_autofree char *path = make("large", LARGE);
	int root = begin();
	struct asked a;

	g_assert_cmpint(ask(&a, root, "large", IO_BENEATH), >=, 0);
	g_assert_false(a.w.op.threaded || a.first.closed);
	g_assert_cmpuint(a.first.n, ==, 0);
	io_file_put(io_file_new(io, (int)a.w.res, LARGE));
	run_ms(1);
	end(root);
}

/* No byte is read, so no time is written. */
TEST("/at-once/for-others")
{
	g_autofree char *path = file_make(dir, "given", SMALL);
	int root = begin();
	struct asked a = { 0 };

	wait_init(&a.w, IO_OPEN, NULL);
	device_is_fit(io_dev_of(root), true);
	a.w.op.open.root = root;
	a.w.op.open.path = "given";
	a.w.op.open.resolve = IO_LOCAL | IO_BENEATH | IO_GIVEN;
	a.w.op.open.stx = &a.stx;
	g_assert_cmpint(wait_op(&a.w), >=, 0);
	g_assert_false(a.w.op.threaded);
	close((int)a.w.res);
	end(root);
}

TEST("/at-once/only-facts")
{
	char *path = file_make(dir, "facts", SMALL); /* no byte is read, so no time is written */
	int root = begin(), fds = fd_count();
	struct asked a = { 0 };

	wait_init(&a.w, IO_OPEN, NULL);
	a.w.op.only_stat = a.w.op.urgent = true;
	a.w.op.open.root = root;
	a.w.op.open.path = "facts";
	a.w.op.open.resolve = IO_LOCAL | IO_BENEATH | IO_LINKS;
	a.w.op.open.stx = &a.stx;
	g_assert_cmpint(wait_op(&a.w), ==, 0);
	g_assert_false(a.w.op.threaded);
	g_assert_cmpuint(a.stx.stx_size, ==, SMALL);
	g_assert_cmpint(fd_count(), ==, fds);
	end(root);
	g_free(path);
}

/* ---------------------------------------------------------------- for a thread */

TEST("/at-once/names")
{
	g_autofree char *path = make("there", SMALL), *link = g_build_filename(dir, "link", NULL),
			*fifo = g_build_filename(dir, "fifo", NULL);
	int root = begin(), slash = -1, fds = fd_count();

	g_assert_cmpint(symlink("there", link), ==, 0);
	g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
	check(root, "none", IO_BENEATH, -ENOENT, true);
	check(root, "none", IO_BENEATH, -ENOENT, false); /* now the kernel knows */
	check(root, "link", IO_BENEATH | IO_NO_SYMLINKS, -ELOOP, true);
	check(root, "link", IO_BENEATH | IO_REAL_NAME, 0, true);
	check(root, "..", IO_BENEATH, -EXDEV, true);
	check(root, "fifo", IO_BENEATH, -EACCES, false);
	check(root, "/there", IO_BENEATH, -EXDEV, true);
	g_assert_cmpint(fd_count(), ==, fds);
	/* another file system, which may be that of another machine */
	g_assert_cmpint(io_root_open("/", &slash), ==, 0);
	g_assert_cmpint(access("/proc/self/limits", R_OK), ==, 0);
	check(slash, "proc", 0, 0, true);
	close(slash);
	end(root);
}

/* Nothing may look at the bytes before: some kernels begin to read them then. */
static bool
drop(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	bool dropped = fdatasync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;

	close(fd);
	return (dropped);
}

TEST("/at-once/cold")
{
	g_autofree char *small = make("cold", SMALL), *large = make("cold-large", LARGE);
	int root = begin();
	struct asked a;

	if (!drop(small) || ask(&a, root, "cold", IO_BENEATH) != 0 || !a.w.op.threaded) {
		g_test_skip("its pages cannot be dropped here");
	} else {
		g_assert_cmpuint(a.first.n, ==, SMALL);
		free(a.first.bytes);
		check(root, "cold", IO_BENEATH, 0, false);
		g_assert_true(drop(large));
		g_assert_cmpint(ask(&a, root, "cold-large", IO_BENEATH), >=, 0);
		g_assert_true(a.w.op.threaded);
		g_assert_cmpuint(a.first.n, ==, IO_WINDOW);
		close((int)a.w.res);
	}
	end(root);
}

/* The access time is written by a thread, once; without a read it is not written. */
TEST("/at-once/marks")
{
	g_autofree char *path = file_make(dir, "new", SMALL);
	const struct timespec never[] = { { .tv_sec = 1 }, { .tv_sec = time(NULL) - 100 } },
			      once[] = { { .tv_sec = time(NULL) - 90000 }, { .tv_sec = 1 } };
	struct statx stx;
	int root = begin();

	g_assert_cmpint(statx(AT_FDCWD, path, 0, STATX_BASIC_STATS | STATX_MNT_ID, &stx), ==, 0);
	if (!mounts_marks(stx.stx_mnt_id)) {
		g_test_skip("mounted with noatime");
	} else {
		g_assert_cmpint(utimensat(AT_FDCWD, path, never, 0), ==, 0);
		check(root, "new", IO_BENEATH, 0, true);
		file_was_read(path);
		check(root, "new", IO_BENEATH, 0, false);
		g_assert_cmpint(utimensat(AT_FDCWD, path, once, 0), ==, 0); /* a day ago */
		check(root, "new", IO_BENEATH, 0, true);
		check(root, "new", IO_BENEATH | IO_NOATIME, 0, false);
	}
	end(root);
}

/* Files of other owners stay on the loop, and cost no call once their owner is known. */
TEST("/at-once/foreign")
{
	g_autofree char *path = make("foreign", LARGE);
	int root = begin(), i;
	struct asked a;

	foreign = true;
	for (i = 0; i < 3; i++) {
		g_assert_cmpint(ask(&a, root, "foreign", IO_BENEATH | IO_NOATIME), >=, 0);
		g_assert_false(a.w.op.threaded);
		g_assert_cmpint(fcntl((int)a.w.res, F_GETFL) & O_NOATIME, ==, 0);
		close((int)a.w.res);
	}
	foreign = false;
	g_assert_cmpuint(tries, ==, 1);
	g_assert_cmpuint(io->counters->noatime_refused, ==, 3);
	end(root);
}

/* A loop that had to wait leaves the next look to the threads. */
TEST("/at-once/waited")
{
	g_autofree char *path = make("waits", SMALL);
	struct io_hotset_status v;
	int root = begin();

	io->health.doubt = 0;
	slow_ms = 20;
	check(root, "waits", IO_BENEATH, 0, false);
	/* perhaps it had no processor, for so long that it counts as a wait */
	g_assert_cmpuint(io->counters->loop_waits, <=, 1);
	check(root, "waits", IO_BENEATH, 0, false);
	slow_ms = 0;
	g_assert_cmpuint(io->counters->loop_waits, !=, 0);
	io_pools_hotset(pools, &v);
	g_assert_cmpuint(v.longest_wait_ns, >=, 20 * NS_PER_MS);
	memset(&io->health, 0, sizeof(io->health));
	g_assert_false(io_device_is_fit(io, io_dev_of(root))); /* for ten seconds */
	waited = true;
	check(root, "waits", IO_BENEATH, 0, true);
	waited = false;
	check(root, "waits", IO_BENEATH, 0, false);
	end(root);
}
