/* t/unit/proxy-core/exchange_flow.c -- request bodies, and clients that read slowly. */
#include "t/unit/proxy-core/exchange_test.h"

EXCHANGE_TEST("/exchange/a paused client reads nothing from the backend", a_conf(one, 1))
{
	struct buf b;

	c.pause_at_body = true;
	asked(&c, "GET");
	buf_init(&b, 0);
	put_stdout(&b, "A: 1\n\none");
	put_stdout(&b, "two");
	put_stdout(&b, "three");
	put_end(&b, 0);
	run_recv(buf_as_text(&b));
	buf_free(&b);
	g_assert_cmpstr(c.body->str, ==, "one");
	g_assert_cmpuint(sim_count(io, IO_RECV), ==, 0); /* nothing more is read */
	sim_advance_ms(io, 200000);                      /* no deadline of the backend runs */
	g_assert_cmpint(c.ends, ==, 0);
	exchange_resume(c.x);
	g_assert_cmpstr(c.body->str, ==, "one"); /* no callback from inside */
	sim_run(io);
	g_assert_cmpstr(c.body->str, ==, "onetwo");
	exchange_resume(c.x);
	exchange_pause(c.x);
	sim_run(io);
	g_assert_cmpstr(c.body->str, ==, "onetwo");
	c.pause_at_body = false;
	exchange_resume(c.x);
	sim_run(io);
	g_assert_cmpstr(c.body->str, ==, "onetwothree");
	ENDED(&c, 0);
	g_assert_cmpuint(open_sockets(), ==, 1);
}

EXCHANGE_TEST("/exchange/a client may pause between two pieces", a_conf(one, 1))
{
	asked(&c, "GET");
	reply_part("A: 1\n\none");
	exchange_pause(c.x);
	reply_part("two"); /* this RECV was in flight */
	g_assert_cmpstr(c.body->str, ==, "one");
	g_assert_cmpuint(sim_count(io, IO_RECV), ==, 0);
	exchange_resume(c.x);
	sim_run(io);
	g_assert_cmpstr(c.body->str, ==, "onetwo");
	reply("three");
	ENDED(&c, 0);
	client_free(&c);
	c.pause_at_head = true;
	asked(&c, "GET");
	reply("A: 1\n\nx");
	g_assert_cmpint(c.heads, ==, 1);
	g_assert_cmpstr(c.body->str, ==, "");
	exchange_resume(c.x);
	sim_run(io);
	ENDED(&c, 0);
}

/* Held bytes are read once, even when a callback pauses and resumes. */
EXCHANGE_TEST("/exchange/a client may pause and resume inside a callback", a_conf(one, 1))
{
	struct buf b;

	c.pause_at_body = true;
	asked(&c, "GET");
	buf_init(&b, 0);
	put_stdout(&b, "A: 1\n\none");
	put_stdout(&b, "two");
	run_recv(buf_as_text(&b));
	buf_free(&b);
	c.resume_at_body = true;
	exchange_resume(c.x);
	sim_run(io);
	g_assert_cmpstr(c.body->str, ==, "onetwo");
	reply("three");
	ENDED(&c, 0);
	g_assert_cmpstr(c.body->str, ==, "onetwothree");
}

static size_t
sent_body(const struct io_sock *s, bool *ended)
{
	struct text t = sim_sent(io, s);
	const unsigned char *h;
	size_t n, all = 0;

	*ended = false;
	while (t.n > 0) {
		h = (const unsigned char *)t.p;
		n = (size_t)(h[4] << 8 | h[5]);
		if (h[1] == 5) {
			g_assert_false(*ended);
			*ended = n == 0;
			all += n;
		}
		t.p += 8 + n;
		t.n -= 8 + n;
	}
	return (all);
}

