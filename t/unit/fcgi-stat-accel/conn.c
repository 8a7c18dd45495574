/* t/unit/fcgi-stat-accel/conn.c -- a connection in each order of events: receives, sends, waits,
 * and an end that leaves nothing. */

#include "t/unit/fcgi-stat-accel/conn_test.h"

UP_TEST("/conn/hot-and-kept")
{
	for (int i = 1; i <= 3; i++) {
		ask(i, true, "/hot");
		g_assert_cmpuint(sim_count(io, IO_SEND), ==, 1);
		/* a client that does not read is not read from */
		g_assert_cmpuint(sim_count(io, IO_RECV), ==, 0);
		send_all();
		g_assert_false(list_empty(&all.quiet));
		g_assert_null(the_conn()->turn);
		g_assert_cmpuint(op_of(IO_RECV)->deadline_ms, ==, 0);
	}
	assert_heard("1:200 2:200 3:200 ");
	g_assert_cmpuint(counters.events.requests, ==, 3);
}

UP_TEST("/conn/cold")
{
	ask(1, true, "/cold");
	g_assert_cmpuint(sim_count(io, IO_RECV), ==, 1); /* it may abort */
	sim_advance_ms(io, 60000);                       /* the deadline is files/warm's */
	assert_open();
	found(0);
	assert_heard("1:200 ");
	ask(2, true, "/cold/none");
	found(-ENOENT);
	assert_heard("2:404 ");
	assert_open();
}

UP_TEST("/conn/abort-while-looked-up")
{
	ask(1, true, "/cold");
	abort_request(1);
	g_assert_cmpuint(cancelled, ==, 1);
	g_assert_cmpuint(counters.events.aborted, ==, 1);
	assert_heard("1:end ");
	ask(2, true, "/hot");
	assert_heard("2:200 ");
	ask(3, false, "/cold");
	abort_request(3);
	assert_heard("3:end ");
	g_assert_true(the_conn()->lingering);
}

UP_TEST("/conn/gone-while-looked-up")
{
	ask(1, true, "/cold");
	sim_finish(io, op_of(IO_RECV), 0);
	sim_run(io);
	g_assert_cmpuint(cancelled, ==, 1);
	g_assert_cmpuint(counters.events.aborted, ==, 1);
	assert_closed();
}

/* A half close is not a reason to keep back what is ready. */
UP_TEST("/conn/gone-while-sent-to")
{
	ask(1, true, "/cold");
	found(0);
	sim_finish(io, op_of(IO_RECV), 0);
	sim_run(io);
	assert_heard("1:200 ");
	g_assert_true(the_conn()->lingering);
	sim_finish(io, op_of(IO_RECV), 0);
	sim_run(io);
	assert_closed();
}

UP_TEST("/conn/requests-in-a-row")
{
	GString *s = g_string_new(NULL);

	put_request(s, 1, true, "/hot");
	put_request(s, 2, true, "/hot");
	put_request(s, 3, true, "/cold");
	put_request(s, 4, true, "/hot");
	put_request(s, 5, true, "/cold");
	receive(s);
	/* both in one, and no waiting for the third */
	g_assert_cmpuint(sim_count(io, IO_SEND), ==, 1);
	assert_heard("1:200 2:200 ");
	g_assert_cmpuint(sim_count(io, IO_RECV), ==, 0); /* enough has come */
	found(0);
	assert_heard("3:200 4:200 ");
	g_assert_cmpuint(sim_count(io, IO_RECV), ==, 1);
	found(0);
	assert_heard("5:200 ");
}

UP_TEST("/conn/many-take-turns")
{
	GString *s = g_string_new(NULL);
	unsigned sends = 0;
	struct io_op *op;

	for (int i = 1; i <= 500; i++)
		put_request(s, i, true, "/hot");
	receive(s);
	for (; (op = op_of(IO_SEND)) != NULL; sends++) {
		g_assert_cmpuint(op->send.iov->iov_len, <, 20000);
		sim_send(io, op, SIZE_MAX);
		sim_run(io);
	}
	g_assert_cmpuint(sends, >, 1);
	g_assert_cmpuint(counters.events.requests, ==, 500);
}

