/* t/unit/io/uring.c -- look-ups and reads through an io_uring: results, bounds, hanging disks. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include "t/unit/io/in_dir.h"

static const struct file_backend *backend;
static struct statx stx;

static void
up(unsigned jobs, unsigned max_queue)
{
	loop_up(backend, jobs, max_queue);
	g_assert_null(io_fallback_why(io));
	g_assert_true(io_backend(io) == backend);
}

static void
look_init(struct waiter *w, int root, const char *path, uint64_t resolve, bool only_stat)
{
	wait_init(w, IO_OPEN, NULL);
	w->op.only_stat = only_stat;
	w->op.open.root = root;
	w->op.open.path = path;
	w->op.open.resolve = resolve;
	w->op.open.stx = &stx;
}

static int64_t
look(int root, const char *path, uint64_t resolve, bool only_stat)
{
	struct waiter w;

	look_init(&w, root, path, resolve, only_stat);
	w.op.deadline_ms = 5000;
	return (wait_op(&w));
}

static void
opens(int root, const char *path, uint64_t resolve, mode_t type)
{
	int64_t fd = look(root, path, resolve, false);

	g_assert_cmpint(fd, >=, 0);
	g_assert_cmpuint(stx.stx_mode & S_IFMT, ==, type);
	g_assert_cmpint(fcntl((int)fd, F_GETFD) & FD_CLOEXEC, !=, 0);
	close((int)fd);
}

/* Waits until a thread has closed the descriptors. */
static void
settles_at(int fds)
{
	int i;

	for (i = 0; i < 500 && fd_count() > fds; i++)
		run_ms(10);
	g_assert_cmpint(fd_count(), ==, fds);
}

/* ---------------------------------------------------------------- look-ups */

TEST_IN("/uring/kinds-and-containment", up(4, 8), loop_down())
{
	g_autofree char *file = file_make(dir, "f", 5000),
			*fifo = g_build_filename(dir, "fifo", NULL),
			*link = g_build_filename(dir, "link", NULL),
			*out = g_build_filename(dir, "out", NULL);
	int root, fds;

	g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
	g_assert_cmpint(symlink("f", link), ==, 0);
	g_assert_cmpint(symlink("/etc/passwd", out), ==, 0);
	g_assert_cmpint(io_root_open(dir, &root), ==, 0);
	/* One of them opens the table of mounts, for ever. */
	look(root, "out", IO_BENEATH, true);
	look(root, "out", IO_BENEATH, false);
	look(root, "../x", IO_BENEATH, false);
	fds = fd_count();
	opens(root, "f", IO_BENEATH, S_IFREG);
	g_assert_cmpuint(stx.stx_size, ==, 5000);
	opens(root, "link", IO_BENEATH | IO_NOATIME, S_IFREG);
	opens(root, "", IO_BENEATH, S_IFDIR);
	stx.stx_size = 0;
	g_assert_cmpint(look(root, "f", IO_BENEATH, true), ==, 0);
	g_assert_cmpuint(stx.stx_size, ==, 5000);
	g_assert_cmpint(look(root, "link", IO_BENEATH | IO_NO_SYMLINKS, false), ==, -ELOOP);
	g_assert_cmpint(look(root, "out", IO_BENEATH, false), ==, -EXDEV);
	g_assert_cmpint(look(root, "out", IO_BENEATH, true), ==, -EXDEV);
	g_assert_cmpint(look(root, "../x", IO_BENEATH, false), ==, -EXDEV);
	g_assert_cmpint(look(root, "/etc/passwd", IO_BENEATH, false), ==, -EXDEV);
	g_assert_cmpint(look(root, "fifo", IO_BENEATH, false), ==, -EACCES);
	g_assert_cmpint(look(root, "fifo", IO_BENEATH, true), ==, 0);
	g_assert_cmpint(look(root, "absent", IO_BENEATH, false), ==, -ENOENT);
	g_assert_cmpint(look(root, "f/x", IO_BENEATH, false), ==, -ENOTDIR);
	settles_at(fds);
	io_close_fd(root);
	g_unlink(out);
	g_unlink(link);
	g_unlink(fifo);
}

/* A mount below the root: the job moves to that device's queue on the way. */
TEST("/uring/other-device")
{
	struct stat root, proc;
	int fd;

	g_assert_cmpint(stat("/", &root), ==, 0);
	g_assert_cmpint(stat("/proc", &proc), ==, 0);
	g_assert_cmpuint(root.st_dev, !=, proc.st_dev);
	up(2, 8);
	g_assert_cmpint(io_root_open("/", &fd), ==, 0);
	opens(fd, "proc/version", IO_BENEATH, S_IFREG);
	g_assert_cmpuint(makedev(stx.stx_dev_major, stx.stx_dev_minor), ==, proc.st_dev);
	io_close_fd(fd);
	loop_down();
}

/* In a process of its own: what is changed there stays there. */
static void
in_a_child(void (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		run();
		_exit(0);
	}
	g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
	g_assert_true(WIFEXITED(status));
	g_assert_cmpint(WEXITSTATUS(status), ==, 0);
}

