/* t/unit/fcgi-stat-accel/conn.c -- a connection in each order of events: receives, sends, waits,
 * and an end that leaves nothing. */

#include "t/unit/fcgi-stat-accel/conn_test.h"

static void
test_hot_and_kept(void)
{
	setup();
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
	g_assert_cmpuint(counters.events.accel_requests, ==, 3);
	teardown();
}

static void
test_cold(void)
{
	setup();
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
	teardown();
}

static void
test_abort_while_looked_up(void)
{
	setup();
	ask(1, true, "/cold");
	abort_request(1);
	g_assert_cmpuint(cancelled, ==, 1);
	g_assert_cmpuint(counters.events.accel_aborted, ==, 1);
	assert_heard("1:end ");
	ask(2, true, "/hot");
	assert_heard("2:200 ");
	ask(3, false, "/cold");
	abort_request(3);
	assert_heard("3:end ");
	g_assert_true(the_conn()->lingering);
	teardown();
}

static void
test_gone_while_looked_up(void)
{
	setup();
	ask(1, true, "/cold");
	sim_finish(io, op_of(IO_RECV), 0);
	sim_run(io);
	g_assert_cmpuint(cancelled, ==, 1);
	g_assert_cmpuint(counters.events.accel_aborted, ==, 1);
	assert_closed();
	teardown();
}

/* A half close is no reason to keep back what is ready. */
static void
test_gone_while_sent_to(void)
{
	setup();
	ask(1, true, "/cold");
	found(0);
	sim_finish(io, op_of(IO_RECV), 0);
	sim_run(io);
	assert_heard("1:200 ");
	g_assert_true(the_conn()->lingering);
	sim_finish(io, op_of(IO_RECV), 0);
	sim_run(io);
	assert_closed();
	teardown();
}

static void
test_requests_in_a_row(void)
{
	GString *s = g_string_new(NULL);

	setup();
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
	teardown();
}

static void
test_many_in_a_row_take_turns(void)
{
	GString *s = g_string_new(NULL);
	unsigned sends = 0;
	struct io_op *op;

	setup();
	for (int i = 1; i <= 500; i++)
		put_request(s, i, true, "/hot");
	receive(s);
	for (; (op = op_of(IO_SEND)) != NULL; sends++) {
		g_assert_cmpuint(op->send.iov->iov_len, <, 20000);
		sim_send(io, op, SIZE_MAX);
		sim_run(io);
	}
	g_assert_cmpuint(sends, >, 1);
	g_assert_cmpuint(counters.events.accel_requests, ==, 500);
	teardown();
}

/* What needs no file is not kept back by what does. */
static void
test_values_while_looked_up(void)
{
	GString *s = g_string_new(NULL);

	setup();
	ask(1, true, "/cold");
	put_record(s, 9, 0, "", 0);
	receive(s);
	g_assert_cmpuint(sim_count(io, IO_SEND), ==, 1);
	found(0); /* while that is being sent */
	assert_heard("values 1:200 ");
	teardown();
}

/* A client sends request after request during its look-up and reads nothing.  Its answers are
 * bounded. */
static void
test_values_that_are_not_read(void)
{
	GString *s;
	unsigned n;

	setup();
	ask(1, true, "/cold");
	for (n = 0; n < 10 && op_of(IO_RECV) != NULL; n++) {
		s = g_string_new(NULL);
		put_record(s, 9, 0, "", 0);
		receive(s);
	}
	g_assert_cmpuint(n, ==, 2); /* one is being sent, one comes behind it */
	assert_heard("values values ");
	g_assert_cmpuint(sim_count(io, IO_RECV), ==, 1);
	found(0);
	assert_heard("1:200 ");
	teardown();
}

static void
test_half_a_request(void)
{
	GString *whole = g_string_new(NULL);

	setup();
	put_request(whole, 1, true, "/hot");
	receive(g_string_new_len(whole->str, 3));
	for (int ms = 0; ms < 9000; ms += 1000) {
		sim_advance_ms(io, 1000);
		assert_open();
		receive(g_string_new_len(whole->str + 3 + ms / 1000, 1));
	}
	sim_advance_ms(io, 1100); /* dripping has not moved the deadline */
	assert_closed();
	g_assert_cmpuint(counters.events.accel_too_slow, ==, 1);
	g_string_free(whole, TRUE);
	teardown();
}

/* The head of the next request has come in part: it is owed from the answer on. */
static void
test_half_a_request_behind_a_cold_one(void)
{
	GString *s = g_string_new(NULL);

	setup();
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
	teardown();
}

static void
test_slow_reader(void)
{
	setup();
	ask(1, true, "/hot");
	for (int i = 0; i < 3; i++) { /* each byte is progress */
		sim_advance_ms(io, 9000);
		sim_send(io, op_of(IO_SEND), 1);
		sim_run(io);
		assert_open();
	}
	sim_advance_ms(io, 10100);
	assert_closed();
	g_assert_cmpuint(counters.events.accel_too_slow, ==, 1);
	teardown();
}

