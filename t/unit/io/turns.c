/* t/unit/io/turns.c -- the order of callbacks of the epoll loop, and the share of accepting in a
 * busy round. */
#include <sys/resource.h>
#include "io/start/listen.h"
#include "t/unit/io/io_test.h"

#define BUSY      600 /* more than the loop takes from the kernel in a round */
#define NEWCOMERS 100

/* ---------------------------------------------------------------- a send that is done is called
 * back next */

static GString *story; /* r: received, s: sent, h: hung up; each followed by the client's letter */

struct client {
	struct io_sock sock;
	struct io_op recv, send, hangup;
	struct iovec iov;
	int peer;
	char name;
	unsigned sends; /* still to do */
};

static void
tell(char what, char who)
{
	g_string_append_c(story, what);
	g_string_append_c(story, who);
}

static void
send_next(struct client *c)
{
	if (c->sends == 0)
		return;
	c->sends--;
	op_submit(io, &c->send);
}

static void
sent(struct io_op *op)
{
	struct client *c = container_of(op, struct client, send);

	g_assert_cmpint(op->res, ==, 1);
	tell('s', c->name);
	send_next(c);
}

static void
received(struct io_op *op)
{
	struct client *c = container_of(op, struct client, recv);

	g_assert_cmpint(op->res, ==, 1);
	tell('r', c->name);
	if (c->hangup.done != NULL)
		op_cancel(io, &c->hangup);
	send_next(c);
}

static void
hung_up(struct io_op *op)
{
	g_assert_cmpint(op->res, ==, -ECANCELED);
	tell('h', container_of(op, struct client, hangup)->name);
}

static void
client_up(struct client *c, char name, unsigned sends)
{
	int p[2];

	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p), ==,
	    0);
	*c = (struct client){ .name = name, .sends = sends, .peer = p[1], .iov = { "x", 1 } };
	io_sock_init(&c->sock, p[0]);
	op_init(&c->recv, IO_RECV, received);
	op_init(&c->send, IO_SEND, sent);
	c->recv.sock = c->send.sock = &c->sock;
	c->send.send.iov = &c->iov;
	c->send.send.n = 1;
	g_assert_cmpint(write(c->peer, "x", 1), ==, 1);
	op_submit(io, &c->recv);
}

static void
client_down(struct client *c)
{
	close(c->peer);
	sock_close(&c->sock);
}

LOOP_TEST("/turns/send-follows", file_backends[0], 1, 8)
{
	struct client a, b;

	story = g_string_new("");
	client_up(&a, 'a', 1);
	client_up(&b, 'b', 1);
	io_run(io);
	g_assert_cmpstr(story->str, ==, "rasarbsb");
	client_down(&a);
	client_down(&b);
	g_string_free(story, true);
}

/* One with many requests at a time goes on when the others have had their turn. */
LOOP_TEST("/turns/sends-take-turns", file_backends[0], 1, 8)
{
	struct client a, b, c;

	story = g_string_new("");
	client_up(&a, 'a', 5);
	client_up(&b, 'b', 4);
	client_up(&c, 'c', 1);
	io_run(io);
	g_assert_cmpstr(story->str, ==, "rasasarbsbsbrcscsasbsasbsa");
	client_down(&a);
	client_down(&b);
	client_down(&c);
	g_string_free(story, true);
}

/* server/conn/conn.c relies on it: an op that was cancelled is free again when a later one comes
 * back. */
LOOP_TEST("/turns/cancelled-before-sent", file_backends[0], 1, 8)
{
	struct client a;
	struct io_sock other;
	int p[2];

	story = g_string_new("");
	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p), ==,
	    0);
	io_sock_init(&other, p[0]);
	client_up(&a, 'a', 1);
	op_init(&a.hangup, IO_RECV, hung_up);
	a.hangup.only_hangup = true;
	a.hangup.sock = &other;
	op_submit(io, &a.hangup);
	io_run(io);
	g_assert_cmpstr(story->str, ==, "rahasa");
	close(p[1]);
	sock_close(&other);
	client_down(&a);
	g_string_free(story, true);
}

/* ---------------------------------------------------------------- accepting beside busy
 * connections */

static struct io_sock busy[BUSY];
static int busy_peer[BUSY];
static struct waiter busy_recv[BUSY], busy_send[BUSY];
static char reply[32 << 10];
static struct iovec reply_iov = { reply, sizeof(reply) };
static bool busy_reply;
static unsigned served;

static int client[NEWCOMERS], listener_fd;
static struct io_sock listener, newcomer[NEWCOMERS];
static struct waiter newcomer_recv[NEWCOMERS];
static struct io_op acc;
static unsigned accepted, welcomed, served_before_welcome;

static void
busy_done(struct io_op *op)
{
	struct waiter *w = container_of(op, struct waiter, op);

	g_assert_cmpint(op->res, ==, 1);
	served++;
	if (busy_reply)
		op_submit(io, &busy_send[w - busy_recv].op);
}

static void
newcomer_done(struct io_op *op)
{
	g_assert_cmpint(op->res, ==, 1);
	if (welcomed++ == 0)
		served_before_welcome = served;
}