/* What needs no file is not kept back by what does. */
UP_TEST("/conn/values-while-looked-up")
{
	GString *s = g_string_new(NULL);

	ask(1, true, "/cold");
	put_record(s, 9, 0, "", 0);
	receive(s);
	g_assert_cmpuint(sim_count(io, IO_SEND), ==, 1);
	found(0); /* while that is being sent */
	assert_heard("values 1:200 ");
}

/* A client sends request after request during its look-up and reads nothing.  Its answers are
 * bounded. */
UP_TEST("/conn/values-that-are-not-read")
{
	GString *s;
	unsigned n;

	ask(1, true, "/cold");
	for (n = 0; n < 10 && op_of(IO_RECV) != NULL; n++) {
		s = g_string_new(NULL);
		put_record(s, 9, 0, "", 0);
		receive(s);
	}
	g_assert_cmpuint(n, ==, 2); /* one is being sent, one comes after it */
	assert_heard("values values ");
	g_assert_cmpuint(sim_count(io, IO_RECV), ==, 1);
	found(0);
	assert_heard("1:200 ");
}

UP_TEST("/conn/half-a-request")
{
	g_autoptr(GString) whole = g_string_new(NULL);

	put_request(whole, 1, true, "/hot");
	receive(g_string_new_len(whole->str, 3));
	for (int ms = 0; ms < 9000; ms += 1000) {
		sim_advance_ms(io, 1000);
		assert_open();
		receive(g_string_new_len(whole->str + 3 + ms / 1000, 1));
	}
	sim_advance_ms(io, 1100); /* dripping has not moved the deadline */
	assert_closed();
	g_assert_cmpuint(counters.events.too_slow, ==, 1);
}

/* The head of the next request has come in part: it is owed from the answer on. */
UP_TEST("/conn/half-a-request-behind-a-cold-one")
{
	GString *s = g_string_new(NULL);

	put_request(s, 1, true, "/cold");
	g_string_append_len(s, "\1\1\0", 3);
	receive(s);
	sim_advance_ms(io, 20000);
	assert_open();
	found(0);
	assert_heard("1:200 ");
	sim_advance_ms(io, 9000);
	assert_open();
	sim_advance_ms(io, 1100);
	assert_closed();
}

UP_TEST("/conn/slow-reader")
{
	ask(1, true, "/hot");
	for (int i = 0; i < 3; i++) { /* each byte is progress */
		sim_advance_ms(io, 9000);
		sim_send(io, op_of(IO_SEND), 1);
		sim_run(io);
		assert_open();
	}
	sim_advance_ms(io, 10100);
	assert_closed();
	g_assert_cmpuint(counters.events.too_slow, ==, 1);
}

UP_TEST("/conn/not-kept")
{
	ask(1, false, "/hot");
	g_assert_cmpuint(sim_count(io, IO_SEND), ==, 1);
	send_all();
	assert_closed(); /* the peer has said all: nothing to wait for */
}

UP_TEST("/conn/not-kept-with-a-body")
{
	GString *s = g_string_new(NULL);

	put_request(s, 1, false, "/hot");
	g_string_truncate(s, s->len - 8); /* its STDIN is still to come */
	receive(s);
	assert_heard("1:200 ");
	ask(2, true, "/hot"); /* not read any more */
	g_assert_cmpuint(sim_count(io, IO_SEND), ==, 0);
	sim_advance_ms(io, 900);
	assert_open();
	sim_advance_ms(io, 200);
	assert_closed();
	g_assert_cmpuint(counters.events.too_slow, ==, 0);
	g_assert_cmpuint(counters.events.requests, ==, 1);
}