static void
as_nobody(void)
{
	int64_t fd;

	g_assert_cmpint(setresuid(65534, 65534, 65534), ==, 0);
	up(2, 8);
	fd = look(AT_FDCWD, "/etc/passwd", IO_NOATIME, false);
	g_assert_cmpint(fd, >=, 0);
	g_assert_cmpint(fcntl((int)fd, F_GETFL) & O_NOATIME, ==, 0);
	close((int)fd);
	loop_down();
}

/* O_NOATIME is for owners; others get the file without it. */
TEST("/uring/foreign-owner")
{
	if (geteuid() != 0) {
		g_test_skip("needs root, to become another user");
		return;
	}
	in_a_child(as_nobody);
}

TEST("/uring/many-at-once")
{
	enum { N = 1000 };
	struct waiter *w = g_new(struct waiter, N);
	int root, i;

	g_free(file_make(dir, "f", 10));
	up(16, N);
	g_assert_cmpint(io_root_open(dir, &root), ==, 0);
	for (i = 0; i < N; i++) {
		look_init(&w[i], root, i % 2 != 0 ? "f" : "absent", IO_BENEATH, false);
		wait_submit(&w[i]);
	}
	for (i = 0; i < N; i++) {
		g_assert_cmpint(wait_for(&w[i]) >= 0 ? 0 : w[i].res, ==, i % 2 != 0 ? 0 : -ENOENT);
		if (w[i].res >= 0)
			close((int)w[i].res);
		g_assert_cmpuint(w[i].op.at.start, >=, w[i].op.at.submit);
		g_assert_cmpuint(w[i].op.at.end, >=, w[i].op.at.start);
	}
	io_close_fd(root);
	loop_down();
	g_free(w);
}

/* ---------------------------------------------------------------- reads */

TEST_IN("/uring/reads", up(2, 8), loop_down())
{
	static const struct {
		uint64_t off;
		uint32_t len, got;
	} at[] = {
		{ 0, 1, 1 },
		{ 1, 262143, 262143 },
		{ 4095, 131073, 131073 },
		{ 131071, 262144, 262144 },
		{ 655361, 262144, 44639 },
		{ 699999, 262144, 1 },
		{ 700000, 262144, 0 },
		{ 900000, 10, 0 },
	};
	g_autofree char *path = file_make(dir, "f", 700000);
	struct io_file *f;
	struct waiter w;
	uint64_t k;
	size_t i;

	f = io_file_new(io, open(path, O_RDONLY | O_CLOEXEC), 700000);
	f->no_nowait = true; /* so that nothing is known to be in memory */
	for (i = 0; i < NELEM(at); i++) {
		wait_init(&w, IO_READ, NULL);
		w.op.file.file = f;
		w.op.file.off = at[i].off;
		w.op.file.len = at[i].len;
		wait_submit(&w);
		while (!w.done)
			io_run(io);
		g_assert_cmpint(w.res, ==, at[i].got);
	}
	g_assert_cmpuint(io->counters->io_uring_async, ==, NELEM(at));
	k = io->counters->io_uring_sync;
	f->no_nowait = false;
	io_file_marked(f);
	device_is_fit(io_file_dev(f), true);
	wait_init(&w, IO_READ, NULL);
	w.op.file.file = f;
	w.op.file.len = 100;
	g_assert_cmpint(wait_op(&w), ==, 100); /* in memory: served on the loop */
	g_assert_cmpuint(io->counters->io_uring_sync, ==, k + 1);
	io_file_put(f);
}

/* ---------------------------------------------------------------- what hangs */

/* An empty pipe in place of a file.  Its read hangs until the test writes. */
static struct io_file *
hanging_file(int *wr)
{
	struct io_file *f;
	int p[2];

	g_assert_cmpint(pipe2(p, O_CLOEXEC), ==, 0);
	*wr = p[1];
	f = io_file_new(io, p[0], 1 << 20);
	f->no_nowait = true;
	return (f);
}

static void
read_init(struct waiter *w, struct io_file *f)
{
	wait_init(w, IO_READ, NULL);
	w->op.file.file = f;
	w->op.file.len = 100;
}

TEST_IN("/uring/stuck", up(2, 1), loop_down())
{
	g_autofree char *path = file_make(dir, "f", 10);
	struct waiter w[4];
	struct io_file *f;
	int wr, i;

	f = hanging_file(&wr);
	for (i = 0; i < 4; i++)
		read_init(&w[i], f);
	w[0].op.deadline_ms = 50;
	for (i = 0; i < 3; i++)
		wait_submit(&w[i]); /* two places, and one may wait */
	g_assert_cmpint(wait_op(&w[3]), ==, -EAGAIN);
	opens(AT_FDCWD, path, 0, S_IFREG); /* look-ups have places of their own */
	g_assert_false(w[0].done);
	g_assert_cmpint(wait_for(&w[0]), ==, -ETIMEDOUT);
	op_cancel(io, &w[1].op);
	g_assert_cmpint(wait_for(&w[1]), ==, -ECANCELED);
	/* Both were interrupted: there is a place for the third. */
	g_assert_cmpint(write(wr, "hello", 5), ==, 5);
	g_assert_cmpint(wait_for(&w[2]), ==, 5);
	g_assert_true(io_leave(io));
	io_file_put(f);
	close(wr);
}

