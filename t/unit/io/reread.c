/* t/unit/io/reread.c -- a file system that cannot say what is in memory (FUSE, NFS): hot files do not wait behind cold ones. */
#include "t/unit/io/io_test.h"

#define SIZE (300u << 10)

static struct io_file *file;
static struct io_sock sock;
static int peer;

static int64_t
send_some(uint64_t off, uint32_t len)
{
	static char sink[SIZE];
	struct waiter w;
	int64_t n;

	wait_init(&w, IO_SEND_FILE, &sock);
	w.op.file.file = file;
	w.op.file.off = off;
	w.op.file.len = len;
	n = wait_op(&w);
	if (n > 0)
		g_assert_cmpint(recv(peer, sink, (size_t)n, MSG_WAITALL), ==, n);
	return (n);
}

static const struct file_backend *
sending(void)
{
	const char *note;

	return (file_backend_by_name("linux-sendfile", &note));
}

static void
hot_windows_have_their_own_thread(void)
{
	char *dir = g_dir_make_tmp("reread-XXXXXX", NULL), *path = file_make(dir, "f", SIZE);
	struct io_lane_stats v[LANES];
	int p[2];

	loop_up(sending(), 1, 100);
	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, p), ==, 0);
	g_assert_cmpint(fcntl(p[0], F_SETFL, O_NONBLOCK), ==, 0);
	io_sock_init(&sock, p[0]);
	peer = p[1];
	file = io_file_new(io, open(path, O_RDONLY | O_CLOEXEC), SIZE);
	file->no_nowait = true;
	g_assert_cmpint(send_some(0, 50000), ==, 50000); /* a reader reads it */
	run_ms(1100);                                    /* ... which counts for a second */
	gate_enter(LANE_READ);
	g_assert_cmpint(send_some(0, 50000), ==, 50000); /* its only thread is stuck with something else */
	g_assert_cmpuint(io_pools_lanes(pools, v, LANES), ==, LANES);
	g_assert_cmpstr(v[LANE_REREAD].name, ==, "reread");
	g_assert_cmpuint(v[LANE_REREAD].jobs, ==, 1);
	g_assert_cmpint(io_file_read_lane(file, 60000, 100), ==, LANE_READ); /* never read before */
	gate_leave();
	sock_close(&sock);
	close(peer);
	io_file_put(file);
	run_ms(1);
	loop_down();
	g_unlink(path);
	g_rmdir(dir);
	g_free(path);
	g_free(dir);
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/reread/hot-windows-have-their-own-thread", hot_windows_have_their_own_thread);
	return (g_test_run());
}
