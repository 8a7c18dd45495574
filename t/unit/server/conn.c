/* t/unit/server/conn.c -- requests in, replies out: any split, short counts, one send for many. */
#include "io/log/logfile.h"
#include "t/unit/server/simworker.h"

/* ---------------------------------------------------------------- any split gives one answer */

#define POST    "POST /a HTTP/1.1\r\n" HOST
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

static const struct script {
	const char *statuses;
	bool ends; /* the server closes */
	const char *in;
} scripts[] = {
	{ "200", false, GET("/a") },
	{ "200 200 404 200", false, GET("/a") GET("/b") GET("/none") GET("/c") },
	{ "200 200", false, "HEAD /a HTTP/1.1\r\n" HOST "\r\n" GET("/b") },
	{ "200 200", false, "\r\n\r\n" GET("/a") "\r\n" GET("/b") },
	{ "301 200 404", false, GET("/dir") GET("/dir/") GET("/a/") },
	{ "200 405", false,
	    "OPTIONS * HTTP/1.1\r\n" HOST "\r\nDELETE /a HTTP/1.1\r\n" HOST "\r\n" },
	{ "200", true, "GET /a HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n" GET("/b") },
	{ "200", true, "GET /a HTTP/1.0\r\n\r\n" GET("/b") },
	{ "200 200", false, "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" GET("/b") },
	{ "405 200", false, POST "Content-Length: 23\r\n\r\nGET /secret HTTP/1.1\r\n\n" GET("/b") },
	{ "405 200", false,
	    CHUNKED "5;x\r\nGET /\r\nA\r\n0123456789\r\n0\r\nT:\r\n\r\n" GET("/b") },
	{ "200 405 200", false, GET("/a") POST "Content-Length: 3\r\n\r\nabc" GET("/b") },
	{ "200 400", true, GET("/a") CHUNKED "3 \r\nabc\n0\r\n\r\n" GET("/b") },
	{ "405", true, POST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc" GET("/b") },
	{ "200 400", true, GET("/a") "GET /b HTTP/1.1\r\nBad Header: x\r\n" HOST "\r\n" GET("/c") },
	{ "200 505", true, GET("/a") "GET /b HTTP/2.7\r\n\r\n" GET("/c") },
	{ "200 400", true, GET("/a") POST "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab" },
	{ "200 400", true, GET("/a") "GET /%zz HTTP/1.1\r\n" HOST "\r\n" GET("/c") },
	{ "400", true, GET("/../../etc/passwd") GET("/a") },
};

/* All bytes of in, as far as the connection listens; disk and socket do at once what they are asked
 * to. */
static void
feed(struct io_sock *s, const char *in, size_t n, size_t piece)
{
	size_t len;

	while (n != 0 && !is_closed(clients - 1)) {
		if (listens(s)) {
			len = piece < n ? piece : n;
			say_n(s, in, len);
			in += len;
			n -= len;
		} else if (disk() + take(s, SIZE_MAX) == 0) {
			break;
		}
	}
	settle(s);
}

static void
check_script(const struct script *sc, GString *want, size_t first, size_t piece)
{
	struct io_sock *s = client();
	struct text got;

	feed(s, sc->in, first, first);
	feed(s, sc->in + first, strlen(sc->in) - first, piece);
	got = sim_sent(io, s);
	if (want->len == 0)
		g_string_append_len(want, got.p, (gssize)got.n);
	g_assert_cmpmem(got.p, got.n, want->str, want->len);
	heard_statuses(s, sc->statuses);
	if (!is_closed(clients - 1))
		leave(s, 0);
	g_assert_true(is_closed(clients - 1));
}

TEST("/conn/any-split-gives-one-answer")
{
	size_t i, at, n;
	GString *want;

	for (i = 0; i < G_N_ELEMENTS(scripts); i++) {
		up("");
		n = strlen(scripts[i].in);
		want = g_string_new(NULL);
		g_test_message("script %zu", i);
		check_script(&scripts[i], want, n, n); /* cold */
		check_script(&scripts[i], want, n, n); /* hot */
		check_script(&scripts[i], want, 1, 1);
		for (at = 1; at < n; at++)
			check_script(&scripts[i], want, at, n);
		g_assert_null(strstr(want->str, "secret"));
		g_string_free(want, TRUE);
		g_assert_cmpuint(w->nconns, ==, 0);
		down();
	}
}

/* A client that must go gets Connection: close.  The server lingers until it closes, and runs none
 * of its later requests. */
TEST("/conn/ends-with-linger")
{
	struct io_sock *s;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(scripts); i++) {
		up("");
		s = client();
		feed(s, scripts[i].in, strlen(scripts[i].in), SIZE_MAX);
		g_assert_cmpint(heard_has(s, "Connection: close"), ==, scripts[i].ends);
		sim_sent_clear(io, s);
		g_assert_true(listens(s));
		if (scripts[i].ends) {
			say(s, GET("/a"));
			g_assert_cmpuint(take(s, SIZE_MAX), ==, 0);
			sim_advance_ms(io, 4000);
			g_assert_true(is_closed(0));
		}
		down();
	}
}