static void
accept_done(struct io_op *op)
{
	struct waiter *w = &newcomer_recv[accepted];

	if (op->res == -ECANCELED)
		return;
	g_assert_cmpint(op->res, >=, 0);
	g_assert_cmpuint(accepted, ==, welcomed); /* the one before has been looked at */
	io_sock_init(&newcomer[accepted], (int)op->res);
	wait_init(w, IO_RECV, &newcomer[accepted]);
	w->op.done = newcomer_done;
	accepted++;
	op_submit(io, &w->op);
	op_submit(io, op);
}

static void
busy_one(int i)
{
	int p[2];

	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p), ==,
	    0);
	io_sock_init(&busy[i], p[0]);
	busy_peer[i] = p[1];
	wait_init(&busy_recv[i], IO_RECV, &busy[i]);
	busy_recv[i].op.done = busy_done;
	wait_init(&busy_send[i], IO_SEND, &busy[i]);
	busy_send[i].op.send.iov = &reply_iov;
	busy_send[i].op.send.n = 1;
	op_submit(io, &busy_recv[i].op);
}

static void
busy_up(bool replies)
{
	struct listen_conf lc = { .name = "127.0.0.1:0", .backlog = NEWCOMERS };
	const char *why;
	struct rlimit rl;
	int i;

	g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &rl), ==, 0);
	rl.rlim_cur = rl.rlim_max;
	g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &rl), ==, 0);
	loop_up(file_backends[0], 1, 8);
	busy_reply = replies;
	served = accepted = welcomed = 0;
	for (i = 0; i < BUSY; i++)
		busy_one(i);
	g_assert_cmpint(listen_open(&lc, &listener_fd, &why), ==, 0);
	io_sock_init(&listener, listener_fd);
	op_init(&acc, IO_ACCEPT, accept_done);
	acc.sock = &listener;
	op_submit(io, &acc);
	io_wake(io);
	io_run(io); /* each was tried, and waits */
	g_assert_cmpuint(served + accepted, ==, 0);
	for (i = 0; i < BUSY; i++)
		g_assert_cmpint(write(busy_peer[i], "x", 1), ==, 1);
}

static void
busy_down(void)
{
	int i;

	while (served < BUSY || welcomed < NEWCOMERS)
		io_run(io);
	op_cancel(io, &acc);
	while (io_busy(io)) {
		io_wake(io);
		io_run(io);
	}
	for (i = 0; i < NEWCOMERS; i++) {
		close(client[i]);
		sock_close(&newcomer[i]);
	}
	for (i = 0; i < BUSY; i++) {
		close(busy_peer[i]);
		sock_close(&busy[i]);
	}
	io_close_fd(listener_fd);
	loop_down();
}

static void
newcomers_connect(void)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	int i;

	g_assert_cmpint(getsockname(listener_fd, (struct sockaddr *)&in, &len), ==, 0);
	for (i = 0; i < NEWCOMERS; i++) {
		client[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		g_assert_cmpint(connect(client[i], (struct sockaddr *)&in, len), ==, 0);
		g_assert_cmpint(write(client[i], "x", 1), ==, 1);
	}
}

/* The kernel would report the listener last, in the second round. */
TEST("/turns/accept-in-full-batch")
{
	busy_up(false);
	newcomers_connect();
	io_run(io);
	g_assert_cmpuint(served, <, BUSY);
	g_assert_cmpuint(welcomed, >=, 16);
	g_assert_cmpuint(welcomed, <, NEWCOMERS); /* a flood has its share and no more */
	busy_down();
}

/* A round ends before all that is ready had its turn. */
TEST("/turns/accept-before-rest")
{
	unsigned before;

	busy_up(true);
	io_run(io);
	g_assert_cmpuint(served, <, BUSY / 2);
	newcomers_connect();
	before = served;
	io_run(io);
	g_assert_cmpuint(welcomed, ==, 1);
	g_assert_cmpuint(served_before_welcome, ==, before);
	g_assert_cmpuint(served, >, before); /* and the others go on */
	busy_down();
}

/* ---------------------------------------------------------------- a peer that never stops
 * writing */

static struct io_sock flooded;
static int flooder;
static char flood[64 << 10];
static uint64_t flood_bytes;
static bool flood_ends;

static void
flood_done(struct io_op *op)
{
	g_assert_cmpint(op->res, >, 0);
	flood_bytes += (uint64_t)op->res;
	if (flood_ends)
		return;
	g_assert_cmpint(write(flooder, flood, sizeof(flood)), >, 0);
	op_submit(io, op);
}

/* The bytes of a flood count in the budget of the round: 8 MiB if they only had to be sent. */
LOOP_TEST("/turns/flood-takes-a-part", file_backends[0], 1, 8)
{
	struct io_op op;

	unix_pair(&flooded, &flooder, 4 * sizeof(flood));
	g_assert_cmpint(write(flooder, flood, sizeof(flood)), ==, sizeof(flood));
	op_init(&op, IO_RECV, flood_done);
	op.sock = &flooded;
	op_submit(io, &op);
	io_run(io);
	g_assert_cmpuint(flood_bytes, >, 0);
	g_assert_cmpuint(flood_bytes, <=, 2 << 20);
	flood_ends = true;
	while (io_busy(io))
		io_run(io);
	close(flooder);
	sock_close(&flooded);
}
