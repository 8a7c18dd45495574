/* t/unit/io/loop_open.c -- look-ups in pool threads: containment, limits, cancels, and whether a
 * thread slept. */
#include <sys/syscall.h>
#include "t/unit/io/in_dir.h"

extern const struct file_backend file_gthread_aio;

static struct statx stx;

static int64_t
open_path(int root, const char *path, uint64_t resolve, bool only_stat)
{
	struct waiter w;
	g_autofree char *copy = g_strdup(path);

	wait_init(&w, IO_OPEN, NULL);
	w.op.only_stat = only_stat;
	w.op.open.root = root;
	w.op.open.path = copy;
	w.op.open.resolve = resolve;
	w.op.open.stx = &stx;
	w.op.deadline_ms = 5000;
	wait_op(&w);
	return (w.res);
}

static void
refused(int root, const char *path, uint64_t resolve, int err)
{
	g_assert_cmpint(open_path(root, path, resolve, false), ==, -err);
}

LOOP_TEST("/open/only regular files and directories below the root open", file_backends[0], 2, 8)
{
	g_autofree char *file = file_make(dir, "f", 5000),
			*fifo = g_build_filename(dir, "fifo", NULL),
			*link = g_build_filename(dir, "link", NULL),
			*out = g_build_filename(dir, "out", NULL),
			*sock = g_build_filename(dir, "s.sock", NULL);
	int64_t fd;
	int root;

	g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
	g_assert_cmpint(symlink("f", link), ==, 0);
	g_assert_cmpint(symlink("/etc/passwd", out), ==, 0);
	g_assert_cmpint(mknod(sock, S_IFSOCK | 0600, 0), ==, 0);
	g_assert_cmpint(io_root_open(dir, &root), ==, 0);
	fd = open_path(root, "f", IO_BENEATH, false);
	g_assert_cmpint(fd, >=, 0);
	g_assert_cmpuint(stx.stx_size, ==, 5000);
	g_assert_cmpint(fcntl((int)fd, F_GETFD) & FD_CLOEXEC, !=, 0);
	io_file_put(io_file_new(io, (int)fd, 5000));
	fd = open_path(root, "", IO_BENEATH, false);
	g_assert_cmpint(fd, >=, 0);
	g_assert_true(S_ISDIR(stx.stx_mode));
	close((int)fd);
	fd = open_path(root, "link", IO_BENEATH, false);
	g_assert_cmpint(fd, >=, 0);
	close((int)fd);
	g_assert_cmpint(open_path(root, "f", IO_BENEATH, true), ==, 0);
	g_assert_cmpuint(stx.stx_size, ==, 5000);
	refused(root, "link", IO_BENEATH | IO_NO_SYMLINKS, ELOOP);
	refused(root, "out", IO_BENEATH, EXDEV);
	refused(root, "../x", IO_BENEATH, EXDEV);
	refused(root, "/etc/passwd", IO_BENEATH, EXDEV);
	refused(root, "fifo", IO_BENEATH, EACCES);
	refused(root, "s.sock", IO_BENEATH, EACCES);
	refused(root, "absent", IO_BENEATH, ENOENT);
	refused(root, "f/x", IO_BENEATH, ENOTDIR);
	refused(AT_FDCWD, "/dev/null", 0, EACCES);
	io_close_fd(root);
}

static unsigned advised; /* counted by any thread of the lane */

int
posix_fadvise(int fd, off_t at, off_t len, int advice)
{
	__atomic_fetch_add(&advised, 1, __ATOMIC_RELAXED);
	return (-(int)syscall(SYS_fadvise64, fd, at, len, advice));
}

LOOP_TEST("/open/a descriptor for others is as open(2) makes it", file_backends[0], 2, 8)
{
	g_autofree char *file = file_make(dir, "f", 5000);
	int fd;

	advised = 0;
	fd = (int)open_path(AT_FDCWD, file, IO_GIVEN, false);
	g_assert_cmpint(fd, >=, 0);
	g_assert_cmpint(fcntl(fd, F_GETFL) & O_ACCMODE, ==, O_RDONLY);
	g_assert_cmpuint(advised, ==, 0);
	close(fd);
	fd = (int)open_path(AT_FDCWD, file, 0, false);
	g_assert_cmpuint(advised, ==, 1);
	close(fd);
}

static void
open_op(struct waiter *w, const char *path)
{
	wait_init(w, IO_OPEN, NULL);
	w->op.open.root = AT_FDCWD;
	w->op.open.path = path;
	w->op.open.stx = &stx;
}

