/* t/unit/io/turns.c -- in which order the epoll loop calls back. */
#include "t/unit/io/io_test.h"

/* ---------------------------------------------------------------- a send that is done is called back next */

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
	io_submit(io, &c->send);
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
		io_cancel(io, &c->hangup);
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

	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p), ==, 0);
	*c = (struct client){.name = name, .sends = sends, .peer = p[1], .iov = {"x", 1}};
	io_sock_init(&c->sock, p[0]);
	io_op_init(&c->recv, IO_RECV, received);
	io_op_init(&c->send, IO_SEND, sent);
	c->recv.sock = c->send.sock = &c->sock;
	c->send.send.iov = &c->iov;
	c->send.send.n = 1;
	g_assert_cmpint(write(c->peer, "x", 1), ==, 1);
	io_submit(io, &c->recv);
}

static void
client_down(struct client *c)
{
	close(c->peer);
	sock_close(&c->sock);
}

static void
test_send_follows(void)
{
	struct client a, b;

	loop_up(file_backends[0], 1, 8);
	story = g_string_new("");
	client_up(&a, 'a', 1);
	client_up(&b, 'b', 1);
	io_run(io);
	g_assert_cmpstr(story->str, ==, "rasarbsb");
	client_down(&a);
	client_down(&b);
	g_string_free(story, true);
	loop_down();
}

/* One with many requests at a time goes on when the others have had their turn. */
static void
test_sends_take_turns(void)
{
	struct client a, b, c;

	loop_up(file_backends[0], 1, 8);
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
	loop_down();
}

/* server/conn.c relies on it: an op that was cancelled is free again when a later one comes back. */
static void
test_cancelled_before_sent(void)
{
	struct client a;
	struct io_sock other;
	int p[2];

	loop_up(file_backends[0], 1, 8);
	story = g_string_new("");
	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p), ==, 0);
	io_sock_init(&other, p[0]);
	client_up(&a, 'a', 1);
	io_op_init(&a.hangup, IO_HANGUP, hung_up);
	a.hangup.sock = &other;
	io_submit(io, &a.hangup);
	io_run(io);
	g_assert_cmpstr(story->str, ==, "rahasa");
	close(p[1]);
	sock_close(&other);
	client_down(&a);
	g_string_free(story, true);
	loop_down();
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/turns/send-follows", test_send_follows);
	g_test_add_func("/turns/sends-take-turns", test_sends_take_turns);
	g_test_add_func("/turns/cancelled-before-sent", test_cancelled_before_sent);
	return (g_test_run());
}