/* ---------------------------------------------------------------- pipelining */

static struct server_counters counters_now;

static void
warm(const char *lines)
{
	const char *all = GET("/a") GET("/b") GET("/c") GET("/large");
	struct io_sock *s;

	up(lines);
	s = client();
	feed(s, all, strlen(all), SIZE_MAX);
	stop_last();
	counters_now = *w->base.counters->events;
}

#define WARM_TEST(path) TEST_IN(path, warm(""), down())

WARM_TEST("/conn/batch/is-one-send")
{
	struct io_sock *s = client();

	say(s, GET("/a") GET("/none-before") GET("/a"));
	take(s, SIZE_MAX);
	disk();
	take(s, SIZE_MAX);
	sim_sent_clear(io, s);
	say(s, GET("/a") GET("/b") "HEAD /c HTTP/1.1\r\n" HOST "\r\n");
	takes(s, "200 200 200");
	say(s, GET("/a") GET("/b") GET("/none-before") GET("/c") GET("/b") GET("/c") GET("/a"));
	g_assert_null(disk_op());
	g_assert_cmpuint(take(s, SIZE_MAX), ==, 1);
	heard_statuses(s, "200 200 404 200 200 200 200");
	g_assert_true(listens(s));
}

/* Sixty-four kilobytes are enough for one send; the rest of the batch follows. */
WARM_TEST("/conn/batch/is-bounded")
{
	g_autoptr(GString) many = g_string_new(NULL);
	struct io_sock *s = client();
	unsigned i, sends, replies = 0;
	struct text t;

	for (i = 0; i < 1000; i++)
		g_string_append(many, GET("/a"));
	say_n(s, many->str, many->len);
	g_assert_cmpuint(sim_count(io, IO_SEND), ==, 1);
	sends = take(s, SIZE_MAX);
	t = sim_sent(io, s);
	for (i = 0; i + 15 <= t.n; i++)
		replies += memcmp(t.p + i, "HTTP/1.1 200 OK", 15) == 0;
	g_assert_cmpuint(replies, ==, 1000);
	g_assert_cmpuint(sends, <, 100);
	g_assert_cmpuint(w->base.counts.reply->replies - counters_now.reply.replies, ==, 1000);
	g_assert_cmpuint(w->base.counters->events->hold.stat_misses, ==,
	    counters_now.hold.stat_misses);
}

/* The largest reply in pieces finds room after any batch. */
TEST("/conn/batch/then-many-ranges")
{
	g_autoptr(GString) in = g_string_new(NULL);
	struct io_sock *s;
	struct io_op *op;
	unsigned n, i, parts = 0;

	for (n = 0; n < 30; n++) {
		warm("");
		s = client();
		feed(s, GET("/m"), strlen(GET("/m")), SIZE_MAX);
		sim_sent_clear(io, s);
		g_string_truncate(in, 0);
		for (i = 0; i < n; i++)
			g_string_append(in, GET("/m"));
		g_string_append(in, "GET /large HTTP/1.1\r\n" HOST "Range: bytes=");
		for (i = 0; i < 16; i++)
			g_string_append_printf(in, "%s%u-%u", i ? "," : "", i * 99, i * 99 + 9);
		g_string_append(in, "\r\n\r\n" GET("/a"));
		say_n(s, in->str, in->len);
		while (take(s, SIZE_MAX) != 0)
			for (; (op = sim_find(io, IO_SEND_FILE, s)) != NULL; parts++) {
				sim_finish(io, op, 10);
				sim_run(io);
			}
		g_assert_true(listens(s));
		g_assert_false(heard_has(s, "Connection: close"));
		down();
	}
	g_assert_cmpuint(parts, ==, 30 * 16);
}

