/* t/unit/server/conn_proxy.c -- a client, an application and what lies between them, event by event. */
#include "t/unit/server/simworker.h"
#include "t/unit/proxy-core/proxy_test.h"

#define APP                                                                                        \
	"$HTTP[\"url\"] =~ \"^/app\" { proxy-core.protocol = \"fastcgi\"\n"                        \
	"proxy-core.backends = ( \"10.0.0.1:80\" )\nproxy-core.max-pool-size = 2\n"                \
	"proxy-core.max-keep-alive-requests = 100\nproxy-core.allow-x-sendfile = \"enable\" }\n"
#define POST(length) "POST /app HTTP/1.1\r\n" HOST "Content-Length: " length "\r\n\r\n"
#define CHUNKED "POST /app HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"

static struct buf said;

/* The application's socket: kept from the last request, or connected now. */
static struct io_sock *
app(void)
{
	struct io_op *op = sim_find(io, IO_CONNECT, NULL);
	struct io_sock *s;

	if (op == NULL) {
		op = sim_find(io, IO_SEND, NULL);
		g_assert_nonnull(op);
		return (op->sock);
	}
	s = op->sock;
	sim_sent_clear(io, s);
	sim_finish(io, op, 0);
	sim_run(io);
	return (s);
}

static void
app_flush(struct io_sock *b)
{
	say_n(b, said.p, said.n);
	buf_free(&said);
}

static void
app_says(struct io_sock *b, const char *out)
{
	put_stdout(&said, out);
	app_flush(b);
}

static void
app_ends(struct io_sock *b, const char *out)
{
	if (*out != '\0')
		put_stdout(&said, out);
	put_end(&said, 0);
	app_flush(b);
}

static void
app_sends(struct io_sock *b, size_t n)
{
	char *p = g_malloc(n);
	size_t at, len;

	memset(p, 'z', n);
	for (at = 0; at < n; at += len) {
		len = n - at < 65535 ? n - at : 65535;
		record(&said, 1, 6, 1, (struct text){p + at, len}, 0);
	}
	g_free(p);
	app_flush(b);
}

/* ---------------------------------------------------------------- framing */