static void
test_not_kept(void)
{
	setup();
	ask(1, false, "/hot");
	g_assert_cmpuint(sim_count(io, IO_SEND), ==, 1);
	send_all();
	assert_closed(); /* the peer has said all: nothing to wait for */
	teardown();
}

static void
test_not_kept_with_a_body(void)
{
	GString *s = g_string_new(NULL);

	setup();
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
	g_assert_cmpuint(counters.events.accel_too_slow, ==, 0);
	g_assert_cmpuint(counters.events.accel_requests, ==, 1);
	teardown();
}

static void
test_malformed(void)
{
	GString *s = g_string_new("GET / HTTP/1.1\r\n");

	setup();
	receive(s);
	assert_closed();
	g_assert_cmpuint(counters.events.accel_malformed, ==, 1);
	teardown();
	setup();
	s = g_string_new(NULL);
	put_request(s, 1, true, "/hot");
	g_string_append(s, "GET / HTTP/1.1\r\n");
	receive(s);
	assert_heard("1:200 "); /* what came before it is answered */
	g_assert_true(the_conn()->lingering);
	teardown();
	setup();
	ask(1, true, "/cold");
	receive(g_string_new("GET / HTTP/1.1\r\n"));
	assert_closed();
	g_assert_cmpuint(cancelled, ==, 1);
	teardown();
}

static void
test_no_longer_waited_for(void)
{
	setup();
	ask(1, true, "/cold");
	all.draining = true;
	g_assert_cmpuint(conns_give_up(&all), ==, 1);
	g_assert_cmpuint(cancelled, ==, 1);
	assert_heard("1:503 ");
	g_assert_true(the_conn()->lingering);
	teardown();
}

static void
test_who_makes_room(void)
{
	setup();
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
	teardown();
}

static void
test_not_welcome(void)
{
	setup();
	conn_open(&all, FD + 1, false);
	sim_run(io);
	g_assert_cmpuint(sim_closed(io, FD + 1), ==, 1);
	assert_heard("");
	teardown();
}

static void
test_leaving(void)
{
	setup();
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
	teardown();
}

static void
test_ping(void)
{
	GString *s = g_string_new(NULL);
	const uint8_t begin[8] = { 0, 1, 1 };

	setup();
	put_record(s, 1, 1, begin, 8);
	put_record(s, 4, 1, "\x0b\x05SCRIPT_NAME/ping", 18);
	put_record(s, 4, 1, "", 0);
	receive(s);
	assert_heard("1:200 ");
	teardown();
}

/* All connections close while ops are in flight.  teardown() finds what is left. */
static void
test_closed_in_every_state(void)
{
	GString *s = g_string_new(NULL);

	setup();
	ask(1, true, "/cold");
	teardown();
	setup();
	ask(1, true, "/hot");
	teardown();
	setup();
	ask(1, true, "/cold");
	put_record(s, 9, 0, "", 0);
	receive(s); /* looked up, received from and sent to */
	teardown();
	setup();
	ask(1, false, "/cold");
	found(0);
	send_all(); /* lingers */
	teardown();
	setup();
	receive(g_string_new_len("\1\1", 2));
	teardown();
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/conn/hot-and-kept", test_hot_and_kept);
	g_test_add_func("/conn/cold", test_cold);
	g_test_add_func("/conn/abort-while-looked-up", test_abort_while_looked_up);
	g_test_add_func("/conn/gone-while-looked-up", test_gone_while_looked_up);
	g_test_add_func("/conn/gone-while-sent-to", test_gone_while_sent_to);
	g_test_add_func("/conn/requests-in-a-row", test_requests_in_a_row);
	g_test_add_func("/conn/many-take-turns", test_many_in_a_row_take_turns);
	g_test_add_func("/conn/values-while-looked-up", test_values_while_looked_up);
	g_test_add_func("/conn/values-that-are-not-read", test_values_that_are_not_read);
	g_test_add_func("/conn/half-a-request", test_half_a_request);
	g_test_add_func("/conn/half-a-request-behind-a-cold-one",
	    test_half_a_request_behind_a_cold_one);
	g_test_add_func("/conn/slow-reader", test_slow_reader);
	g_test_add_func("/conn/not-kept", test_not_kept);
	g_test_add_func("/conn/not-kept-with-a-body", test_not_kept_with_a_body);
	g_test_add_func("/conn/malformed", test_malformed);
	g_test_add_func("/conn/no-longer-waited-for", test_no_longer_waited_for);
	g_test_add_func("/conn/the-largest-client-makes-room", test_who_makes_room);
	g_test_add_func("/conn/not-welcome", test_not_welcome);
	g_test_add_func("/conn/leaving", test_leaving);
	g_test_add_func("/conn/ping", test_ping);
	g_test_add_func("/conn/closed-in-every-state", test_closed_in_every_state);
	return (g_test_run());
}
