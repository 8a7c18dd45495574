/* t/unit/io/hot.c -- the loop answers for files in memory; a thread reads the others. */
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "io/disk/hot.h"
#include "io/disk/job.h"
#include "io/disk/mounts.h"
#include "t/unit/io/in_dir.h"

#define SIZE (600u << 10)

static bool no_dev_null;

/* As in a chroot(2). */
int
open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = (flags & O_CREAT) != 0 ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (no_dev_null && strcmp(path, "/dev/null") == 0) {
		errno = ENOENT;
		return (-1);
	}
	return ((int)syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

static int
root_of(const char *path)
{
	int fd = -1;

	g_assert_cmpint(io_root_open(path, &fd), ==, 0);
	return (fd);
}

static char *
make(const char *name)
{
	char *path = file_make(dir, name, SIZE);

	file_was_read(path);
	return (path);
}

static int
hot(int root, const char *path, uint64_t resolve, uint64_t from, uint64_t bytes)
{
	const struct range_set want = { 1, { { from, UINT64_MAX } } };
	struct io_hot h = { .root = root,
		.path = path,
		.resolve = resolve,
		.want = &want,
		.bytes = bytes };
	struct statx stx;

	return (io_open_hot(&h, &stx));
}

/* ---------------------------------------------------------------- names */

TEST("/hot/names")
{
	/* The quick walk does not follow a link whose access time is to be written. */
	const struct timespec followed[] = { { .tv_sec = time(NULL) + 60 },
		{ .tv_nsec = UTIME_OMIT } };
	int root = root_of(dir), fds;
	g_autofree char *path = make("f"), *link = g_build_filename(dir, "out", NULL);
	struct io_hot h = { .root = root, .path = "f", .resolve = IO_BENEATH };
	struct statx stx;

	g_assert_cmpint(symlink("/dev", link), ==, 0);
	g_assert_cmpint(utimensat(AT_FDCWD, link, followed, AT_SYMLINK_NOFOLLOW), ==, 0);
	g_assert_true(io_fd_is_local(root));
	fds = fd_count();
	g_assert_cmpint(io_open_hot(&h, &stx), ==, 0);
	g_assert_cmpuint(stx.stx_size, ==, SIZE);
	h.path = "";
	g_assert_cmpint(io_open_hot(&h, &stx), ==, 0);
	g_assert_true(S_ISDIR(stx.stx_mode));
	/* the kernel knows that it is not there */
	g_assert_cmpint(faccessat(root, "none", F_OK, 0), ==, -1);
	g_assert_cmpint(hot(root, "none", IO_BENEATH, 0, 0), ==, -ENOENT);
	g_assert_cmpint(hot(root, "out/null", IO_BENEATH, 0, 0), ==, -EXDEV);
	g_assert_cmpint(hot(root, "../f", IO_BENEATH, 0, 0), !=, 0);
	g_assert_cmpint(hot(root, "out", IO_NO_SYMLINKS, 0, 0), ==, -ELOOP);
	g_assert_cmpint(fd_count(), ==, fds);
	close(root);
	g_unlink(link);
}

/* proc is not a disk, even when the path begins on one. */
TEST("/hot/mounts")
{
	int root = root_of("/"), proc = root_of("/proc");

	g_assert_false(io_fd_is_local(proc));
	g_assert_cmpint(access("/proc/version", R_OK), ==, 0);
	if (!io_fd_is_local(root)) {
		g_test_skip("/ is not on a local file system");
	} else {
		g_assert_cmpint(hot(root, "proc/version", 0, 0, 0), ==, -EAGAIN);
		g_assert_cmpint(hot(root, "proc/version", IO_BENEATH, 0, 0), ==, -EAGAIN);
	}
	close(root);
	close(proc);
}

TEST("/hot/mounted-memory")
{
	int root = root_of("/"), shm = open("/dev/shm", O_PATH | O_CLOEXEC);
	char name[] = "/dev/shm/hot-XXXXXX";
	int fd = -1;

	if (shm < 0 || !io_fd_is_local(shm) || !io_fd_is_local(root) ||
	    (fd = g_mkstemp(name)) < 0) {
		g_test_skip("no local file system in /dev/shm");
	} else {
		g_assert_cmpint(write(fd, "x", 1), ==, 1);
		g_assert_cmpint(hot(root, name + 1, 0, 0, 1), ==, 0);
		close(fd);
		g_unlink(name);
	}
	close(shm);
	close(root);
}

/* ---------------------------------------------------------------- bytes */

static void
make_cold(int fd)
{
	g_assert_cmpint(fdatasync(fd), ==, 0);
	g_assert_cmpint(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), ==, 0);
}