static void
test_framing(void)
{
	static const struct {
		const char *in, *app, *wants, *lacks, *end;
		bool closes;
	} t[] = {
		{GET("/app"), "Content-Type: a/b\r\n\r\nhello", "Transfer-Encoding: chunked\r\n", "Content-Length", "\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false},
		{GET("/app"), "Content-Length: 5\r\n\r\nhello", "Content-Length: 5\r\n", "chunked", "\r\n\r\nhello", false},
		{GET("/app"), "Content-Length: 5\r\n\r\nhello, more than that", "Content-Length: 5\r\n", "more", "\r\n\r\nhello", false},
		{"GET /app HTTP/1.0\r\n\r\n", "A: b\r\n\r\nhello", "Connection: close\r\n", "chunked", "\r\n\r\nhello", true},
		{"GET /app HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "A: b\r\n\r\nhello", "Connection: close\r\n", "chunked", "\r\n\r\nhello", true},
		{"GET /app HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "Content-Length: 5\r\n\r\nhello", "Connection: keep-alive\r\n", "chunked", "\r\n\r\nhello", false},
		{"HEAD /app HTTP/1.1\r\n" HOST "\r\n", "Content-Length: 5\r\n\r\nhello", "Content-Length: 5\r\n", "hello", "\r\n\r\n", false},
		{"HEAD /app HTTP/1.1\r\n" HOST "\r\n", "A: b\r\n\r\nhello", "A: b\r\n", "hello", "\r\n\r\n", false},
		{GET("/app"), "Status: 204\r\n\r\nhello", "204 No Content", "hello", "\r\n\r\n", false},
		{GET("/app"), "Status: 304\r\nContent-Length: 7\r\n\r\n", "304 Not Modified", "chunked", "\r\n\r\n", false},
		{GET("/app"), "Content-Length: 0\r\n\r\n", "Content-Length: 0\r\n", "chunked", "\r\n\r\n", false},
		{GET("/app"), "Connection: upgrade\r\nTransfer-Encoding: gzip\r\nA: b\r\nContent-Length: 1\r\n\r\nx", "A: b\r\n", "gzip", "\r\n\r\nx", false},
	};
	struct io_sock *s, *b;
	struct text got;
	size_t i, n;

	for (i = 0; i < G_N_ELEMENTS(t); i++) {
		up(APP);
		g_test_message("%zu: %s", i, t[i].app);
		s = client();
		say(s, t[i].in);
		b = app();
		take(b, SIZE_MAX);
		app_ends(b, t[i].app);
		take(s, SIZE_MAX);
		got = sim_sent(io, s);
		n = strlen(t[i].end);
		g_assert_true(heard_has(s, t[i].wants));
		g_assert_false(heard_has(s, t[i].lacks));
		g_assert_cmpmem(got.p + got.n - n, n, t[i].end, n);
		if (!t[i].closes) { /* and the next is answered behind it */
			sim_sent_clear(io, s);
			say(s, GET("/none"));
			disk();
			take(s, SIZE_MAX);
			heard_statuses(s, "404");
		}
		down();
	}
}

/* However the application's bytes are cut. */
static void
test_app_any_split(void)
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
		say(s, GET("/app"));
		b = app();
		take(b, SIZE_MAX);
		say_n(b, all.p, at);
		take(s, SIZE_MAX);
		say_n(b, all.p + at, all.n - at);
		take(s, SIZE_MAX);
		g_assert_cmpmem(sim_sent(io, s).p + sim_sent(io, s).n - 14, 14, "\r\n\r\nhelloworld", 14);
		leave(s, 0);
		g_assert_true(is_closed(clients - 1));
	}
	down();
	buf_free(&said);
}

/* ---------------------------------------------------------------- request bodies */

static void
test_body_back_pressure(void)
{
	char *much = g_malloc0(65536);
	struct io_sock *s, *b;
	uint64_t sent = 0;
	int i;

	up(APP);
	s = client();
	say(s, POST("1000000"));
	for (i = 0; i < 20 && listens(s); i++, sent += 65536)
		say_n(s, much, 65536);
	g_assert_cmpuint(sent, <=, 4 * 65536); /* the application takes nothing yet, so nothing is received */
	b = app();
	for (i = 0; i < 100 && sent < 1000000; i++) {
		take(b, 10000);
		while (sent < 1000000 && listens(s)) {
			say_n(s, much, 1000000 - sent < 65536 ? 1000000 - sent : 65536);
			sent += 65536;
		}
	}
	take(b, SIZE_MAX);
	g_assert_cmpuint(sim_sent(io, b).n, >, 1000000);
	app_ends(b, "Content-Length: 2\r\n\r\nok");
	take(s, SIZE_MAX);
	heard_statuses(s, "200");
	say(s, GET("/none"));
	disk();
	take(s, SIZE_MAX);
	heard_statuses(s, "404");
	g_free(much);
	down();
}

static void
test_reply_before_body(void)
{
	struct io_sock *s, *b;

	up(APP);
	s = client();
	say(s, POST("1000") "abc");
	b = app();
	take(b, SIZE_MAX);
	g_assert_true(listens(s));
	app_ends(b, "Status: 403\r\nContent-Length: 2\r\n\r\nno");
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "Connection: close\r\n"));
	g_assert_true(heard_has(s, "\r\n\r\nno"));
	heard_statuses(s, "403");
	say(s, GET("/a")); /* the rest of the body, for all we know */
	g_assert_cmpuint(take(s, SIZE_MAX), ==, 0);
	g_assert_null(disk_op());
	sim_advance_ms(io, 4000);
	g_assert_true(is_closed(0));
	down();
}

/* A chunked body is collected; the requests behind it are requests, and wait for the disk like others. */
static void
test_chunked_then_cold(void)
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
		while (take(s, SIZE_MAX) + disk() != 0)
			;
		if (at >= body && at < n)
			say_n(s, in + at, n - at);
		while (take(s, SIZE_MAX) + disk() != 0)
			;
		heard_statuses(s, "200 200 404 200");
		down();
	}
}

/* What one request left in memory must not eat the body of the next. */
static void
test_chunked_then_expect(void)
{
	struct io_sock *s, *b;

	up(APP);
	s = client();
	say(s, CHUNKED "5\r\nhello\r\n0\r\n\r\n");
	b = app();
	take(b, SIZE_MAX);
	app_ends(b, "Content-Length: 2\r\n\r\nok");
	take(s, SIZE_MAX);
	heard_statuses(s, "200");
	sim_sent_clear(io, b);
	say(s, "POST /app HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
	take(s, SIZE_MAX);
	heard_is(s, "HTTP/1.1 100 Continue\r\n\r\n");
	say(s, "world");
	take(b, SIZE_MAX);
	g_assert_true(heard_has(b, "world"));
	app_ends(b, "Content-Length: 2\r\n\r\nok");
	take(s, SIZE_MAX);
	heard_statuses(s, "200");
	down();
}

static void
test_body_too_large(void)
{
	struct io_sock *s;

	up("server.max-request-size = 1\n" APP);
	s = client();
	say(s, POST("1025"));
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "Connection: close"));
	heard_statuses(s, "413");
	s = client();
	say(s, CHUNKED "1001\r\n");
	while (listens(s) && sim_count(io, IO_SEND) == 0)
		say(s, "0123456789abcdef");
	take(s, SIZE_MAX);
	heard_statuses(s, "413");
	g_assert_null(sim_find(io, IO_CONNECT, NULL));
	down();
}

