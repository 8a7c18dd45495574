/* t/unit/server/conn_streams.c -- streamed bodies and tunnels event by event. */
#include "server/conn/clients.h"
#include "t/unit/server/simworker.h"

#define CONFIG                                                                       \
	"$HTTP[\"url\"] =~ \"^/up\" { proxy-core.protocol = \"http\"\n"              \
	"proxy-core.backends = ( \"10.0.0.1:80\" )\nproxy-core.max-pool-size = 2\n"  \
	"proxy-core.max-keep-alive-requests = 100\nserver.stream-request-body = 1\n" \
	"proxy-core.upgrade = ( \"websocket\" )\nserver.max-read-idle = 5\n"         \
	"proxy-core.read-timeout = 20\nproxy-core.allow-x-sendfile = \"enable\" }\n"
#define POST(length) "POST /up HTTP/1.1\r\n" HOST "Content-Length: " length "\r\n\r\n"
#define UPGRADE      "GET /up HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
#define SWITCHED     "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
#define OK(n)        "HTTP/1.1 200 OK\r\nContent-Length: " n "\r\n\r\n"

static char much[200000];

/* The application's socket, kept or connected now; the request head is sent. */
static struct io_sock *
app(void)
{
	struct io_op *op = sim_find(io, IO_CONNECT, NULL);
	struct io_sock *b;

	if (op == NULL) {
		b = sim_find(io, IO_SEND, NULL)->sock;
	} else {
		b = op->sock;
		sim_sent_clear(io, b);
		sim_finish(io, op, 0);
		sim_run(io);
	}
	take(b, SIZE_MAX);
	return (b);
}

static struct io_sock *
asked(struct io_sock *s, const char *in)
{
	say(s, in);
	return (app());
}

/* What the application received after the head of the request. */
static size_t
app_got(struct io_sock *b)
{
	struct text t = sim_sent(io, b);
	const char *end = memmem(t.p, t.n, "\r\n\r\n", 4);

	g_assert_nonnull(end);
	return (t.n - (size_t)(end + 4 - t.p));
}

UP_TEST("/streams/an application without room stops the client", CONFIG)
{
	struct io_sock *s = client(), *b = asked(s, POST("200000"));

	say_n(s, much, 65536); /* on its way */
	say_n(s, much, 65536); /* waits for that */
	g_assert_false(listens(s));
	g_assert_nonnull(sim_find(io, SIM_HANGUP, s));
	take(b, SIZE_MAX);
	g_assert_cmpuint(app_got(b), ==, 131072);
	g_assert_true(listens(s)); /* the watch has ended, and the body goes on */
	g_assert_null(sim_find(io, SIM_HANGUP, s));
	say_n(s, much, 200000 - 131072);
	take(b, SIZE_MAX);
	g_assert_cmpuint(app_got(b), ==, 200000);
	g_assert_nonnull(sim_find(io, SIM_HANGUP, s));
	say(b, OK("2") "ok");
	takes(s, "200");
	g_assert_true(listens(s));
}

UP_TEST("/streams/a client leaves while its body is paused", CONFIG)
{
	struct io_sock *s = client(), *b = asked(s, POST("200000"));

	say_n(s, much, 65536);
	say_n(s, much, 65536);
	hangs_up(s);
	g_assert_true(is_closed(0));
	g_assert_null(sim_find(io, IO_RECV, b)); /* the application's socket is closed, too */
	g_assert_cmpuint(w->base.counts.conn->client_gone, ==, 1);
	s = client();
	b = asked(s, POST("10") "first");
	leave(s, 0); /* the end of its stream in the middle of the body */
	g_assert_true(is_closed(1));
	g_assert_null(sim_find(io, IO_RECV, b));
}

/* The reply is complete first: the rest is dropped beside it and after it. */
UP_TEST("/streams/the reply is complete first", CONFIG)
{
	struct io_sock *s = client(), *b = asked(s, POST("100000"));

	say(b, OK("5") "early");
	say_n(s, much, 50000); /* the reply is not sent yet */
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "early"));
	heard_statuses(s, "200");
	say_n(s, much, 49999);
	asks(s, "x" GET("/none"), "404");
	g_assert_cmpuint(w->nconns, ==, 1);
	b = asked(s, POST("2000000"));
	say(b, OK("5") "early");
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "Connection: close"));
	say_n(s, much, 65536); /* lingers */
	leave(s, 0);
	g_assert_true(is_closed(0));
}

