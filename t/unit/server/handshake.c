/* t/unit/server/handshake.c -- a connection before its first request: the handshake ends, fails, is
 * late, is stopped, or makes room. */
#include "t/unit/server/simworker.h"

#define LINES "$HTTP[\"scheme\"] == \"https\" { url.redirect = ( \"\" => \"https://safe/\" ) }\n"

static void
secure_up(const char *lines, unsigned max_conns)
{
	/* the simulation calls no function of it */
	listeners[0].secure = (const struct io_secure *)&listeners;
	up_with(lines, 1, max_conns);
	sim_finish(io, sim_find(io, IO_ACCEPT, NULL), -EAGAIN);
	sim_run(io);
}

static void
secure_down(void)
{
	down();
	listeners[0].secure = NULL;
}

#define SECURE_TEST(path) TEST_IN(path, secure_up(LINES, 1000), secure_down())

SECURE_TEST("/handshake/a request follows, and its scheme is https")
{
	struct io_sock *s = client();
	struct io_op *op = sim_find(io, IO_HANDSHAKE, s);

	g_assert_nonnull(op);
	g_assert_false(listens(s));
	g_assert_cmpuint(op->deadline_ms, ==, 10000);
	g_assert_cmpuint(op->handshake.early.n, ==, 0);
	sim_finish(io, op, 0);
	sim_run(io);
	say(s, GET("/a"));
	settle(s);
	heard_statuses(s, "301");
	leave(s, 0);
}

static void
failed(int64_t res, const char *why, const char *line)
{
	struct io_sock *s = client();
	struct io_op *op = sim_find(io, IO_HANDSHAKE, s);

	op->handshake.why = why;
	sim_finish(io, op, res);
	sim_run(io);
	g_assert_true(is_closed(clients - 1));
	if (line != NULL)
		g_assert_nonnull(strstr(logged->str, line));
	else
		g_assert_null(strstr(logged->str, "tls.failed"));
	g_string_truncate(logged, 0);
}

SECURE_TEST("/handshake/a failure closes, and the log says why")
{
	failed(-ECONNRESET, NULL, NULL); /* a port scanner */
	failed(-EPROTO, "plain HTTP", "why=\"plain HTTP\"");
	failed(-ETIMEDOUT, NULL, "why=\"the handshake took longer than 10 s\"");
	failed(-EPIPE, NULL, "error=");
}

TEST_IN("/handshake/it has no more time than a head",
    secure_up("server.max-read-idle = 9\n" LINES, 1000), secure_down())
{
	struct io_op *op = sim_find(io, IO_HANDSHAKE, client());

	g_assert_cmpuint(op->deadline_ms, ==, 9000);
	sim_finish(io, op, -ETIMEDOUT);
	sim_run(io);
	g_assert_nonnull(strstr(logged->str, "longer than server.max-read-idle"));
}

SECURE_TEST("/handshake/a stop ends it")
{
	struct io_sock *s = client();

	conn_stop_all(w);
	sim_run(io);
	g_assert_null(sim_find(io, IO_HANDSHAKE, s));
	g_assert_true(is_closed(0));
}

/* It counts as a connection without a request. */
TEST_IN("/handshake/it makes room for others", secure_up(LINES, 1), secure_down())
{
	struct io_sock *s;

	client();
	s = client();
	sim_run(io);
	g_assert_true(is_closed(0));
	g_assert_false(is_closed(1));
	sim_finish(io, sim_find(io, IO_HANDSHAKE, s), -ECONNRESET);
	sim_run(io);
	g_assert_true(is_closed(1));
}
