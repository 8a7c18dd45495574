/* t/unit/io/temp.c -- temporary files on a real loop: written, sent while they grow, and given up
 * halfway. */
#include <sys/socket.h>
#include "io/sender.h"
#include "t/unit/io/io_test.h"

#define PIECE  100000u
#define PIECES 12u

static char
byte_at(uint64_t off)
{
	return ((char)(off * 31 + (off >> 12)));
}

static int64_t
temp_open(int root)
{
	struct waiter w;

	wait_init(&w, IO_OPEN, NULL);
	w.op.open.root = root;
	return (wait_op(&w));
}

static void
append_submit(struct waiter *w, struct io_file *f, char *piece)
{
	unsigned i;

	for (i = 0; i < PIECE; i++)
		piece[i] = byte_at(f->size + i);
	wait_init(w, IO_WRITE, NULL);
	w->op.write.file = f;
	w->op.write.off = f->size;
	w->op.write.p = piece;
	w->op.write.len = PIECE;
	wait_submit(w);
	memset(piece, 0, PIECE); /* its bytes were copied */
}

static bool sent_all;

static void
all_sent(struct sender *s, int res)
{
	g_assert_cmpint(res, ==, 0);
	sent_all = true;
}

/* Everything that is sent while run() goes on, compared with what was written. */
static void
receive(int fd, uint64_t *at)
{
	static char buf[65536];
	ssize_t n, i;

	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		for (i = 0; i < n; i++)
			g_assert_cmpint(buf[i], ==, byte_at((*at)++));
}

/* Each piece is sent while the next one is being written, with this backend. */
static void
test_sent_while_it_grows(const void *backend)
{
	g_autofree char *piece = g_malloc(PIECE);
	struct io_sock sock;
	struct sender s;
	struct waiter w;
	struct body b;
	struct io_file *f;
	uint64_t got = 0;
	int root, fd[2];
	unsigned i;

	loop_up(backend, 2, 64);
	g_assert_cmpint(io_root_open(dir, &root), ==, 0);
	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), ==,
	    0);
	io_sock_init(&sock, fd[0]);
	f = io_file_temp(io, (int)temp_open(root));
	g_assert_nonnull(f);
	body_init(&b, io);
	sender_init(&s, io, &sock);
	append_submit(&w, f, piece);
	g_assert_cmpint(wait_for(&w), ==, PIECE);
	for (i = 1; i <= PIECES; i++) {
		g_assert_true(body_file(&b, f, (i - 1) * PIECE, PIECE));
		sent_all = false;
		sender_start(&s, &b, 30000, all_sent);
		append_submit(&w, f, piece);
		while (!sent_all || !w.done) {
			receive(fd[1], &got);
			io_run(io);
		}
		g_assert_cmpint(w.res, ==, PIECE);
	}
	receive(fd[1], &got);
	g_assert_cmpuint(got, ==, PIECES * PIECE);
	body_clear(&b);
	io_file_put(f);
	sock_close(&sock);
	close(fd[1]);
	io_close_fd(root);
	run_ms(1);
	loop_down();
}

LOOP_TEST("/temp/cancelled", file_backends[0], 1, 8)
{
	g_autofree char *piece = g_malloc(PIECE);
	struct io_file *f;
	struct waiter w;
	int root;

	g_assert_cmpint(io_root_open(dir, &root), ==, 0);
	f = io_file_temp(io, (int)temp_open(root));
	append_submit(&w, f, piece);
	op_cancel(io, &w.op);
	g_assert_cmpint(wait_for(&w), ==, -ECANCELED);
	wait_init(&w, IO_OPEN, NULL);
	w.op.open.root = root;
	wait_submit(&w);
	op_cancel(io, &w.op);
	g_assert_cmpint(wait_for(&w), ==, -ECANCELED);
	io_file_put(f);
	io_close_fd(root);
	run_ms(1);
}

LOOP_TEST("/temp/no-such-place", file_backends[0], 1, 8)
{
	int root;

	g_assert_cmpint(io_root_open("/proc", &root), ==, 0);
	g_assert_cmpint(temp_open(root), <, 0);
	io_close_fd(root);
}

int
main(int argc, char **argv)
{
	const struct file_backend *const *b;
	char *path;
	int status;

	g_test_init(&argc, &argv, NULL);
	dir = g_dir_make_tmp("io-XXXXXX", NULL);
	for (b = file_backends; *b != NULL; b++) {
		path = g_strdup_printf("/temp/sent-while-it-grows/%s", (*b)->name);
		g_test_add_data_func(path, *b, test_sent_while_it_grows);
		g_free(path);
	}
	status = tests_run();
	g_assert_cmpint(g_rmdir(dir), ==, 0); /* no name was left */
	g_free(dir);
	return (status);
}