/* A client that sends on without reading is not read for ever. */
UP_TEST("/streams/the rest is dropped in bounds", CONFIG)
{
	struct io_sock *s = client(), *b = asked(s, POST("9000000"));
	unsigned n;

	say(b, OK("5") "early");
	for (n = 0; n < 40 && listens(s); n++)
		say_n(s, much, 65536);
	g_assert_cmpuint(n, ==, 17); /* a megabyte is the limit */
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "early"));
	g_assert_true(listens(s)); /* lingers */
	s = client();
	b = asked(s, POST("100000"));
	say(b, OK("5") "early");
	leave(s, 0); /* its body will never be complete, but it may read */
	g_assert_false(listens(s));
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "early"));
	g_assert_true(is_closed(1));
}

UP_TEST("/streams/a client that is too slow", CONFIG)
{
	struct io_sock *s = client(), *b = asked(s, POST("100000") "begun");

	sim_advance_ms(io, 6000);
	takes(s, "408");
	g_assert_null(sim_find(io, IO_RECV, b));
	s = client();
	b = asked(s, POST("100000") "begun");
	say(b, OK("5") "ea");
	take(s, SIZE_MAX);
	sim_advance_ms(io, 6000); /* another head would be a second reply */
	heard_statuses(s, "200");
	leave(s, 0); /* lingers */
	g_assert_true(is_closed(1));
}

/* A file answers, and the body was not read. */
UP_TEST("/streams/a file answers before the body", CONFIG)
{
	struct io_sock *s = client(), *b = asked(s, POST("150000"));
	char *reply;

	say_n(s, much, 65536);
	say_n(s, much, 65536); /* paused: the application has no room */
	reply = g_strdup_printf("HTTP/1.1 200 OK\r\nX-Sendfile: %s/a\r\n\r\n", dir);
	say(b, reply);
	g_free(reply);
	disk();
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "AAAA"));
	sim_sent_clear(io, s);
	say_n(s, much, 150000 - 131072);
	asks(s, GET("/none"), "404");
}

/* A 1xx that is still on its way when the reply comes. */
UP_TEST("/streams/a 1xx that is sent slowly", CONFIG)
{
	struct io_sock *s = client(), *b = asked(s, GET("/up"));
	char *reply;

	reply = g_strdup_printf("HTTP/1.1 103 x\r\nLink: y\r\n\r\nHTTP/1.1 200 OK\r\nX-Sendfile: "
				"%s/a\r\nContent-Length: 0\r\n\r\n",
	    dir);
	say(b, reply);
	g_free(reply);
	disk();
	take(s, 10);
	g_assert_true(heard_has(s, "AAAA"));
	heard_statuses(s, "103 200");
	g_assert_true(listens(s));
	b = asked(s, GET("/up"));
	say(b, "HTTP/1.1 103 x\r\nLink: y\r\n\r\n");
	take(s, SIZE_MAX);
	hangs_up(s); /* watched again after the 1xx */
	g_assert_true(is_closed(0));
	g_assert_null(sim_find(io, IO_RECV, b));
}

#define CHUNKED "POST /up HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"

/* The fault of the body is found while the handler starts, and another handler starts then. */
UP_TEST("/streams/a malformed body under an error handler",
    CONFIG "server.error-handler = \"/a\"\n")
{
	struct io_sock *s = client();

	say(s, CHUNKED "ZZ\r\n");
	disk();
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "AAAA"));
	g_assert_true(heard_has(s, "Connection: close"));
	heard_statuses(s, "400");
	s = client();
	say(s, CHUNKED);
	say(s, "ZZ\r\n"); /* the error page is hot, and the handler has started */
	takes(s, "400");
	s = client();
	asks(s, GET("/b") CHUNKED "ZZ\r\n" GET("/b"), "200 400");
	g_assert_cmpuint(w->base.counts.conn->connection_bugs, ==, 0);
}

/* The watch of a look-up ends when the reply is sent.  It must not see the body of the next
 * request. */
UP_TEST("/streams/a body after a cold file", CONFIG)
{
	struct io_sock *s = client(), *b;

	asks(s, GET("/a") POST("5") "hello", "200");
	b = app();
	g_assert_cmpuint(app_got(b), ==, 5);
	sim_sent_clear(io, b);
	say(b, OK("2") "ok");
	takes(s, "200");
	asks(s, GET("/b") CHUNKED "5\r\nhello\r\n", "200");
	b = asked(s, "0\r\n\r\n" GET("/c"));
	g_assert_cmpuint(app_got(b), ==, 15);
	say(b, OK("2") "ok");
	settle(s);
	heard_statuses(s, "200 200");
}

/* A body after a reply that comes late: the reply of an application, and a file that it names. */
UP_TEST("/streams/a body behind an application", CONFIG)
{
	struct io_sock *s = client(), *b = asked(s, GET("/up") POST("5") "hello");
	char *reply;

	reply = g_strdup_printf("HTTP/1.1 200 OK\r\nX-Sendfile: %s/a\r\nContent-Length: 0\r\n\r\n",
	    dir);
	say(b, reply);
	g_free(reply);
	sim_sent_clear(io, b);
	disk();
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "AAAA"));
	b = app();
	g_assert_cmpuint(app_got(b), ==, 5);
	say(b, OK("2") "ok");
	takes(s, "200 200");
}