TEST("/hot/bytes")
{
	int root = root_of(dir), fd;
	char *path = make("b"), c;

	fd = open(path, O_RDWR | O_CLOEXEC);
	g_assert_cmpint(hot(root, "b", IO_BENEATH, 0, SIZE), ==, 0);
	g_assert_cmpint(hot(root, "b", IO_BENEATH, 0, UINT64_MAX), ==, 0); /* as far as it goes */
	make_cold(fd);
	if (hot(root, "b", IO_BENEATH, 0, SIZE) == 0) {
		g_test_skip("its pages cannot be dropped here");
	} else {
		g_assert_cmpint(hot(root, "b", IO_BENEATH, 0, SIZE), ==, -EAGAIN);
		g_assert_cmpint(hot(root, "b", IO_BENEATH, 0, 0), ==, 0);
		g_assert_cmpint(hot(root, "b", IO_BENEATH, SIZE, 100), ==, 0); /* nothing there */
		posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
		g_assert_cmpint(pread(fd, &c, 1, 300 << 10), ==, 1);
		g_assert_cmpint(hot(root, "b", IO_BENEATH, 300 << 10, 4096), ==, 0);
		g_assert_cmpint(hot(root, "b", IO_BENEATH, 300 << 10, 8192), ==, -EAGAIN);
	}
	g_assert_cmpint(ftruncate(fd, IO_HOT_MAX + 1), ==, 0);
	g_assert_cmpint(hot(root, "b", IO_BENEATH, 0, UINT64_MAX), ==, -EAGAIN);
	close(fd);
	close(root);
	g_free(path);
}

/* A thread reads a file whose access time has to be written. */
TEST("/hot/marks")
{
	g_autofree char *path = file_make(dir, "m", SIZE);
	int root = root_of(dir), fd = open(path, O_PATH | O_CLOEXEC);
	struct statx stx;

	g_assert_cmpint(statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx), ==, 0);
	if (!mounts_marks(stx.stx_mnt_id)) {
		g_test_skip("no access times here");
	} else {
		g_assert_cmpint(hot(root, "m", IO_BENEATH, 0, SIZE), ==, -EAGAIN);
		g_assert_cmpint(hot(root, "m", IO_BENEATH, 0, 0), ==, 0); /* no byte is read */
		file_was_read(path);
		g_assert_cmpint(hot(root, "m", IO_BENEATH, 0, SIZE), ==, 0);
	}
	close(fd);
	close(root);
}

/* ---------------------------------------------------------------- IO_READ, only_warm */

static int64_t
warm(struct io_file *f, uint64_t off, uint32_t len, bool spare)
{
	struct waiter w;

	wait_init(&w, IO_READ, NULL);
	w.op.only_warm = true;
	w.op.file.file = f;
	w.op.file.off = off;
	w.op.file.len = len;
	w.op.spare = spare;
	return (wait_op(&w));
}

static void
test_warm(void)
{
	g_autofree char *path = file_make(dir, "w", SIZE);
	struct io_file *f;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	make_cold(fd);
	close(fd);
	loop_up(file_backends[0], 1, 8);
	f = file_open(path, SIZE);
	g_assert_cmpint(warm(f, 0, IO_WINDOW, false), ==, IO_WINDOW);
	g_assert_true(io_file_counted(f, 0, IO_WINDOW));
	g_assert_cmpint(warm(f, 2 * IO_WINDOW, IO_WINDOW, false), ==, SIZE - 2 * IO_WINDOW);
	g_assert_cmpint(warm(f, SIZE, IO_WINDOW, false), ==, 0);
	g_assert_cmpint(warm(f, IO_WINDOW, IO_WINDOW, true), ==, IO_WINDOW);
	g_assert_true(io_file_counted(f, 0, SIZE));
	gate_enter_dev(LANE_READ, io_file_dev(f));
	/* the thread has something to do */
	g_assert_cmpint(warm(f, 0, IO_WINDOW, true), ==, -EAGAIN);
	gate_leave();
	io_file_put(f);
	run_ms(1);
	loop_down();
}

