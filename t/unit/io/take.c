/* t/unit/io/take.c -- files that are removed when they are opened: which ones, and which not. */
#include <sys/stat.h>
#include "t/unit/io/in_dir.h"

static int root;

static void
up(void)
{
	loop_up(file_backends[0], 1, 8);
	g_assert_cmpint(io_root_open(dir, &root), ==, 0);
}

static void
down(void)
{
	io_close_fd(root);
	loop_down();
}

static char *
path_of(const char *name)
{
	return (g_build_filename(dir, name, NULL));
}

static bool
exists(const char *name)
{
	g_autofree char *path = path_of(name);
	struct stat st;

	return (lstat(path, &st) == 0);
}

static void
write_file(const char *name)
{
	g_autofree char *path = path_of(name);

	g_assert_true(g_file_set_contents(path, "bytes", 5, NULL));
}

static void
take_init(struct waiter *w, const char *name, struct statx *stx)
{
	wait_init(w, IO_OPEN, NULL);
	w->op.removes = 1;
	w->op.open.root = root;
	w->op.open.path = name;
	w->op.open.stx = stx;
}

static int64_t
take(const char *name)
{
	struct statx stx;
	struct waiter w;

	take_init(&w, name, &stx);
	if (wait_op(&w) >= 0) {
		g_assert_cmpuint(stx.stx_size, ==, 5);
		g_assert_true(S_ISREG(stx.stx_mode));
	}
	return (w.res);
}

static void
takes(const char *name)
{
	char got[8];
	int fd;

	write_file(name);
	fd = (int)take(name);
	g_assert_cmpint(fd, >=, 0);
	g_assert_false(exists(name));
	g_assert_cmpint(read(fd, got, sizeof(got)), ==, 5);
	g_assert_cmpmem(got, 5, "bytes", 5);
	close(fd);
}

UP_TEST("/take/taken")
{
	g_autofree char *sub = path_of("sub");

	g_assert_cmpint(g_mkdir(sub, 0700), ==, 0);
	takes("f");
	takes("sub/f");
	takes("sub/..f");
	g_assert_cmpint(take("f"), ==, -ENOENT);
	g_assert_cmpint(take("none/f"), ==, -ENOENT);
	g_assert_cmpint(g_rmdir(sub), ==, 0);
}

/* A refused file is not removed. */
static void
refuses(const char *name, int err, const char *stays)
{
	int64_t res = take(name);

	if (res != err)
		g_error("%s: expected %d, got %d", name, err, (int)res);
	g_assert_true(exists(stays));
}

UP_TEST("/take/refused")
{
	g_autofree char *sub = path_of("sub"), *fifo = path_of("fifo"), *in = path_of("sub/in"),
			*link = path_of("link"), *up = path_of("sub/up"), *way = path_of("way");

	write_file("victim");
	g_assert_cmpint(g_mkdir(sub, 0700), ==, 0);
	write_file("sub/in");
	g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
	g_assert_cmpint(symlink("victim", link), ==, 0);
	g_assert_cmpint(symlink("../..", up), ==, 0);
	g_assert_cmpint(symlink("sub", way), ==, 0);
	io_close_fd(root);
	g_assert_cmpint(io_root_open(sub, &root), ==, 0);
	refuses("../victim", -EXDEV, "victim");
	refuses("up/victim", -ELOOP, "victim");
	refuses("..", -EISDIR, "sub");
	refuses(".", -EISDIR, "sub");
	refuses("", -EISDIR, "sub");
	refuses("in/", -EISDIR, "sub/in");
	io_close_fd(root);
	g_assert_cmpint(io_root_open(dir, &root), ==, 0);
	refuses("sub", -EACCES, "sub");
	refuses("fifo", -EACCES, "fifo");
	refuses("link", -ELOOP, "victim");
	refuses("way/in", -ELOOP, "sub/in");
	g_assert_true(exists("link"));
	g_assert_cmpint(g_unlink(in) | g_unlink(up) | g_unlink(fifo) | g_unlink(link) |
			    g_unlink(way) | g_rmdir(sub),
	    ==, 0);
}

/* The client leaves while the op is queued: the file is still removed and closed. */
UP_TEST("/take/cancelled")
{
	struct statx stx;
	struct waiter w;
	int fds;

	write_file("late");
	fds = fd_count();
	gate_enter(LANE_STAT);
	take_init(&w, "late", &stx);
	wait_submit(&w);
	op_cancel(io, &w.op);
	g_assert_cmpint(wait_for(&w), ==, -ECANCELED);
	g_assert_true(exists("late"));
	gate_leave();
	while (exists("late") || fd_count() > fds)
		run_ms(1);
}
