/* t/unit/server/conn_ends.c -- connections begin and end: leaving clients, deadlines, stop,
 * drain. */
#include "t/unit/server/simworker.h"

/* ---------------------------------------------------------------- a connection in each state */

enum moment {
	IDLE,
	HALF_HEAD,
	COLD,
	READING,
	SENDING,
	SENDING_FILE,
	SKIPPING,
	CHUNKED,
	LINGERING,
	KEPT,
	PLACES
};

/* A connection that is in this state, and waits for the event in its name. */
static struct io_sock *
client_at(enum moment place)
{
	struct io_sock *s = client();

	switch (place) {
	case IDLE: break;
	case HALF_HEAD: say(s, "GET /a HTTP/1.1\r\nHos"); break;
	case COLD: say(s, GET("/a") GET("/b")); break;
	case READING:
		say(s, GET("/a") GET("/b"));
		disk_answers(disk_op());
		sim_run(io);
		break;
	case SENDING:
		say(s, GET("/a") GET("/b"));
		disk();
		break;
	case SENDING_FILE:
		say(s, GET("/large") GET("/b"));
		disk();
		take(s, SIZE_MAX);
		g_assert_nonnull(sim_find(io, IO_SEND_FILE, s));
		break;
	case SKIPPING: say(s, "POST /a HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc"); break;
	case CHUNKED:
		say(s, "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nabc");
		break;
	case LINGERING:
		say(s, "NONSENSE\r\n\r\n");
		take(s, SIZE_MAX);
		break;
	case KEPT:
		say(s, GET("/a"));
		disk();
		take(s, SIZE_MAX);
		break;
	case PLACES: break;
	}
	return (s);
}

static void
finish_disk_and_close(void)
{
	disk();
	sim_run(io);
	g_assert_cmpuint(w->nconns, ==, 0);
	g_assert_true(is_closed(clients - 1));
}

TEST("/conn/leaves-in-every-state")
{
	static const int how[] = { 0, -ECONNRESET, -ETIMEDOUT, -EIO };
	struct io_sock *s;
	struct io_op *op;
	int place;
	size_t i;

	for (place = 0; place < PLACES; place++) {
		for (i = 0; i < G_N_ELEMENTS(how); i++) {
			up("");
			s = client_at((enum moment)place);
			if (listens(s))
				leave(s, how[i]);
			/* The server notices this when it sends the reply, or later. */
			disk();
			op = sim_find(io, IO_SEND, s);
			op = op != NULL ? op : sim_find(io, IO_SEND_FILE, s);
			if (op != NULL)
				sim_finish(io, op, how[i] == 0 ? -EPIPE : how[i]);
			sim_run(io);
			if (listens(s))
				leave(s, how[i]); /* a 408 was sent, and lingers */
			finish_disk_and_close();
			down();
		}
	}
}

TEST("/conn/stop/in-every-state")
{
	struct conn *c;
	int place;

	for (place = 0; place < PLACES; place++) {
		up("");
		client_at((enum moment)place);
		c = last_conn();
		conn_stop(c);
		conn_stop(c);
		sim_run(io); /* at once: it waits for no op */
		finish_disk_and_close();
		down();
		up("");
		client_at((enum moment)place);
		down(); /* as the worker does it */
	}
}

/* Stopped between the end of its op and the callback. */
TEST("/conn/stop/loses-race")
{
	struct io_sock *s;
	struct io_op *op;
	int place;

	for (place = 0; place < PLACES; place++) {
		up("");
		s = client_at((enum moment)place);
		if ((op = sim_find(io, IO_RECV, s)) != NULL)
			sim_recv(io, op, TEXT("GET / HTTP/1.1\r\n\r\n"));
		else if ((op = sim_find(io, IO_SEND, s)) != NULL)
			sim_send(io, op, SIZE_MAX);
		else if ((op = sim_find(io, IO_SEND_FILE, s)) != NULL)
			sim_finish(io, op, 10);
		else
			disk_answers(disk_op());
		conn_stop(last_conn());
		finish_disk_and_close();
		down();
	}
}

TEST_IN("/conn/stop/drain", up_with("", 1, 1000), down())
{
	struct io_sock *s[PLACES];
	int place;

	for (place = 0; place < PLACES; place++)
		s[place] = client_at((enum moment)place);
	worker_tell(w, WORKER_DRAIN);
	worker_round(w);
	sim_run(io);
	g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 0);
	g_assert_true(is_closed(KEPT));
	say(s[HALF_HEAD], "t: a\r\n\r\n");
	say(s[SKIPPING], "defghij");
	say(s[IDLE], GET("/a")); /* it had just come */
	for (place = 0; place < PLACES; place++) {
		take(s[place], SIZE_MAX);
		while (sim_find(io, IO_SEND_FILE, s[place]) != NULL) {
			sim_finish(io, sim_find(io, IO_SEND_FILE, s[place]), 100000);
			sim_run(io);
		}
		while (take(s[place], SIZE_MAX) + disk() != 0)
			; /* a request whose head had come is answered, too */
	}
	g_assert_true(heard_has(s[IDLE], "Connection: close"));
	g_assert_true(heard_has(s[HALF_HEAD], "Connection: close"));
	sim_advance_ms(io, 5000); /* no byte comes */
	g_assert_cmpuint(w->nconns, ==, 1);
	say(s[CHUNKED], "de\r\n0\r\n\r\n");
	take(s[CHUNKED], SIZE_MAX);
	sim_advance_ms(io, 5000);
	g_assert_cmpuint(w->nconns, ==, 0);
}