/* A reply that breaks off costs nothing that was sent before it. */
UP_TEST("/streams/a broken reply lingers", CONFIG)
{
	struct io_sock *s = client(), *b = asked(s, GET("/up") GET("/a"));

	say(b, OK("10") "part");
	leave(b, 0);
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "part"));
	heard_statuses(s, "200");
	g_assert_true(listens(s)); /* and the second request is dropped */
	leave(s, 0);
	g_assert_true(is_closed(0));
}

/* ---------------------------------------------------------------- tunnels */

static struct io_sock *
tunnel(struct io_sock **s)
{
	struct io_sock *b;

	*s = client();
	b = asked(*s, UPGRADE "first");
	g_assert_cmpuint(app_got(b), ==, 0); /* not before the switch */
	say(b, SWITCHED "second");
	take(*s, SIZE_MAX);
	take(b, SIZE_MAX);
	g_assert_cmpuint(app_got(b), ==, 5);
	g_assert_true(heard_has(*s, "\r\n\r\nsecond"));
	return (b);
}

UP_TEST("/tunnel/bytes, and silence", CONFIG)
{
	struct io_sock *s, *b;

	b = tunnel(&s);
	sim_advance_ms(io, 15000);
	say(s, "more"); /* no rate is asked of it */
	take(b, SIZE_MAX);
	g_assert_cmpuint(app_got(b), ==, 9);
	sim_advance_ms(io, 15000);
	g_assert_cmpuint(w->nconns, ==, 1);
	sim_advance_ms(io, 15000); /* longer than proxy-core.read-timeout after the last byte */
	take(s, SIZE_MAX);
	g_assert_null(sim_find(io, IO_RECV, b));
	sim_advance_ms(io, 3000); /* lingers, but not as long as for a body */
	g_assert_true(is_closed(0));
	g_assert_cmpuint(w->base.counts.proxy->proxy_tunnels, ==, 1);
}

UP_TEST("/tunnel/both sides are full", CONFIG)
{
	struct io_sock *s, *b;

	b = tunnel(&s);
	say_n(s, much, 65536);
	say_n(s, much, 65536);
	g_assert_false(listens(s));
	say_n(b, much, 65536);
	say_n(b, much, 65536);
	g_assert_false(listens(b));
	take(b, SIZE_MAX);
	take(s, SIZE_MAX);
	g_assert_true(listens(s));
	g_assert_true(listens(b));
	say_n(s, much, 65536);
	say_n(s, much, 65536);
	hangs_up(s);
	g_assert_true(is_closed(0));
	g_assert_null(sim_find(io, IO_RECV, b));
}

UP_TEST("/tunnel/each side ends alone", CONFIG)
{
	struct io_sock *s, *b;

	b = tunnel(&s);
	leave(s, 0); /* its direction */
	say(b, "third");
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "third"));
	leave(b, 0);
	g_assert_true(w->nconns == 1); /* lingers */
	leave(s, 0);
	g_assert_true(is_closed(0));
	b = tunnel(&s);
	leave(b, 0);
	say(s, "third");
	take(b, SIZE_MAX);
	g_assert_cmpuint(app_got(b), ==, 10);
	leave(s, 0);
	leave(s, 0); /* lingers */
	g_assert_true(is_closed(1));
}

TEST("/tunnel/each side is cut")
{
	struct io_sock *s, *b;

	up(CONFIG);
	tunnel(&s);
	leave(s, -ECONNRESET);
	g_assert_true(is_closed(0));
	b = tunnel(&s);
	leave(b, -ECONNRESET);
	g_assert_true(is_closed(1));
	tunnel(&s);
	down(); /* TERM ends a tunnel at once */
}

/* The application answers without switching: the client has no tunnel, and may ask for others. */
TEST("/tunnel/the application does not switch")
{
	struct clients *all = clients_new();
	struct io_sock *s, *b;
	unsigned n;

	up("proxy-core.max-tunnels-per-address = 1\n" CONFIG);
	w->base.conf.tunnels = all;
	for (n = 0; n < 2; n++) {
		s = client();
		b = asked(s, UPGRADE);
		sim_sent_clear(io, b);
		say(b, OK("2") "ok");
		takes(s, "200");
		g_assert_true(listens(s));
	}
	tunnel(&s);
	s = client();
	say(s, UPGRADE);
	takes(s, "429");
	down();
	clients_free(all); /* asserts that nobody is counted any more */
}