TEST("/conn/malformed")
{
	GString *s = g_string_new("GET / HTTP/1.1\r\n");

	up();
	receive(s);
	assert_closed();
	g_assert_cmpuint(counters.events.malformed, ==, 1);
	down();
	up();
	s = g_string_new(NULL);
	put_request(s, 1, true, "/hot");
	g_string_append(s, "GET / HTTP/1.1\r\n");
	receive(s);
	assert_heard("1:200 "); /* what came before it is answered */
	g_assert_true(the_conn()->lingering);
	down();
	up();
	ask(1, true, "/cold");
	receive(g_string_new("GET / HTTP/1.1\r\n"));
	assert_closed();
	g_assert_cmpuint(cancelled, ==, 1);
	down();
}

UP_TEST("/conn/no-longer-waited-for")
{
	ask(1, true, "/cold");
	all.draining = true;
	g_assert_cmpuint(conns_give_up(&all), ==, 1);
	g_assert_cmpuint(cancelled, ==, 1);
	assert_heard("1:503 ");
	g_assert_true(the_conn()->lingering);
}

UP_TEST("/conn/the-largest-client-makes-room")
{
	conn_open(&all, FD + 1, true);
	conn_open(&all, FD + 2, true);
	sim_run(io);
	g_assert_false(conns_make_room(&all)); /* they may have asked already */
	sim_advance_ms(io, 100);
	ask(1, true, "/hot"); /* FD is the oldest, but it was busy a moment ago */
	send_all();
	g_assert_true(conns_make_room(&all));
	sim_run(io);
	g_assert_cmpuint(sim_closed(io, FD + 1), ==, 1);
	g_assert_true(conns_make_room(&all));
	sim_run(io);
	g_assert_cmpuint(sim_closed(io, FD + 2), ==, 1);
	ask(1, true, "/cold");
	g_assert_false(conns_make_room(&all)); /* the last one has something to do */
	assert_open();
}

UP_TEST("/conn/not-welcome")
{
	conn_open(&all, FD + 1, false);
	sim_run(io);
	g_assert_cmpuint(sim_closed(io, FD + 1), ==, 1);
	assert_heard("");
}

UP_TEST("/conn/leaving")
{
	conn_open(&all, FD + 1, true);
	sim_run(io);
	ask(1, true, "/cold");
	all.draining = true;
	g_assert_false(conns_leave(&all)); /* a new one: its request may be on its way */
	sim_run(io);
	g_assert_cmpuint(sim_closed(io, FD + 1), ==, 0);
	conns_close_quiet(&all);
	sim_run(io);
	g_assert_cmpuint(sim_closed(io, FD + 1), ==, 1);
	g_assert_cmpuint(sim_closed(io, FD), ==, 0);
	found(0);
	assert_heard("1:200 ");
	g_assert_true(the_conn()->lingering); /* KEEP_CONN or not */
}

UP_TEST("/conn/ping")
{
	GString *s = g_string_new(NULL);
	const uint8_t begin[8] = { 0, 1, 1 };

	put_record(s, 1, 1, begin, 8);
	put_record(s, 4, 1, "\x0b\x05SCRIPT_NAME/ping", 18);
	put_record(s, 4, 1, "", 0);
	receive(s);
	assert_heard("1:200 ");
}

/* All connections close while ops are in flight.  down() finds what is left. */
TEST("/conn/closed-in-every-state")
{
	GString *s = g_string_new(NULL);

	up();
	ask(1, true, "/cold");
	down();
	up();
	ask(1, true, "/hot");
	down();
	up();
	ask(1, true, "/cold");
	put_record(s, 9, 0, "", 0);
	receive(s); /* looked up, received from and sent to */
	down();
	up();
	ask(1, false, "/cold");
	found(0);
	send_all(); /* lingers */
	down();
	up();
	receive(g_string_new_len("\1\1", 2));
	down();
}