/* ---------------------------------------------------------------- deadlines */

UP_TEST("/conn/deadline/dripping-head", "server.max-read-idle = 10")
{
	const char *head = "GET /a HTTP/1.1\r\nHost: a-name-as-long-as-it-takes-to-drip-in\r\n";
	struct io_sock *s = client();
	unsigned i;

	for (i = 0; i < 10; i++) {
		say_n(s, head + i, 1);
		sim_advance_ms(io, 999);
	}
	g_assert_cmpuint(sim_count(io, IO_SEND), ==, 0);
	sim_advance_ms(io, 10);
	g_assert_cmpuint(sim_count(io, IO_SEND), ==, 1);
	takes(s, "408");
	say(s, "more"); /* lingers, but not for long either */
	for (i = 0; i < 5 && listens(s); i++) {
		sim_advance_ms(io, 900);
		if (listens(s))
			say(s, "x");
	}
	g_assert_true(is_closed(0));
}

UP_TEST("/conn/deadline/silent", "server.max-read-idle = 10\nserver.max-keep-alive-idle = 3")
{
	client_at(IDLE);
	sim_advance_ms(io, 9999);
	g_assert_false(is_closed(0));
	sim_advance_ms(io, 1);
	g_assert_true(is_closed(0)); /* without a word: it did not ask for anything */
	client_at(KEPT);
	sim_advance_ms(io, 2999);
	g_assert_false(is_closed(1));
	sim_advance_ms(io, 1);
	g_assert_true(is_closed(1));
}

/* A condition is about requests: the last one says how long the connection may be idle. */
UP_TEST("/conn/deadline/silent-by-condition",
    "server.max-keep-alive-idle = 3\n$HTTP[\"url\"] == \"/a\" { server.max-keep-alive-idle "
    "= 7 }")
{
	struct io_sock *s;

	s = client_at(KEPT);
	sim_advance_ms(io, 6999);
	g_assert_false(is_closed(0));
	say(s, GET("/other"));
	disk();
	take(s, SIZE_MAX);
	sim_advance_ms(io, 2999);
	g_assert_false(is_closed(0));
	sim_advance_ms(io, 1);
	g_assert_true(is_closed(0));
	client_at(KEPT);
	sim_advance_ms(io, 6999);
	g_assert_false(is_closed(1));
	sim_advance_ms(io, 1);
	g_assert_true(is_closed(1));
}

TEST("/conn/deadline/silent-body")
{
	struct io_sock *s;
	int place;

	for (place = SKIPPING; place <= CHUNKED; place++) {
		up("server.max-read-idle = 10");
		s = client_at((enum moment)place);
		sim_advance_ms(io, 10000);
		takes(s, "408");
		sim_advance_ms(io, 4000);
		g_assert_true(is_closed(0));
		down();
	}
}

UP_TEST("/conn/deadline/stalled-reader", "server.max-write-idle = 10\nserver.min-write-rate = 0")
{
	struct io_sock *s;

	s = client_at(SENDING);
	sim_advance_ms(io, 9000);
	sim_send(io, sim_find(io, IO_SEND, s), 1); /* progress */
	sim_run(io);
	sim_advance_ms(io, 9999);
	g_assert_false(is_closed(0));
	sim_advance_ms(io, 1);
	g_assert_true(is_closed(0));
	g_assert_nonnull(strstr(logged->str, "ev=client.stalled"));
	s = client_at(SENDING_FILE);
	sim_advance_ms(io, 10000);
	g_assert_true(is_closed(1));
}

/* A byte now and then is not progress: each second of waiting is to be paid with
 * server.min-write-rate bytes. */
UP_TEST("/conn/deadline/dripping-reader", "server.max-write-idle = 10\nserver.min-write-rate = 100")
{
	struct io_sock *s = client();
	int i;

	say(s, GET("/m"));
	disk();
	for (i = 0; i < 10; i++) {
		g_assert_false(is_closed(0));
		sim_advance_ms(io, 1000);
		sim_send(io, sim_find(io, IO_SEND, s), 100); /* what it owes */
		sim_run(io);
	}
	for (i = 0; i < 9; i++) {
		g_assert_false(is_closed(0));
		sim_advance_ms(io, 1000);
		sim_send(io, sim_find(io, IO_SEND, s), 1);
		sim_run(io);
	}
	sim_advance_ms(io, 1100);
	g_assert_true(is_closed(0));
	g_assert_nonnull(strstr(logged->str, "ev=client.stalled"));
}