WARM_TEST("/conn/batch/hot-before-cold")
{
	struct io_sock *s = client();

	say(s, GET("/a") GET("/b") GET("/dir/index.html") GET("/c"));
	g_assert_cmpuint(take(s, SIZE_MAX), ==, 1); /* earlier replies do not wait for it */
	heard_statuses(s, "200 200");
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1);
	g_assert_false(listens(s));
	disk();
	g_assert_cmpuint(take(s, SIZE_MAX), ==, 1);
	heard_statuses(s, "200 200"); /* and those after come in its send */
}

/* Two connections wait for one cold file; each has requests after it. */
WARM_TEST("/conn/batch/two-wait-for-one")
{
	struct io_sock *a, *b;

	a = client();
	b = client();
	say(a, GET("/dir/index.html") GET("/a"));
	say(b, GET("/dir/index.html") GET("/none"));
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1);
	disk_answers(disk_op());
	sim_run(io);
	disk_answers(disk_op());
	sim_run(io);
	takes(a, "200 200");
	takes(b, "200");
	disk();
	takes(b, "404");
}

/* ---------------------------------------------------------------- sending */

UP_TEST("/conn/send/short-counts", "")
{
	const char *in = GET("/a") GET("/b") GET("/none");
	struct io_sock *s = client();
	GString *want;
	size_t max;

	feed(s, in, strlen(in), SIZE_MAX);
	want = g_string_new_len(sim_sent(io, s).p, (gssize)sim_sent(io, s).n);
	for (max = 1; max < 40; max += 6) {
		s = client();
		say(s, in);
		take(s, max);
		g_assert_cmpmem(sim_sent(io, s).p, sim_sent(io, s).n, want->str, want->len);
	}
	g_string_free(want, TRUE);
}

WARM_TEST("/conn/send/large-file")
{
	struct io_sock *s = client();
	struct io_op *op;
	uint64_t off = 0;

	say(s, GET("/a") GET("/large") GET("/b"));
	op = sim_find(io, IO_SEND, s);
	g_assert_true(op->more);
	takes(s, "200 200");
	while ((op = sim_find(io, IO_SEND_FILE, s)) != NULL) {
		g_assert_cmpuint(op->file.off, ==, off);
		off += op->file.len / 2 + 1;
		sim_finish(io, op, op->file.len / 2 + 1);
		sim_run(io);
	}
	g_assert_cmpuint(off, ==, 1000000);
	takes(s, "200");
}

WARM_TEST("/conn/send/file-shrinks")
{
	struct io_sock *s = client();

	say(s, GET("/large") GET("/b"));
	take(s, SIZE_MAX);
	sim_finish(io, sim_find(io, IO_SEND_FILE, s), 1000);
	sim_run(io);
	sim_finish(io, sim_find(io, IO_SEND_FILE, s), 0);
	sim_run(io);
	g_assert_null(sim_find(io, IO_SEND, s)); /* never padded, never another reply after it */
	leave(s, 0); /* lingers: replies before it may still be on their way */
	g_assert_true(is_closed(clients - 1));
	g_assert_cmpuint(w->base.counts.reply->file_shrunk, ==, 1);
	g_assert_nonnull(strstr(logged->str, "ev=file.shrunk"));
}

/* ---------------------------------------------------------------- what a reply says */

