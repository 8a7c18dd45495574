/* t/unit/io/reread.c -- windows that threads send, on a file system that cannot say what is in
 * memory (FUSE, NFS): hot files do not wait behind cold ones, and the loop stays away from all. */
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include "t/unit/io/in_dir.h"

#define SIZE (600u << 10)

static off_t bad_from = SIZE; /* where the disk fails */
static pthread_t loop;

/* Threads send to /dev/null or to a socket; the loop never sends a file. */
ssize_t
sendfile(int out, int in, off_t *off, size_t len)
{
	g_assert_false(pthread_equal(pthread_self(), loop));
	if (*off >= bad_from) {
		errno = EIO;
		return (-1);
	}
	if (*off + (off_t)len > bad_from)
		len = (size_t)(bad_from - *off);
	return (syscall(SYS_sendfile, out, in, off, len));
}

static struct io_file *file;
static struct io_sock sock;
static int peer;

static void
take(int64_t n)
{
	static char sink[SIZE];

	if (n > 0)
		g_assert_cmpint(recv(peer, sink, (size_t)n, MSG_WAITALL), ==, n);
}

static int64_t
send_some(uint64_t off, uint32_t len)
{
	struct waiter w;
	int64_t n;

	wait_init(&w, IO_SEND_FILE, &sock);
	w.op.file.file = file;
	w.op.file.off = off;
	w.op.file.len = len;
	n = wait_op(&w);
	take(n);
	return (n);
}

static const struct file_backend *
sending(void)
{
	const char *note;

	return (file_backend_by_name("linux-sendfile", &note));
}

static void
up(void)
{
	g_autofree char *path = file_make(dir, "f", SIZE);

	loop_up(sending(), 1, 100);
	unix_pair(&sock, &peer, 0);
	file = io_file_new(io, open(path, O_RDONLY | O_CLOEXEC), SIZE);
	file->no_nowait = true;
	g_unlink(path);
}

static void
down(void)
{
	sock_close(&sock);
	close(peer);
	io_file_put(file);
	run_ms(1);
	loop_down();
}

UP_TEST("/reread/hot-windows-have-their-own-thread")
{
	struct io_lane_status v[LANES];

	g_assert_cmpint(send_some(0, 50000), ==, 50000); /* a reader reads it */
	run_ms(1100);                                    /* ... which counts for a second */
	gate_enter(LANE_READ);
	/* its only thread is stuck with something else */
	g_assert_cmpint(send_some(0, 50000), ==, 50000);
	g_assert_cmpuint(io_pools_lanes(pools, v, LANES), ==, LANES);
	g_assert_cmpstr(v[LANE_REREAD].name, ==, "reread");
	g_assert_cmpuint(v[LANE_REREAD].jobs, ==, 1);
	g_assert_cmpint(io_file_read_lane(file, 60000, 100), ==, LANE_READ); /* never read before */
	gate_leave();
}

/* A bad block in mid-window.  What lies before it is sent, and nobody gets what lies behind it. */
UP_TEST("/reread/bad-blocks")
{
	enum { BAD = 300 << 10, BEHIND = 400 << 10 };
	struct waiter w[2];
	struct io_sock other;
	int p[2];

	bad_from = BAD;
	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p), ==, 0);
	io_sock_init(&other, p[0]);
	wait_init(&w[0], IO_SEND_FILE, &sock);
	wait_init(&w[1], IO_SEND_FILE, &other); /* joins the read ahead of the first */
	w[0].op.file.file = w[1].op.file.file = file;
	w[0].op.file.len = SIZE;
	w[1].op.file.off = BEHIND;
	w[1].op.file.len = 1000;
	gate_enter(LANE_READ);
	wait_submit(&w[0]);
	wait_submit(&w[1]);
	gate_leave();
	g_assert_cmpint(wait_for(&w[0]), >, 0);
	take(w[0].res);
	g_assert_cmpint(wait_for(&w[1]), ==, -EIO);
	g_assert_cmpint(send_some(BAD - 5000, 10000), ==, 5000);
	g_assert_cmpint(send_some(BAD, 10000), ==, -EIO);
	bad_from = SIZE;
	sock_close(&other);
	close(p[1]);
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	loop = pthread_self();
	return (tests_run());
}
