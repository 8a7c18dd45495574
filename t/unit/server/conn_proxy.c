/* t/unit/server/conn_proxy.c -- a proxied request event by event: framing, bodies, failures. */
#include "t/unit/server/simapp.h"

#define CHUNKED "POST /app HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"

#define G     GET("/app")
#define HEAD  "HEAD /app HTTP/1.1\r\n" HOST "\r\n"
#define OLD   "GET /app HTTP/1.0\r\n"
#define KEEP  "Connection: keep-alive\r\n"
#define CLOSE "Connection: close\r\n"
#define LEN   "Content-Length: 5\r\n"

TEST("/proxy/framing")
{
	static const struct {
		const char *in, *app, *wants, *lacks, *end;
		bool closes;
	} t[] = {
		{ G, "A: b\r\n\r\nhello", "Transfer-Encoding: chunked\r\n", "Content-Length",
		    "\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false },
		{ G, LEN "\r\nhello", LEN, "chunked", "\r\n\r\nhello", false },
		{ G, LEN "\r\nhello, more than that", LEN, "more", "\r\n\r\nhello", false },
		{ OLD "\r\n", "A: b\r\n\r\nhello", CLOSE, "chunked", "\r\n\r\nhello", true },
		{ OLD KEEP "\r\n", "A: b\r\n\r\nhello", CLOSE, "chunked", "\r\n\r\nhello", true },
		{ OLD KEEP "\r\n", LEN "\r\nhello", KEEP, "chunked", "\r\n\r\nhello", false },
		{ HEAD, LEN "\r\nhello", LEN, "hello", "\r\n\r\n", false },
		{ HEAD, "A: b\r\n\r\nhello", "A: b\r\n", "hello", "\r\n\r\n", false },
		{ G, "Status: 204\r\n\r\nhello", "204 No Content", "hello", "\r\n\r\n", false },
		{ G, "Status: 304\r\n" LEN "\r\n", "304 Not Modified", "chunked", "\r\n\r\n",
		    false },
		{ G, "Content-Length: 0\r\n\r\n", "Length: 0\r\n", "chunked", "\r\n\r\n", false },
		{ G, "Connection: upgrade\r\nTransfer-Encoding: gzip\r\nA: b\r\n" LEN "\r\nhello",
		    "A: b\r\n", "gzip", "\r\n\r\nhello", false },
	};

	struct io_sock *s, *b;
	struct text got;
	size_t i, n;

	for (i = 0; i < G_N_ELEMENTS(t); i++) {
		up(APP);
		g_test_message("%zu: %s", i, t[i].app);
		s = client();
		b = asked(s, t[i].in);
		app_ends(b, t[i].app);
		take(s, SIZE_MAX);
		got = sim_sent(io, s);
		n = strlen(t[i].end);
		g_assert_true(heard_has(s, t[i].wants));
		g_assert_false(heard_has(s, t[i].lacks));
		g_assert_cmpmem(got.p + got.n - n, n, t[i].end, n);
		if (!t[i].closes) { /* and the next request is answered after it */
			sim_sent_clear(io, s);
			asks(s, GET("/none"), "404");
		}
		down();
	}
}

/* However the application's bytes are cut. */
TEST("/proxy/app-any-split")
{
	struct io_sock *s, *b;
	struct text all;
	size_t at;

	put_stdout(&said, "Content-Length: 10\r\nA: b\r\n\r\nhello");
	put_stderr(&said, "a warning\n");
	put_stdout(&said, "world");
	put_end(&said, 0);
	all = buf_as_text(&said);
	up(APP);
	for (at = 1; at < all.n; at++) {
		s = client();
		b = asked(s, GET("/app"));
		say_n(b, all.p, at);
		take(s, SIZE_MAX);
		say_n(b, all.p + at, all.n - at);
		take(s, SIZE_MAX);
		g_assert_cmpmem(sim_sent(io, s).p + sim_sent(io, s).n - 14, 14,
		    "\r\n\r\nhelloworld", 14);
		leave(s, 0);
		g_assert_true(is_closed(clients - 1));
	}
	down();
	buf_free(&said);
}

/* The application is asked when the body is there, and nothing is received while a piece is being
 * written. */
UP_TEST("/proxy/body/spooled", APP)
{
	g_autofree char *much = g_malloc0(65536);
	struct io_sock *s = client(), *b;
	uint64_t sent = 0;

	say(s, POST("1000000"));
	while (sent < 1000000) {
		g_assert_null(sim_find(io, IO_CONNECT, NULL));
		if (!listens(s)) {
			g_assert_cmpuint(disk(), !=, 0);
			continue;
		}
		say_n(s, much, 1000000 - sent < 65536 ? 1000000 - sent : 65536);
		sent += 65536;
	}
	g_assert_cmpuint(temps, ==, 1);
	b = app();
	while (take(b, 10000) + disk() != 0)
		;
	g_assert_cmpuint(sim_sent(io, b).n, >, 1000000);
	g_assert_cmpuint(sim_sent(io, b).n, <, 1001000);
	app_ends(b, "Content-Length: 2\r\n\r\nok");
	takes(s, "200");
	g_assert_cmpint(sim_closed(io, FIRST_TEMP), ==, 1);
	asks(s, GET("/none"), "404");
}

/* The reply may begin before the application has read the body; the next request is answered after
 * it. */
UP_TEST("/proxy/body/reply-before-it", APP)
{
	struct io_sock *s = client(), *b;

	say(s, POST("3") "ab");
	g_assert_null(sim_find(io, IO_CONNECT, NULL));
	say(s, "c" GET("/none"));
	b = app();
	app_ends(b, "Status: 403\r\nContent-Length: 2\r\n\r\nno");
	settle(s);
	heard_statuses(s, "403 404");
}

/* Every op on the way of an upload or a kept reply fails once, or its client leaves while it is
 * under way. */
TEST("/proxy/body/disk-fails")
{
	static const struct {
		int kind;
		int err;
		const char *status;
	} t[] = {
		{ SIM_TEMP, -EACCES, "500" },
		{ SIM_TEMP, -ENOSPC, "507" },
		{ SIM_TEMP, -EMFILE, "503" },
		{ SIM_TEMP, -EAGAIN, "503" },
		{ IO_WRITE, -ENOSPC, "507" },
		{ IO_WRITE, -EIO, "500" },
		{ SIM_TEMP, 0, NULL },
		{ IO_WRITE, 0, NULL },
	};
	g_autofree char *much = g_malloc0(65536);
	struct io_sock *s;
	struct io_op *op;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(t); i++) {
		up(APP);
		s = client();
		say(s, POST("1000000"));
		while ((op = sim_find(io, t[i].kind, NULL)) == NULL)
			if (listens(s))
				say_n(s, much, 65536);
			else
				g_assert_cmpuint(disk(), !=, 0);
		if (t[i].status == NULL) {
			stop_last();
			g_assert_true(is_closed(0));
		} else {
			sim_finish(io, op, t[i].err);
			sim_run(io);
			takes(s, t[i].status);
		}
		down();
	}
}