/* Opens wait behind a stuck thread. */
LOOP_TEST("/open/a queued open has a deadline, a cancel and a limit", file_backends[0], 1, 3)
{
	g_autofree char *file = file_make(dir, "f", 10);
	struct waiter w[4], late;
	int i;

	gate_enter(LANE_STAT);
	for (i = 0; i < 4; i++)
		open_op(&w[i], file);
	w[0].op.deadline_ms = 20;
	for (i = 0; i < 3; i++)
		wait_submit(&w[i]);
	g_assert_cmpint(wait_op(&w[3]), ==, -EAGAIN);
	g_assert_cmpint(wait_for(&w[0]), ==, -ETIMEDOUT);
	op_cancel(io, &w[1].op);
	g_assert_cmpint(wait_for(&w[1]), ==, -ECANCELED);
	open_op(&late, file); /* two places are free again */
	wait_submit(&late);
	g_assert_false(w[2].done);
	gate_leave();
	g_assert_cmpint(wait_for(&w[2]), >=, 0);
	close((int)w[2].res);
	g_assert_cmpint(wait_for(&late), >=, 0);
	close((int)late.res);
	g_assert_cmpuint(w[2].op.at.start, >=, w[2].op.at.submit);
	g_assert_cmpuint(w[2].op.at.end, >=, w[2].op.at.start);
}

static enum { PLAIN, SLEEPS, SPINS } disk;

int
statx(int fd, const char *restrict path, int flags, unsigned mask, struct statx *restrict at)
{
	uint64_t until = clock_mono_ns() + 5 * NS_PER_MS;

	if (disk == SLEEPS)
		g_usleep(5000);
	while (disk == SPINS && clock_mono_ns() < until)
		;
	return ((int)syscall(SYS_statx, fd, path, flags, mask, at));
}

static bool
awake(const char *file)
{
	struct waiter w;

	open_op(&w, file);
	g_assert_cmpint(wait_op(&w), >=, 0);
	close((int)w.res);
	g_assert_cmpuint(w.op.at.end - w.op.at.start, >=, disk != PLAIN ? 5 * NS_PER_MS : 0);
	return (w.op.at.awake);
}

/* A thread whose processor another program has takes long, too: that is not a wait for a disk. */
LOOP_TEST("/open/a thread that did not sleep", file_backends[0], 1, 8)
{
	g_autofree char *file = file_make(dir, "f", 10);
	int i;

	disk = SLEEPS;
	g_assert_false(awake(file));
	disk = SPINS;
	for (i = 0; i < 100 && !awake(file); i++) /* it may sleep for a lock of the kernel */
		;
	g_assert_cmpint(i, <, 100);
	disk = PLAIN;
}

/* The lane for re-checks has a thread of its own. */
LOOP_TEST("/open/an urgent open passes a stuck thread", file_backends[0], 1, 8)
{
	g_autofree char *file = file_make(dir, "f", 10);
	struct waiter w;

	gate_enter(LANE_STAT);
	open_op(&w, file);
	w.op.urgent = 1;
	w.op.deadline_ms = 5000;
	g_assert_cmpint(wait_op(&w), >=, 0);
	close((int)w.res);
	gate_leave();
}

/* The late result of a cancelled op closes its descriptor. */
LOOP_TEST("/open/a cancelled running open leaks no descriptor", file_backends[0], 2, 100)
{
	g_autofree char *file = file_make(dir, "f", 10);
	struct waiter w;
	int i, before;

	before = fd_count();
	for (i = 0; i < 200; i++) {
		open_op(&w, file);
		wait_submit(&w);
		if (i % 2 != 0)
			g_usleep((unsigned)(i % 40));
		op_cancel(io, &w.op);
		wait_for(&w);
		if (w.res >= 0)
			close((int)w.res);
		else
			g_assert_cmpint(w.res, ==, -ECANCELED);
	}
	for (i = 0; i < 100 && fd_count() > before; i++)
		run_ms(10);
	g_assert_cmpint(fd_count(), ==, before);
}

/* A job that runs during io_free() releases what it owns. */
TEST("/open/io_free() during a job leaks no descriptor")
{
	g_autofree char *file = file_make(dir, "f", 10);
	struct io_file *f;
	struct waiter w;
	int i, before = fd_count();

	for (i = 0; i < 50; i++) {
		loop_up(&file_gthread_aio, 2, 100);
		f = io_file_new(io, open(file, O_RDONLY | O_CLOEXEC), 10);
		open_op(&w, file);
		wait_submit(&w);
		op_cancel(io, &w.op);
		wait_for(&w);
		if (w.res >= 0)
			close((int)w.res);
		wait_init(&w, IO_READ, NULL);
		w.op.file.file = f;
		w.op.file.len = 10;
		wait_submit(&w);
		op_cancel(io, &w.op);
		wait_for(&w);
		io_file_put(f);
		loop_down();
	}
	g_assert_cmpint(fd_count(), ==, before);
}