/* A body that drips: bytes that came fast earn nothing for later. */
UP_TEST("/conn/deadline/dripping-body", "server.max-read-idle = 10")
{
	g_autofree char *much = g_malloc0(65536);
	struct io_sock *s = client();
	int i;

	say(s, "POST /a HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\n");
	say_n(s, much, 65536);
	for (i = 0; i < 9; i++) {
		sim_advance_ms(io, 1000);
		say(s, "x");
	}
	g_assert_true(listens(s));
	sim_advance_ms(io, 1100);
	takes(s, "408");
}

/* The disk hangs: the client hears so when its time is up, and the worker holds nothing of it. */
UP_TEST("/conn/deadline/hung-disk", "server.max-open-idle = 2")
{
	struct io_sock *s = client();

	say(s, GET("/a") GET("/b"));
	sim_advance_ms(io, 2000);
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "Retry-After: 1\r\n"));
	heard_statuses(s, "503");
	sim_advance_ms(io, 2000);
	takes(s, "503");
	g_assert_true(listens(s));
}

/* ---------------------------------------------------------------- unwanted bodies */

UP_TEST("/conn/body-too-long-to-skip", "")
{
	struct io_sock *s = client();
	g_autofree char *much = g_malloc0(65536);
	int i;

	say(s, "POST /a HTTP/1.1\r\n" HOST "Content-Length: 2000000\r\n\r\n");
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "Connection: close"));
	heard_statuses(s, "405");
	for (i = 0; i < 40; i++)
		say_n(s, much, 65536); /* a reset would take the reply with it */
	for (i = 0; i < 20 && listens(s); i++) {
		sim_advance_ms(io, 1000);
		if (listens(s))
			say_n(s, much, 65536);
	}
	g_assert_cmpint(i, ==, 11); /* ten seconds are enough for that */
	g_assert_true(is_closed(0));
	s = client();
	say(s, "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n200000\r\n");
	for (i = 0; i < 20 && listens(s) && sim_count(io, IO_SEND) == 0; i++)
		say_n(s, much, 65536);
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "Connection: close"));
	heard_statuses(s, "405");
}

/* A directory decides before a body is read.  Its reply says what happens to the connection. */
UP_TEST("/conn/body-of-redirect", "server.error-handler-404 = \"/b\"\n"
				  "url.rewrite-once = ( \"^/re/(.*)\" => \"/$1\" )\n")
{
	struct io_sock *s = client();

	say(s, "POST /re/dir HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello" GET("/a"));
	settle(s);
	heard_statuses(s, "301 200");
	say(s, "GET /re/dir/ HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	       "5\r\nhello\r\n0\r\n\r\n" GET("/a"));
	settle(s);
	heard_statuses(s, "200 200");
	say(s,
	    "POST /re/dir HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
	settle(s);
	g_assert_true(heard_has(s, "Connection: close"));
	heard_statuses(s, "301");
	s = client();
	say(s, "POST /re/dir HTTP/1.1\r\n" HOST "Content-Length: 2000000\r\n\r\n");
	settle(s);
	g_assert_true(heard_has(s, "Connection: close"));
	heard_statuses(s, "301");
}

/* ---------------------------------------------------------------- what is held */

UP_TEST("/conn/idle-holds-nothing", "")
{
	struct io_sock *s;
	unsigned i, kept;

	for (i = 0; i < 50; i++)
		client();
	g_assert_cmpuint(w->nrequests, ==, 0); /* none was made */
	s = client_at(KEPT);
	kept = w->nrequests;
	g_assert_cmpuint(kept, ==, 1);
	for (i = 0; i < 50; i++)
		client_at(KEPT);
	g_assert_cmpuint(w->nrequests, ==, kept);
	say(s, "GET"); /* a part of a head is kept as it came */
	g_assert_cmpuint(w->nrequests, ==, kept);
	g_assert_cmpuint(w->eviction.bytes, ==, 256);
	say(s, " /a HTTP/1.1\r\n" HOST "\r\n");
	g_assert_cmpuint(w->nrequests, ==, kept - 1);
	g_assert_cmpuint(w->eviction.bytes, ==, 0);
}

/* While it waits for the disk nothing is received: what a client pipelines is its own problem. */
UP_TEST("/conn/input-is-bounded", "")
{
	struct io_sock *s;

	s = client_at(COLD);
	g_assert_false(listens(s));
	disk_answers(disk_op());
	sim_run(io);
	g_assert_false(listens(s));
	disk();
	g_assert_false(listens(s)); /* nor while it sends */
	take(s, SIZE_MAX);
	disk();
	take(s, SIZE_MAX);
	g_assert_true(listens(s));
}

/* One client sends this many chunks: the next client's request is read in the next round. */
UP_TEST("/conn/chunks-end-the-round", "")
{
	struct io_sock *s = client(), *other = client();
	g_autoptr(GString) many = g_string_new(NULL);

	say(s, "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 10000; i++)
		g_string_append(many, "1\r\nx\r\n");
	sim_recv(io, sim_find(io, IO_RECV, s), (struct text){ many->str, many->len });
	sim_recv(io, sim_find(io, IO_RECV, other), text_of(GET("/b")));
	io_run(io);
	g_assert_cmpuint(w->base.counts.conn->requests, ==, 1);
	io_run(io);
	g_assert_cmpuint(w->base.counts.conn->requests, ==, 2);
}