/* 1000 bytes, to both. */
static void
add_lines(GString *in, GString *body, unsigned *n)
{
	unsigned i;

	for (i = 0; i < 125; i++, (*n)++) {
		g_string_append_printf(in, "%07u\n", *n);
		g_string_append_printf(body, "%07u\n", *n);
	}
}

/* Chunks come during a write: the bytes that it reads stay where they are.  The first write, of
 * 66 chunks, leaves a buffer that is full with them, so the second one begins just before it
 * grows. */
UP_TEST("/proxy/body/chunks-during-writes",
    "$HTTP[\"url\"] =~ \"^/app\" { proxy-core.protocol = \"scgi\"\n"
    "proxy-core.backends = ( \"10.0.0.1:80\" ) }\n")
{
	static const unsigned chunks[] = { 33, 30, 3, 65, 60, 10 };
	GString *body = g_string_new(NULL), *in = g_string_new(CHUNKED);
	struct io_sock *s = client(), *b;
	unsigned i, k, n = 0;

	for (i = 0; i < G_N_ELEMENTS(chunks); i++) {
		for (k = 0; k < chunks[i]; k++) {
			if (n == 0 || i != 0)
				g_string_append_printf(in, "%x\r\n", i == 0 ? 33000 : 1000);
			add_lines(in, body, &n);
			if (i != 0 || k == 32)
				g_string_append(in, "\r\n");
		}
		while (!listens(s))
			g_assert_cmpuint(disk(), !=, 0);
		say_n(s, in->str, in->len);
		g_string_set_size(in, 0);
	}
	say(s, "0\r\n\r\n");
	b = app();
	settle(b);
	g_assert_nonnull(memmem(sim_sent(io, b).p, sim_sent(io, b).n, body->str, body->len));
	say(b, "Status: 200\r\nContent-Length: 2\r\n\r\nok");
	takes(s, "200");
	g_string_free(body, TRUE);
	g_string_free(in, TRUE);
}

