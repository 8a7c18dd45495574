/* t/unit/server/overdue.c -- the net below the deadlines: a request that nobody ends is ended. */
#include "files/hold/hold.h"
#include "server/request/request.h"
#include "t/unit/server/simworker.h"
#include "server/conn/impl.h"
#include "server/conn/overdue.h"

#define APPLICATION                                                               \
	"$HTTP[\"url\"] =~ \"^/app\" { proxy-core.protocol = \"http\"\n"          \
	"proxy-core.backends = ( \"10.0.0.1:80\" ) }\nserver.max-read-idle = 2\n" \
	"server.max-open-idle = 1\n"

/* A handler that forgets its request. */
static enum handled
forgets(struct request *r)
{
	return (r->peeks ? HANDLED_NOT_NOW : HANDLED_LATER);
}

static const struct handler forgetful = { .name = "forgetful", .start = forgets };

static uint64_t
overdue(void)
{
	return (w->base.counts.conn->requests_overdue);
}

UP_TEST("/overdue/a request that nobody ends", APPLICATION)
{
	struct io_sock *s, *other;
	struct conn *c;
	unsigned n;

	s = client();
	say(s, GET("/a"));
	c = last_conn();
	file_lookup_cancel(&c->r->wait); /* nobody answers it now */
	c->handler = &forgetful;
	other = client();
	for (n = 0; n < 10 && !is_closed(0); n++)
		sim_advance_ms(io, OVERDUE_LOOK_MS);
	/* 10 s of slack and 1 s for the look-up, from the first look on */
	g_assert_cmpuint(n, ==, 4);
	g_assert_cmpuint(overdue(), ==, 1);
	g_assert_nonnull(strstr(logged->str, "ev=request.overdue"));
	g_assert_nonnull(strstr(logged->str, "state=handle"));
	g_assert_nonnull(strstr(logged->str, "handler=forgetful"));
	(void)other;
}

/* An idle connection, an unfinished head, and a client that takes its time are nobody's fault. */
UP_TEST("/overdue/idle and slow clients stay",
    "server.max-keep-alive-idle = 1000\nserver.max-write-idle = 1000\n")
{
	struct io_sock *s;
	unsigned n;

	client();
	s = client();
	say(s, GET("/a"));
	disk();
	for (n = 0; n < 20; n++)
		sim_advance_ms(io, OVERDUE_LOOK_MS);
	takes(s, "200");
	for (n = 0; n < 20; n++)
		sim_advance_ms(io, OVERDUE_LOOK_MS);
	g_assert_cmpuint(overdue(), ==, 0);
	g_assert_true(listens(s));
}

/* An application may think as long as its own deadline allows. */
static void
application_thinks(const char *conf)
{
	struct io_sock *s;
	struct io_op *op;
	unsigned n;

	up(conf);
	s = client();
	say(s, GET("/app"));
	op = sim_find(io, IO_CONNECT, NULL);
	g_assert_nonnull(op);
	sim_finish(io, op, 0);
	sim_run(io);
	take(op->sock, SIZE_MAX);
	for (n = 0; n < 30; n++)
		sim_advance_ms(io, OVERDUE_LOOK_MS);
	g_assert_cmpuint(overdue(), ==, 0);
	g_assert_cmpuint(w->nconns, ==, 1);
	for (n = 0; n < 20; n++)
		sim_advance_ms(io, OVERDUE_LOOK_MS);
	take(s, SIZE_MAX);
	heard_statuses(s, "504"); /* its own deadline, not the net */
	g_assert_cmpuint(overdue(), ==, 0);
	down();
}

TEST("/overdue/an application that thinks")
{
	application_thinks(APPLICATION "proxy-core.read-timeout = 200\n");
	application_thinks(
	    APPLICATION "proxy-core.read-timeout = 5\nproxy-core.reply-timeout = 200\n");
}

/* The last connection has closed, and the next one comes before the timer is gone. */
UP_TEST("/overdue/one connection after the other", APPLICATION)
{
	client();
	overdue_end(w);
	overdue_begin(w);
	sim_run(io);
	g_assert_true(w->overdue.timed);
}

/* Each byte that it takes of a body that the server has starts its time anew. */
UP_TEST("/overdue/an application takes a body slowly", APPLICATION "proxy-core.read-timeout = 20\n")
{
	static char body[40000];
	struct io_sock *s;
	struct io_op *op;
	unsigned n;

	memset(body, 'b', sizeof(body) - 1);
	s = client();
	say(s, "POST /app HTTP/1.1\r\n" HOST "Content-Length: 39999\r\n\r\n");
	say(s, body);
	op = sim_find(io, IO_CONNECT, NULL);
	g_assert_nonnull(op);
	sim_finish(io, op, 0);
	sim_run(io);
	for (n = 0; n < 60; n++) {
		struct io_op *send = sim_find(io, IO_SEND, op->sock);

		g_assert_nonnull(send);
		sim_send(io, send, 100);
		sim_run(io);
		sim_advance_ms(io, OVERDUE_LOOK_MS);
		g_assert_cmpuint(overdue(), ==, 0);
	}
	g_assert_cmpuint(w->nconns, ==, 1);
	for (n = 0; n < 10; n++)
		sim_advance_ms(io, OVERDUE_LOOK_MS);
	takes(s, "504");
	g_assert_cmpuint(overdue(), ==, 0);
}