EXCHANGE_TEST("/exchange/a request body is streamed in bounded pieces", a_conf(one, 1))
{
	g_autofree char *big = g_malloc0(300000);
	const struct io_sock *s;
	size_t at = 0, before;
	bool ended;

	ask_with(&c, "POST", 300000);
	at = exchange_body(c.x, (struct text){ big, 300000 });
	g_assert_cmpuint(at, ==, 64 << 10); /* bounded, even without a socket */
	g_assert_cmpuint(exchange_body(c.x, (struct text){ big, 1 }), ==, 0);
	run_connect(0);
	s = sim_find(io, IO_SEND, NULL)->sock;
	sim_sent_clear(io, s);
	before = at;
	while (at < 300000) {
		c.rooms = 0;
		sim_send(io, sim_find(io, IO_SEND, NULL), SIZE_MAX);
		sim_run(io);
		g_assert_cmpint(c.rooms, ==, 1);
		at += exchange_body(c.x, (struct text){ big, 300000 - at });
		g_assert_cmpuint(at - before, <=, 64 << 10);
		before = at;
	}
	run_send();
	g_assert_cmpuint(sent_body(s, &ended), ==, 300000);
	g_assert_true(ended);
	reply("\nthanks");
	ENDED(&c, 0);
	g_assert_cmpuint(open_sockets(), ==, 1);
}

/* A reply before the end of the body ends the exchange and the socket. */
EXCHANGE_TEST("/exchange/an early reply ends the exchange and its socket", a_conf(one, 1))
{
	ask_with(&c, "POST", 1000);
	g_assert_cmpuint(exchange_body(c.x, TEXT("first")), ==, 5);
	run_connect(0);
	run_send();
	reply_part("Status: 413\n\nno");
	g_assert_cmpuint(exchange_body(c.x, TEXT("second")), ==, 6);
	run_send();
	reply(", thanks");
	ENDED(&c, 0);
	g_assert_cmpstr(c.body->str, ==, "no, thanks");
	g_assert_cmpuint(open_sockets(), ==, 0);
	/* The backend hangs up after its answer. */
	ask_with(&c, "POST", 1000);
	run_connect(0);
	run_send();
	exchange_body(c.x, TEXT("first"));
	sim_finish(io, sim_find(io, IO_SEND, NULL), -EPIPE);
	sim_run(io);
	g_assert_cmpint(c.ends, ==, 0);
	g_assert_cmpuint(exchange_body(c.x, TEXT("second")), ==, 6); /* dropped */
	reply("Status: 413\n\nno");
	ENDED(&c, 0);
	g_assert_cmpuint(open_sockets(), ==, 0);
	/* The deadline runs while the backend does not read, not while the client does not send. */
	ask_with(&c, "POST", 1000);
	run_connect(0);
	run_send();
	sim_advance_ms(io, 200000);
	g_assert_cmpint(c.ends, ==, 0);
	exchange_body(c.x, TEXT("first"));
	sim_advance_ms(io, 60100);
	ENDED(&c, 504);
}

/* The loop of the tests has a budget of 4 MiB in a round. */
/* Two applications send this many pieces: the second one's are read in the next round. */
static void
pieces_take_turns(const char *piece, size_t body)
{
	struct client other = { 0 };
	struct buf b;
	int i;

	asked(&c, "GET");
	asked(&other, "GET");
	buf_init(&b, 0);
	put_stdout(&b, "A: 1\n\n");
	for (i = 0; i < 10000; i++)
		put_stdout(&b, piece);
	put_end(&b, 0);
	sim_recv(io, nth_recv(0), buf_as_text(&b));
	sim_recv(io, nth_recv(0), buf_as_text(&b));
	buf_free(&b);
	io_run(io);
	g_assert_cmpuint(c.body->len, ==, body);
	g_assert_cmpint(c.ends, ==, 1);
	g_assert_cmpint(other.ends, ==, 0);
	io_run(io);
	g_assert_cmpuint(other.body->len, ==, body);
	ENDED(&c, 0);
	ENDED(&other, 0);
	client_free(&other);
}

EXCHANGE_TEST("/exchange/many small pieces end the round", a_conf(one, 1))
{
	pieces_take_turns("x", 10000);
}

EXCHANGE_TEST("/exchange/many empty messages end the round", a_conf(one, 1))
{
	pieces_take_turns("", 0);
}