/* A chunked body is collected; the requests after it are requests, and wait for the disk like
 * others. */
TEST("/proxy/body/chunked-then-cold")
{
	const char *in = CHUNKED "5\r\nhello\r\n0\r\n\r\n" GET("/a") GET("/none") GET("/b");
	struct io_sock *s, *b;
	size_t at, n = strlen(in), body = strlen(CHUNKED "5\r\nhello\r\n0\r\n\r\n");

	for (at = 1; at <= n; at++) {
		up(APP);
		s = client();
		say_n(s, in, at);
		if (at < body) /* else nothing is received before there is an answer */
			say_n(s, in + at, n - at);
		b = app();
		take(b, SIZE_MAX);
		g_assert_true(heard_has(b, "hello"));
		app_ends(b, "Content-Length: 2\r\n\r\nok");
		settle(s);
		if (at >= body && at < n)
			say_n(s, in + at, n - at);
		settle(s);
		heard_statuses(s, "200 200 404 200");
		down();
	}
}

/* What one request left in memory must not eat the body of the next. */
UP_TEST("/proxy/body/chunked-then-expect", APP)
{
	struct io_sock *s = client(), *b = asked(s, CHUNKED "5\r\nhello\r\n0\r\n\r\n");

	app_ends(b, "Content-Length: 2\r\n\r\nok");
	takes(s, "200");
	sim_sent_clear(io, b);
	say(s, "POST /app HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
	take(s, SIZE_MAX);
	heard_is(s, "HTTP/1.1 100 Continue\r\n\r\n");
	say(s, "world");
	take(b, SIZE_MAX);
	g_assert_true(heard_has(b, "world"));
	app_ends(b, "Content-Length: 2\r\n\r\nok");
	takes(s, "200");
}

UP_TEST("/proxy/body/too-large", "server.max-request-size = 1\n" APP)
{
	struct io_sock *s = client();

	say(s, POST("1025"));
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "Connection: close"));
	heard_statuses(s, "413");
	s = client();
	say(s, CHUNKED "1001\r\n");
	while (listens(s) && sim_count(io, IO_SEND) == 0)
		say(s, "0123456789abcdef");
	takes(s, "413");
	g_assert_null(sim_find(io, IO_CONNECT, NULL));
}

UP_TEST("/proxy/app-dies", APP)
{
	struct io_sock *s = client(), *b = asked(s, GET("/app") GET("/none"));

	leave(b, 0);
	sim_advance_ms(io, 2);
	settle(s);
	heard_statuses(s, "502 404");
	b = asked(s, GET("/app"));
	app_says(b, "A: b\r\n\r\nhello");
	take(s, SIZE_MAX);
	leave(b, -ECONNRESET);
	take(s, SIZE_MAX);
	leave(s, 0); /* lingers: what was sent is not lost */
	g_assert_true(is_closed(0));
	g_assert_true(heard_has(s, "5\r\nhello\r\n"));
	g_assert_false(heard_has(s, "\r\n0\r\n")); /* so that the client can detect it */
	s = client();
	say(s, GET("/app"));
	sim_finish(io, sim_find(io, IO_CONNECT, NULL), -ECONNREFUSED);
	sim_advance_ms(io, 2);
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "Retry-After: "));
	heard_statuses(s, "503");
}