WARM_TEST("/conn/reply/http-1.0")
{
	struct io_sock *s = client();

	say(s, "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "Connection: keep-alive\r\n"));
	sim_sent_clear(io, s);
	say(s, "GET /a HTTP/1.0\r\n\r\n");
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "Connection: close\r\n"));
	g_assert_true(is_closed(1)); /* it said so: nothing to wait for */
}

WARM_TEST("/conn/reply/head")
{
	struct io_sock *s = client();
	struct text t;

	say(s, "HEAD /a HTTP/1.1\r\n" HOST "\r\n");
	take(s, SIZE_MAX);
	t = sim_sent(io, s);
	g_assert_true(heard_has(s, "Content-Length: 4\r\n"));
	g_assert_cmpmem(t.p + t.n - 4, 4, "\r\n\r\n", 4);
	sim_sent_clear(io, s);
	say(s, "HEAD /large HTTP/1.1\r\n" HOST "\r\n");
	take(s, SIZE_MAX);
	g_assert_cmpuint(sim_count(io, IO_SEND_FILE), ==, 0);
	g_assert_true(heard_has(s, "Content-Length: 1000000\r\n"));
}

TEST_IN("/conn/reply/keep-alive-limit", warm("server.max-keep-alive-requests = 5"), down())
{
	struct io_sock *s = client();

	say(s, GET("/a") GET("/a") GET("/a") GET("/b"));
	take(s, SIZE_MAX);
	g_assert_false(heard_has(s, "Connection: close"));
	sim_sent_clear(io, s);
	say(s, GET("/a") GET("/a") GET("/a"));
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "Connection: close"));
	heard_statuses(s, "200"); /* the fifth is the last */
	leave(s, 0);
	g_assert_true(is_closed(1));
}

/* A long path, then nonsense: the log gets the line of that, and nothing of what was before. */
UP_TEST("/conn/refused/forgets", "server.max-write-idle = 1")
{
	g_autoptr(GString) in = g_string_new("GET /");
	struct io_sock *s = client();
	int i;

	for (i = 0; i < 3000; i++)
		g_string_append_c(in, 'x');
	g_string_append(in, " HTTP/1.1\r\n" HOST "User-Agent: agent-of-the-first\r\n\r\n");
	say_n(s, in->str, in->len);
	disk();
	take(s, SIZE_MAX);
	say(s, "GARBAGE\r\n\r\n");
	sim_advance_ms(io, 1000); /* the client takes no bytes: client.stalled, with a path */
	g_assert_true(is_closed(0));
	g_assert_nonnull(strstr(logged->str, "ev=client.stalled"));
	g_assert_null(strstr(logged->str, "xxxx"));
}

TEST("/conn/refused/access-log")
{
	char *path = g_build_filename(g_get_tmp_dir(), "simworker-access.log", NULL), *text;
	struct io_sock *s;

	g_unlink(path);
	g_assert_cmpint(logfile_open(path, NULL, NULL, &access_file), ==, 0);
	up("accesslog.filename = \"x\"");
	s = client();
	say(s, "GET /none HTTP/1.1\r\n" HOST "User-Agent: the-first\r\n\r\n"
	       "GET /b HTTP/1.1\r\nUser-Agent: the-second\r\nBad Line\r\n\r\n");
	disk();
	say(client(), "GET /a HTTP/1.1\r\n" HOST
		      "User-Agent: some-other-client-than-that, with a lot to say of it\r\n\r\n");
	take(s, SIZE_MAX);
	s = client();
	say(s, "GET /dripping HT");
	say(s, "TP/1.1\r\nUser-Agent: the-third\r\n");
	sim_advance_ms(io, 60000);
	take(s, SIZE_MAX);
	logfile_close(access_file);
	access_file = NULL;
	g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
	g_assert_nonnull(strstr(text, "\"GET /none HTTP/1.1\" 404 "));
	g_assert_nonnull(strstr(text, "\"GET /b HTTP/1.1\" 400 "));
	g_assert_null(strstr(text, "the-second"));
	g_assert_null(strstr(text, "the-third"));
	g_assert_nonnull(strstr(text, " 408 "));
	g_unlink(path);
	g_free(path);
	g_free(text);
	down();
}