/* The loop ends with a read still in the kernel that can be interrupted. */
TEST("/uring/free-while-reading")
{
	struct io_file *f;
	struct waiter w;
	int wr;

	up(2, 8);
	f = hanging_file(&wr);
	read_init(&w, f);
	w.op.deadline_ms = 1;
	g_assert_cmpint(wait_op(&w), ==, -ETIMEDOUT);
	io_file_put(f);
	loop_down();
	g_assert_cmpint(write(wr, "x", 1), <, 0); /* the other end is closed */
	g_assert_cmpint(errno, ==, EPIPE);
	close(wr);
}

/* The loop is about to end: the ring takes no more reads, neither the one that is waited for nor
 * the one ahead of it. */
TEST_IN("/uring/no-room", up(2, 8), loop_down())
{
	struct io_file *f;
	struct waiter w;
	int wr, i;

	f = hanging_file(&wr);
	read_init(&w, f);
	w.op.deadline_ms = 1;
	g_assert_cmpint(wait_op(&w), ==, -ETIMEDOUT);
	g_assert_true(io_leave(io)); /* interrupts it */
	for (i = 0; i < 2; i++) {
		read_init(&w, f);
		g_assert_cmpint(wait_op(&w), ==, -EAGAIN);
	}
	io_file_put(f);
	close(wr);
}

static struct rig {
	GPid pid;
	char *mnt;
} rig;

/* A test that fails must not leave a mount that hangs. */
static void
die_with_us(gpointer unused)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static bool
rig_start(void)
{
	char *self = g_file_read_link("/proc/self/exe", NULL), *at = g_path_get_dirname(self),
	     line[16];
	g_autofree char *slowfs = g_build_filename(at, "../../bin/slowfs", NULL),
			*src = g_build_filename(dir, "src", NULL);
	char *argv[] = { slowfs, "--until-eof", "--lookup-ms", "0", src, NULL, NULL };
	int in = -1, out = -1; /* in: our end is its end */
	bool ok;

	rig.mnt = argv[5] = g_build_filename(dir, "mnt", NULL);
	g_mkdir(src, 0700);
	g_mkdir(rig.mnt, 0700);
	g_free(file_make(src, "f", 10));
	ok = g_spawn_async_with_pipes(NULL, argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, die_with_us,
	    NULL, &rig.pid, &in, &out, NULL, NULL);
	ok = ok && read(out, line, sizeof(line)) > 0; /* "ready" */
	g_free(self);
	g_free(at);
	return (ok);
}

static void
rig_stop(void)
{
	kill(rig.pid, SIGCONT);
	kill(rig.pid, SIGTERM);
	waitpid(rig.pid, NULL, 0);
	g_free(rig.mnt);
}

/* A file system that answers nothing, not even an interrupt: the loop still ends, and memory that
 * the kernel may write to stays. */
TEST("/uring/free-while-hung")
{
	uint64_t begin;
	struct waiter w;
	int root;

	if (!rig_start()) {
		g_test_skip("no slowfs here");
		return;
	}
	up(2, 8);
	g_assert_cmpint(io_root_open(rig.mnt, &root), ==, 0);
	kill(rig.pid, SIGSTOP);
	look_init(&w, root, "f", IO_BENEATH, false);
	w.op.deadline_ms = 50;
	g_assert_cmpint(wait_op(&w), ==, -ETIMEDOUT);
	begin = clock_mono_ns();
	g_assert_false(io_leave(io));
	g_assert_cmpint(look(root, "f", IO_BENEATH, false), ==, -EAGAIN);
	loop_down();
	g_assert_cmpuint(clock_mono_ns() - begin, <, NS_PER_S);
	io_close_fd(root);
	rig_stop();
}

/* ---------------------------------------------------------------- where there is none */

static void
forbidden(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { NELEM(code), code };

	g_assert_cmpint(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), ==, 0);
	g_assert_cmpint(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), ==, 0);
	loop_up(backend, 2, 8);
	g_assert_cmpstr(io_backend(io)->name, ==, "adaptive");
	g_assert_nonnull(strstr(io_fallback_why(io), "forbidden"));
	opens(AT_FDCWD, "/etc/passwd", 0, S_IFREG);
	loop_down();
}

TEST("/uring/forbidden")
{
	in_a_child(forbidden);
}

int
main(int argc, char **argv)
{
	const char *note;

	g_test_init(&argc, &argv, NULL);
	backend = file_backend_by_name("io-uring", &note);
	g_assert_null(note);
	return (tests_run());
}