TEST("/hot/warm")
{
	test_warm();
}

TEST("/hot/warm-in-chroot")
{
	if (!g_test_subprocess()) {
		g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
		g_test_trap_assert_passed();
		return;
	}
	no_dev_null = true;
	test_warm();
}

/* ---------------------------------------------------------------- open, and closed again */

static struct io_first first;
static struct statx stx;

static int64_t
open_first(int root, const char *path, uint64_t shut)
{
	struct waiter w;

	first = (struct io_first){ .warm = true, .shut = shut };
	wait_init(&w, IO_OPEN, NULL);
	w.op.open.root = root;
	w.op.open.path = path;
	w.op.open.resolve = IO_BENEATH;
	w.op.open.stx = &stx;
	w.op.open.first = &first;
	return (wait_op(&w));
}

TEST("/hot/shut")
{
	g_autofree char *path = file_make(dir, "s", SIZE),
			*fifo = g_build_filename(dir, "fifo", NULL);
	int root = root_of(dir), fds;
	int64_t fd;

	g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
	loop_up(file_backends[0], 1, 8);
	fds = fd_count();
	g_assert_cmpint(open_first(root, "s", SIZE), ==, 0);
	g_assert_true(first.closed);
	g_assert_cmpuint(first.n, ==, IO_WINDOW);
	g_assert_cmpuint(stx.stx_size, ==, SIZE);
	g_assert_cmpint(open_first(root, "", 1), ==, 0);
	g_assert_true(first.closed);
	g_assert_true(S_ISDIR(stx.stx_mode));
	g_assert_cmpint(open_first(root, "fifo", 1), ==, -EACCES);
	g_assert_true(S_ISFIFO(stx.stx_mode));
	g_assert_cmpint(open_first(root, "none", 1), ==, -ENOENT);
	g_assert_cmpuint(stx.stx_mode, ==, 0);
	g_assert_cmpint(fd_count(), ==, fds);
	fd = open_first(root, "s", SIZE - 1); /* longer than that */
	g_assert_cmpint(fd, >, 0);
	g_assert_false(first.closed);
	close((int)fd);
	fd = open_first(root, "s", 0);
	g_assert_cmpint(fd, >, 0);
	close((int)fd);
	loop_down();
	close(root);
}

TEST("/hot/phase")
{
	int root = root_of(dir);
	struct waiter w;

	loop_up(file_backends[0], 1, 8);
	gate_enter_dev(LANE_STAT, io_dev_of(root));
	wait_init(&w, IO_OPEN, NULL);
	w.op.only_stat = true;
	w.op.open.root = root;
	w.op.open.path = "";
	w.op.open.stx = &stx;
	wait_submit(&w);
	g_assert_cmpint(io_phase(io, &w.op), ==, IO_WAITS);
	gate_leave();
	g_assert_cmpint(wait_for(&w), ==, 0);
	g_assert_cmpint(io_phase(io, &w.op), ==, IO_RUNS);
	loop_down();
	close(root);
}

/* The user of a web server is not the owner of the file.  Newer kernels do not tell it how
 * much of the file is in memory. */
static int
hot_for_nobody(int root)
{
	if (setgid(65534) != 0 || setuid(65534) != 0)
		return (99);
	return (-hot(root, "f", IO_BENEATH, 0, SIZE));
}

TEST("/hot/another-user")
{
	int status, root;
	char *path;
	pid_t pid;

	if (geteuid() != 0) {
		g_test_skip("needs root, to become another user");
		return;
	}
	path = make("f");
	g_assert_cmpint(chmod(dir, 0755) | chmod(path, 0644), ==, 0);
	root = root_of(dir);
	g_assert_cmpint(hot(root, "f", IO_BENEATH, 0, SIZE), ==, 0);
	pid = fork();
	if (pid == 0)
		_exit(hot_for_nobody(root));
	g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
	g_assert_cmpint(WEXITSTATUS(status), ==, 0);
	close(root);
	g_free(path);
}