/* ---------------------------------------------------------------- somebody leaves */

static void
test_app_dies(void)
{
	struct io_sock *s, *b;

	up(APP);
	s = client();
	say(s, GET("/app") GET("/none"));
	b = app();
	take(b, SIZE_MAX);
	leave(b, 0);
	sim_advance_ms(io, 2);
	while (take(s, SIZE_MAX) + disk() != 0)
		;
	heard_statuses(s, "502 404");
	say(s, GET("/app"));
	b = app();
	take(b, SIZE_MAX);
	app_says(b, "A: b\r\n\r\nhello");
	take(s, SIZE_MAX);
	leave(b, -ECONNRESET);
	take(s, SIZE_MAX);
	g_assert_true(is_closed(0));
	g_assert_true(heard_has(s, "5\r\nhello\r\n"));
	g_assert_false(heard_has(s, "\r\n0\r\n")); /* so that the client can tell */
	s = client();
	say(s, GET("/app"));
	sim_finish(io, sim_find(io, IO_CONNECT, NULL), -ECONNREFUSED);
	sim_advance_ms(io, 2);
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "Retry-After: "));
	heard_statuses(s, "503");
	down();
}

enum place { CONNECTING, ASKING, WAITING, BODY, STREAMING, PLACES };

static struct io_sock *
client_at(enum place place, struct io_sock **b)
{
	struct io_sock *s = client();

	say(s, place == BODY ? POST("100000") "abc" : GET("/app"));
	*b = NULL;
	if (place == CONNECTING)
		return (s);
	*b = app();
	if (place == ASKING)
		return (s);
	take(*b, SIZE_MAX);
	if (place == STREAMING)
		app_says(*b, "A: b\r\n\r\nhello");
	return (s);
}

static void
test_client_leaves(void)
{
	struct io_sock *s, *b;
	int fd;

	up(APP);
	s = client_at(STREAMING, &b);
	fd = b->fd;
	sim_finish(io, sim_find(io, IO_SEND, s), -EPIPE);
	sim_run(io);
	g_assert_true(is_closed(0));
	g_assert_cmpuint(sim_closed(io, fd), ==, 1); /* what it still says is for nobody */
	s = client_at(BODY, &b);
	fd = b->fd;
	leave(s, 0);
	g_assert_true(is_closed(1));
	g_assert_cmpuint(sim_closed(io, fd), ==, 1);
	s = client_at(BODY, &b);
	fd = b->fd;
	sim_advance_ms(io, 60000); /* says nothing for a minute */
	take(s, SIZE_MAX);
	sim_advance_ms(io, 4000);
	g_assert_true(is_closed(2));
	g_assert_cmpuint(sim_closed(io, fd), ==, 1);
	down();
}

static void
test_stop_in_every_state(void)
{
	struct io_sock *b;
	int place;

	for (place = 0; place < PLACES; place++) {
		up(APP);
		client_at((enum place)place, &b);
		conn_stop(last_conn());
		sim_run(io);
		g_assert_true(is_closed(0));
		down();
		up(APP);
		client_at((enum place)place, &b);
		down();
	}
}

/* ---------------------------------------------------------------- slow clients */

static void
test_slow_client_pauses(void)
{
	struct io_sock *s, *b;
	int i;

	up(APP);
	s = client();
	say(s, GET("/app"));
	b = app();
	take(b, SIZE_MAX);
	app_says(b, "Content-Length: 2000000\r\n\r\n");
	for (i = 0; i < 20 && listens(b); i++)
		app_sends(b, 100000);
	g_assert_cmpint(i, <, 6); /* the client takes nothing, so nothing is received */
	for (; i < 20; i++) {
		take(s, SIZE_MAX);
		sim_advance_ms(io, 2);
		take(s, SIZE_MAX);
		g_assert_true(listens(b));
		app_sends(b, 100000);
	}
	put_end(&said, 0);
	app_flush(b);
	take(s, SIZE_MAX);
	g_assert_cmpuint(sim_sent(io, s).n, >, 2000000);
	g_assert_cmpuint(sim_sent(io, s).n, <, 2000400);
	sim_sent_clear(io, s);
	say(s, GET("/none"));
	disk();
	take(s, SIZE_MAX);
	heard_statuses(s, "404");
	down();
}

/* ---------------------------------------------------------------- X-Sendfile */

/* What the application answers, with %s the document root; then the disk does its part. */
static struct io_sock *
send_file(const char *in, const char *fmt)
{
	struct io_sock *s = client(), *b;
	char *head = g_strdup_printf(fmt, dir);

	say(s, in);
	b = app();
	take(b, SIZE_MAX);
	app_ends(b, head);
	g_free(head);
	while (disk() + take(s, SIZE_MAX) != 0)
		;
	return (s);
}

