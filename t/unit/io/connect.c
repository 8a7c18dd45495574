/* t/unit/io/connect.c -- connects of the epoll loop that end in the call, later, or never. */
#include <netinet/in.h>
#include "io/start/listen.h"
#include "t/unit/io/io_test.h"

#define CONNECTS 7

static struct sockaddr_in server;
static int listener;

static void
server_up(int backlog)
{
	struct listen_conf lc = { .name = "127.0.0.1:0", .backlog = backlog };
	socklen_t len = sizeof(server);
	const char *why;

	loop_up(file_backends[0], 1, 8);
	g_assert_cmpint(listen_open(&lc, &listener, &why), ==, 0);
	g_assert_cmpint(getsockname(listener, (struct sockaddr *)&server, &len), ==, 0);
}

static void
connect_init(struct waiter *w, struct io_sock *s)
{
	io_sock_init(s, -1);
	wait_init(w, IO_CONNECT, s);
	w->op.connect.addr = (struct sockaddr *)&server;
	w->op.connect.len = sizeof(server);
}

/* The connection is made when the op is cancelled, or its deadline passes: the result stays. */
TEST("/connect/at-once")
{
	struct waiter w, r;
	struct io_sock s;

	server_up(10);
	connect_init(&w, &s);
	w.op.deadline_ms = 1;
	wait_submit(&w);
	g_usleep(3000);
	op_cancel(io, &w.op);
	g_assert_cmpint(wait_for(&w), ==, 0);
	g_assert_cmpint(s.hints & SOCK_REGISTERED, ==, 0);
	run_ms(20);
	wait_init(&r, IO_RECV, &s);
	r.op.deadline_ms = 1;
	g_assert_cmpint(wait_op(&r), ==, -ETIMEDOUT);
	sock_close(&s);
	close(listener);
	loop_down();
}

/* The server resets the connection before the loop looks again. */
TEST("/connect/reset")
{
	struct waiter w, r;
	struct io_sock s;
	int peer;

	server_up(10);
	connect_init(&w, &s);
	wait_submit(&w);
	while ((peer = accept(listener, NULL, NULL)) < 0)
		g_assert_cmpint(errno, ==, EAGAIN);
	io_sock_reset(peer);
	g_assert_cmpint(wait_for(&w), ==, 0);
	wait_init(&r, IO_RECV, &s);
	g_assert_cmpint(wait_op(&r), ==, -ECONNRESET);
	sock_close(&s);
	close(listener);
	loop_down();
}

/* No server listens: each connect fails, with a socket to close. */
TEST("/connect/refused")
{
	struct waiter w;
	struct io_sock s;
	int fds;

	server_up(10);
	close(listener);
	fds = fd_count();
	for (int i = 0; i < 3; i++) {
		connect_init(&w, &s);
		wait_submit(&w);
		if (i == 1)
			op_cancel(io, &w.op); /* too late */
		g_assert_cmpint(wait_for(&w), ==, -ECONNREFUSED);
		sock_close(&s);
	}
	g_assert_cmpint(fd_count(), ==, fds);
	loop_down();
}

/* The listen queue is full: the handshake does not end, and the op waits as for another host. */
TEST("/connect/waits")
{
	struct waiter w[CONNECTS];
	struct io_sock s[CONNECTS];
	int i;

	server_up(1);
	for (i = 0; i < CONNECTS; i++) {
		connect_init(&w[i], &s[i]);
		w[i].op.deadline_ms = i == CONNECTS - 1 ? 60000 : 20;
		wait_submit(&w[i]);
	}
	run_ms(1);
	g_assert_true(w[0].done);
	g_assert_false(w[CONNECTS - 1].done);
	for (i = 0; i < CONNECTS - 1; i++)
		g_assert_true(wait_for(&w[i]) == 0 || w[i].res == -ETIMEDOUT);
	g_assert_cmpint(w[CONNECTS - 2].res, ==, -ETIMEDOUT);
	op_cancel(io, &w[CONNECTS - 1].op);
	g_assert_cmpint(wait_for(&w[CONNECTS - 1]), ==, -ECANCELED);
	for (i = 0; i < CONNECTS; i++)
		sock_close(&s[i]);
	close(listener);
	loop_down();
}

/* ---------------------------------------------------------------- turns */

static struct waiter chain[CONNECTS];
static struct io_sock chain_sock[CONNECTS];
static unsigned depth;
static char story[64];

static void
tell(const char *what)
{
	g_strlcat(story, what, sizeof(story));
}

/* Begins the next one, from within the callback of the last one. */
static void
chain_done(struct io_op *op)
{
	struct waiter *w = container_of(op, struct waiter, op);

	g_assert_cmpuint(depth++, ==, 0);
	waiter_done(op);
	tell("c");
	if (w + 1 < chain + CONNECTS)
		wait_submit(w + 1);
	depth--;
}

static void
begin_done(struct io_op *op)
{
	waiter_done(op);
	tell("b");
	wait_submit(&chain[0]);
}

static void
other_done(struct io_op *op)
{
	waiter_done(op);
	tell("o");
}

/* Connects that follow each other do not keep another op waiting, and do not nest. */
TEST("/connect/turns")
{
	struct waiter begin, other;

	server_up(100);
	story[0] = '\0';
	for (int i = 0; i < CONNECTS; i++) {
		connect_init(&chain[i], &chain_sock[i]);
		chain[i].op.done = chain_done;
	}
	wait_init(&begin, IO_TIMER, NULL);
	wait_init(&other, IO_TIMER, NULL);
	begin.op.done = begin_done;
	other.op.done = other_done;
	wait_submit(&begin);
	wait_submit(&other);
	wait_for(&chain[CONNECTS - 1]);
	g_assert_cmpstr(story, ==, "bccoccccc");
	for (int i = 0; i < CONNECTS; i++) {
		g_assert_cmpint(chain[i].res, ==, 0);
		sock_close(&chain_sock[i]);
	}
	close(listener);
	loop_down();
}