static void
test_send_file(void)
{
	struct io_sock *s;

	up(APP);
	s = send_file(GET("/app") GET("/b"), "X-LIGHTTPD-send-file: %s/a\r\nSet-Cookie: c\r\nContent-Length: 77\r\n\r\nignored");
	g_assert_true(heard_has(s, "\r\n\r\nAAAA"));
	g_assert_true(heard_has(s, "Set-Cookie: c\r\n"));
	g_assert_true(heard_has(s, "Content-Length: 4\r\n"));
	g_assert_false(heard_has(s, "end-file"));
	heard_statuses(s, "200 200");
	s = send_file(GET("/app"), "X-Sendfile: %s/a\r\n\r\n"); /* hot now */
	heard_statuses(s, "200");
	s = send_file("HEAD /app HTTP/1.1\r\n" HOST "\r\n", "X-Accel-Redirect: /b\r\nX-Ignored: %s\r\n\r\n");
	g_assert_true(heard_has(s, "Content-Length: 6\r\n"));
	g_assert_false(heard_has(s, "BBB"));
	s = send_file(GET("/app"), "X-Sendfile: %s/dir\r\n\r\n");
	heard_statuses(s, "403");
	s = send_file(GET("/app"), "X-Sendfile: %s/none\r\n\r\n");
	heard_statuses(s, "404");
	down();
}

static void
test_send_file_refused(void)
{
	static const char *const heads[] = {
		"X-Sendfile: /etc/passwd\r\nA: %s\r\n\r\n", "X-Sendfile: %s-not/a\r\n\r\n", "X-Sendfile: %s/%%00a\r\n\r\n",
		"X-Sendfile: %s/%%zz\r\n\r\n", "X-Sendfile: a\r\nA: %s\r\n\r\n", "X-Accel-Redirect: /../a%%00\r\nA: %s\r\n\r\n",
	};
	struct io_sock *s;
	size_t i;

	up(APP);
	for (i = 0; i < G_N_ELEMENTS(heads); i++) {
		s = send_file(GET("/app") GET("/b"), heads[i]);
		heard_statuses(s, "403 200");
	}
	g_assert_nonnull(strstr(logged->str, "ev=sendfile.refused"));
	down();
}

/* Its body came only in part, its reply is a file: the file goes out, then the connection. */
static void
test_send_file_before_body(void)
{
	struct io_sock *s;

	up(APP);
	s = send_file(POST("1000") "abc", "X-Sendfile: %s/a\r\n\r\n");
	g_assert_true(heard_has(s, "Connection: close\r\n"));
	g_assert_true(heard_has(s, "\r\n\r\nAAAA"));
	say(s, "more of it");
	sim_advance_ms(io, 4000);
	g_assert_true(is_closed(0));
	down();
}

/* As many headers as the application likes; more than fit in one piece of memory. */
static void
test_send_file_many_headers(void)
{
	GString *head = g_string_new("X-Sendfile: %s/a\r\n");
	struct io_sock *s;
	int i;

	up(APP);
	for (i = 0; i < 60; i++)
		g_string_append_printf(head, "Set-Cookie: %0500d\r\n", i);
	g_string_append(head, "\r\n");
	s = send_file(GET("/app"), head->str);
	g_assert_true(heard_has(s, "\r\n\r\nAAAA"));
	g_assert_true(heard_has(s, "0059\r\n"));
	heard_statuses(s, "200");
	s = send_file("GET /app HTTP/1.1\r\n" HOST "If-None-Match: *\r\n\r\n", head->str);
	g_assert_true(heard_has(s, "0059\r\n"));
	heard_statuses(s, "304");
	g_string_free(head, TRUE);
	down();
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/proxy/framing", test_framing);
	g_test_add_func("/proxy/app-any-split", test_app_any_split);
	g_test_add_func("/proxy/body/back-pressure", test_body_back_pressure);
	g_test_add_func("/proxy/body/reply-before-it", test_reply_before_body);
	g_test_add_func("/proxy/body/chunked-then-cold", test_chunked_then_cold);
	g_test_add_func("/proxy/body/chunked-then-expect", test_chunked_then_expect);
	g_test_add_func("/proxy/body/too-large", test_body_too_large);
	g_test_add_func("/proxy/app-dies", test_app_dies);
	g_test_add_func("/proxy/client-leaves", test_client_leaves);
	g_test_add_func("/proxy/stop-in-every-state", test_stop_in_every_state);
	g_test_add_func("/proxy/slow-client-pauses", test_slow_client_pauses);
	g_test_add_func("/proxy/send-file/sends", test_send_file);
	g_test_add_func("/proxy/send-file/refused", test_send_file_refused);
	g_test_add_func("/proxy/send-file/before-body", test_send_file_before_body);
	g_test_add_func("/proxy/send-file/many-headers", test_send_file_many_headers);
	return (g_test_run());
}
