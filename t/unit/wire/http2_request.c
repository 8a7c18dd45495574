/* t/unit/wire/http2_request.c -- fields of a request of HTTP/2 --> the head that http2_head()
 * reads.
 *
 * A request is lines: "name value".  The result is its head, or why it is malformed. */
#include "t/unit/test.h"
#include "wire/http1/http1.h"
#include "wire/http2/request.h"

#define MAX_HEAD 1024

#define GET    ":method GET\n:path /a?b=c\n:scheme https\n:authority h:81\n"
#define LINE   "GET /a?b=c HTTP/2.0\r\nHost: h:81\r\n"
#define KEY    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
#define ANY    KEY "c3RhdC1hY2NlbC1odHRwMg==\r\n"
#define TUNNEL ":method CONNECT\n:path /chat\n:scheme https\n:authority h\n:protocol websocket\n"

struct row {
	const char *fields, *want;
};

static struct http2_request q;

static const char *
give_line(char *line)
{
	char *name = line, *value = strchr(line, ' ');

	if (value == NULL)
		value = line + strlen(line);
	else
		*value++ = '\0';
	return (http2_request_field(&q, text_of(name), text_of(value)));
}

/* NULL, or why. */
static const char *
give(const char *fields)
{
	g_auto(GStrv) line = g_strsplit(fields, "\n", -1);
	const char *why = NULL;
	unsigned i;

	for (i = 0; line[i] != NULL && why == NULL; i++)
		if (*line[i] != '\0')
			why = give_line(line[i]);
	return (why);
}

static char *
head_of(const char *fields, bool body)
{
	struct text head = TEXT_NONE;
	const char *why;

	http2_request_begin(&q);
	why = give(fields);
	if (why == NULL)
		why = http2_request_end(&q, body, &head);
	return (why != NULL ? g_strdup(why) : g_strndup(head.p, head.n));
}

static void
check(const struct row *row, size_t n, bool body)
{
	g_autofree char *got = NULL;

	http2_request_init(&q, MAX_HEAD);
	for (; n > 0; n--, row++) {
		g_free(got);
		got = head_of(row->fields, body);
		g_assert_cmpstr(got, ==, row->want);
	}
	http2_request_free(&q);
}

TEST("/http2-request/fields become a head")
{
	static const struct row rows[] = {
		{ GET, LINE "\r\n" },
		{ GET "accept x\nx-b y z\t.\nx-empty \n",
		    LINE "accept: x\r\nx-b: y z\t.\r\nx-empty: \r\n\r\n" },
		{ ":scheme http\n:path /\n:method HEAD\n", "HEAD / HTTP/2.0\r\n\r\n" },
		{ ":scheme http\n:path *\n:method OPTIONS\nhost h\n",
		    "OPTIONS * HTTP/2.0\r\nhost: h\r\n\r\n" },
		{ GET "te trailers\n", LINE "te: trailers\r\n\r\n" },
		{ GET "te Trailers\n", LINE "te: Trailers\r\n\r\n" },
		{ GET "x \xc3\xa4\n", LINE "x: \xc3\xa4\r\n\r\n" },
	};

	check(rows, G_N_ELEMENTS(rows), false);
}

TEST("/http2-request/pseudo-header fields")
{
	static const char missing[] = "a pseudo-header field is missing";
	static const char bad[] = "a bad character in a pseudo-header field";
	static const char path[] = ":path begins without a slash",
			  two[] = "two pseudo-header fields of one name";
	static const struct row rows[] = {
		{ ":method GET\n:path /\n", missing },
		{ ":method GET\n:scheme http\n", missing },
		{ ":path /\n:scheme http\n", missing },
		{ ":path /\n:scheme http\naccept x\n", missing },
		{ "accept x\n", missing },
		{ "", missing },
		{ GET ":path /\n", two },
		{ GET ":authority h:81\n", two },
		{ GET ":status 200\n", "unknown pseudo-header field" },
		{ GET ": 200\n", "unknown pseudo-header field" },
		{ GET ":Path /\n", "unknown pseudo-header field" },
		{ ":method GET\n:path /\naccept x\n:scheme http\n", missing },
		{ GET "accept x\n:protocol x\n", "a pseudo-header field after the others" },
		{ ":method GET\n:path \n", bad },
		{ ":method \n", bad },
		{ ":authority \n", bad },
		{ ":path /a b\n", bad },
		{ ":path /a#b\n", bad },
		{ ":path /a\rb\n", bad },
		{ ":path /\x7f\n", bad },
		{ ":path /\xc3\xa4\n", bad },
		{ ":path /0123456789abcdef0123456789\tb\n", bad },
		{ ":method GET /x\n", bad },
		{ ":authority h x\n", bad },
		{ ":scheme a b\n", bad },
		{ ":method GET\n:scheme http\n:path a\n", path },
		{ ":method GET\n:scheme http\n:path http://h/\n", path },
		{ ":method GET\n:scheme http\n:path **\n", path },
	};

	check(rows, G_N_ELEMENTS(rows), false);
}

TEST("/http2-request/malformed fields")
{
	static const char name[] = "a bad character in the name of a field";
	static const char value[] = "a bad character in a field";
	static const char conn[] = "a field of a connection of HTTP/1";
	static const char space[] = "a field begins or ends with a space";
	static const struct row rows[] = {
		{ GET "Accept x\n", name },
		{ GET "accepT x\n", name },
		{ GET "x-A x\n", name },
		{ GET "x-Z x\n", name },
		{ GET "x\ry z\n", name },
		{ GET "x:y z\n", name },
		{ GET "x\x7f z\n", name },
		{ GET "\xc3\xa4 z\n", name },
		{ GET " x\n", name },
		{ GET "x a\rb\n", value },
		{ GET "x a\x01\n", value },
		{ GET "x \x7f\n", value },
		{ GET "x 0123456789abcdef0123456789\rb\n", value },
		{ GET "x  y\n", space },
		{ GET "x y \n", space },
		{ GET "x \ty\n", space },
		{ GET "x y\t\n", space },
		{ GET "connection close\n", conn },
		{ GET "connection \n", conn },
		{ GET "keep-alive 5\n", conn },
		{ GET "proxy-connection x\n", conn },
		{ GET "transfer-encoding chunked\n", conn },
		{ GET "upgrade h2c\n", conn },
		{ GET "te gzip\n", conn },
		{ GET "te trailers, gzip\n", conn },
		{ GET "host x\n", "host is not :authority" },
		{ GET "host h:8\n", "host is not :authority" },
		{ GET "host h:81 \n", space },
	};

	check(rows, G_N_ELEMENTS(rows), false);
}

/* A text with a length may hold it. */
TEST("/http2-request/a line feed and a NUL")
{
	http2_request_init(&q, MAX_HEAD);
	http2_request_begin(&q);
	g_assert_nonnull(http2_request_field(&q, TEXT(":path"), TEXT("/\n")));
	g_assert_nonnull(http2_request_field(&q, TEXT(":path"), TEXT("/\0")));
	g_assert_null(give(GET));
	g_assert_nonnull(http2_request_field(&q, TEXT("x\n"), TEXT("y")));
	g_assert_nonnull(http2_request_field(&q, TEXT("x\0"), TEXT("y")));
	g_assert_nonnull(http2_request_field(&q, TEXT("x"), TEXT("a\nb")));
	g_assert_nonnull(http2_request_field(&q, TEXT("x"), TEXT("a\0b")));
	g_assert_nonnull(http2_request_field(&q, TEXT(""), TEXT("a")));
	g_assert_nonnull(http2_request_field(&q, TEXT_NONE, TEXT_NONE));
	http2_request_free(&q);
}

TEST("/http2-request/host and :authority")
{
	static const struct row rows[] = {
		{ GET "host h:81\n", LINE "\r\n" },
		{ GET "host H:81\n", LINE "\r\n" },
		{ ":method GET\n:path /\n:scheme http\nhost x\n",
		    "GET / HTTP/2.0\r\nhost: x\r\n\r\n" },
	};

	check(rows, G_N_ELEMENTS(rows), false);
}

TEST("/http2-request/cookies are joined")
{
	static const struct row rows[] = {
		{ GET "cookie a=1\n", LINE "cookie: a=1\r\n\r\n" },
		{ GET "cookie a=1\nx y\ncookie b=2\ncookie c=3\n",
		    LINE "x: y\r\ncookie: a=1; b=2; c=3\r\n\r\n" },
		{ GET "cookie \n", LINE "\r\n" },
		{ GET, LINE "\r\n" }, /* none of the request before it */
	};

	check(rows, G_N_ELEMENTS(rows), false);
}

TEST("/http2-request/a body without a length comes in chunks")
{
	static const struct row rows[] = {
		{ GET, LINE "transfer-encoding: chunked\r\n\r\n" },
		{ GET "content-length 5\n", LINE "content-length: 5\r\n\r\n" },
		{ GET "content-type x\n",
		    LINE "content-type: x\r\ntransfer-encoding: chunked\r\n\r\n" },
		{ TUNNEL, "GET /chat HTTP/2.0\r\nHost: h\r\n" ANY "\r\n" },
	};

	check(rows, G_N_ELEMENTS(rows), true);
}

TEST("/http2-request/CONNECT and tunnels")
{
	static const char lonely[] = "CONNECT needs :authority, and no other pseudo-header field";
	static const struct row rows[] = {
		{ ":method CONNECT\n:authority h:443\n",
		    "CONNECT h:443 HTTP/2.0\r\nHost: h:443\r\n\r\n" },
		{ ":method CONNECT\n", lonely },
		{ ":method CONNECT\n:authority h\n:path /\n", lonely },
		{ ":method CONNECT\n:authority h\n:scheme http\n", lonely },
		{ TUNNEL "sec-websocket-version 13\n",
		    "GET /chat HTTP/2.0\r\nHost: h\r\nsec-websocket-version: 13\r\n" ANY "\r\n" },
		{ ":method CONNECT\n:path /chat\n:scheme https\n:authority h\n:protocol other\n",
		    "CONNECT h HTTP/2.0\r\nHost: h\r\n\r\n" },
		{ GET ":protocol websocket\n", ":protocol without the method CONNECT" },
		{ ":method CONNECT\n:protocol websocket\n:authority h\n",
		    "a pseudo-header field is missing" },
		{ ":method CONNECT\n:protocol websocket\n:path /\n:authority h\n",
		    "a pseudo-header field is missing" },
		{ ":method CONNECT\n:protocol websocket\n:path x\n:scheme http\n:authority h\n",
		    ":path begins without a slash" },
	};

	check(rows, G_N_ELEMENTS(rows), false);
}

TEST("/http2-request/what a request asks for")
{
	struct text head;

	http2_request_init(&q, MAX_HEAD);
	http2_request_begin(&q);
	g_assert_false(http2_request_is_tunnel(&q));
	g_assert_false(http2_request_is_head(&q));
	g_assert_null(give(TUNNEL));
	g_assert_null(http2_request_end(&q, true, &head));
	g_assert_true(http2_request_is_tunnel(&q));
	g_assert_false(http2_request_is_chunked(&q, true));
	http2_request_begin(&q);
	g_assert_null(give(":method HEAD\n:path /\n:scheme http\n"));
	g_assert_null(http2_request_end(&q, false, &head));
	g_assert_true(http2_request_is_head(&q));
	g_assert_false(http2_request_is_tunnel(&q));
	g_assert_false(http2_request_is_chunked(&q, false));
	g_assert_true(http2_request_is_chunked(&q, true));
	http2_request_begin(&q);
	g_assert_null(give(GET "content-length 1\n"));
	g_assert_null(http2_request_end(&q, true, &head));
	g_assert_false(http2_request_is_chunked(&q, true));
	http2_request_free(&q);
}

/* ---- what the parser says of the head */

static char *
verdict(const char *fields, bool body)
{
	g_autofree char *head = head_of(fields, body);
	struct http_request r; /* its slices are of head */
	const char *why = NULL;
	size_t used = 0;
	int status = 0;

	g_assert_nonnull(strchr(head, '\r')); /* not why it is malformed */
	switch (http2_head(text_of(head), MAX_HEAD, &r, &used, &status, &why)) {
	case PARSE_MORE: return (g_strdup("more"));
	case PARSE_BAD: return (g_strdup_printf("%d", status));
	case PARSE_DONE: break;
	}
	g_assert_cmpuint(used, ==, strlen(head));
	return (g_strdup_printf("%d.%d %.*s %.*s %u%s cl=%" G_GINT64_FORMAT, r.major, r.minor,
	    (int)r.host.n, r.host.p, (int)r.path.n, r.path.p, r.nheaders,
	    r.chunked ? " chunked" : "", r.content_length));
}

static void
check_verdict(const char *fields, bool body, const char *want)
{
	g_autofree char *got = NULL;

	http2_request_init(&q, MAX_HEAD);
	got = verdict(fields, body);
	g_assert_cmpstr(got, ==, want);
	http2_request_free(&q);
}

TEST("/http2-request/the parser takes the head")
{
	check_verdict(GET, false, "2.1 h:81 /a 1 cl=-1");
	check_verdict(GET "x y\ncookie a\ncookie b\n", false, "2.1 h:81 /a 3 cl=-1");
	check_verdict(GET "content-length 7\n", true, "2.1 h:81 /a 2 cl=7");
	check_verdict(GET, true, "2.1 h:81 /a 2 chunked cl=-1");
	check_verdict(TUNNEL, true, "2.1 h /chat 4 cl=-1");
}

TEST("/http2-request/the parser refuses the head")
{
	check_verdict(":method GET\n:path /\n:scheme http\n", false, "400"); /* no host */
	check_verdict(":method GET\n:path /\n:scheme http\nhost a\nhost b\n", false, "400");
	check_verdict(GET "content-length 1\ncontent-length 2\n", true, "400");
	check_verdict(GET "content-length x\n", true, "400");
	check_verdict(":method G(T\n:path /\n:scheme http\n:authority h\n", false, "400");
	check_verdict(":method GET\n:path /\n:scheme http\n:authority u@h\n", false, "400");
	check_verdict(":method GET\n:path *\n:scheme http\n:authority h\n", false, "400");
	check_verdict(":method CONNECT\n:authority h:443\n", false, "501");
}

/* ---- too long */

static char *
with(const char *before, char c, unsigned n, const char *after)
{
	g_autofree char *many = g_strnfill(n, c);

	return (g_strconcat(before, many, after, NULL));
}

static void
check_long(const char *before, unsigned n, const char *after, const char *want)
{
	g_autofree char *fields = with(before, 'x', n, after);

	check_verdict(fields, false, want);
}

TEST("/http2-request/a head that is too long")
{
	check_long(":method GET\n:scheme http\n:authority h\n:path /", MAX_HEAD, "\n", "414");
	check_long(":method GET\n:scheme http\n:authority h\n:path /", MAX_HEAD, "\nx y\n", "414");
	check_long(":path /", MAX_HEAD, "\n:method GET\n:scheme http\n:authority h\n", "414");
	check_long(":method GET\n:scheme http\n:path /\n:authority ", MAX_HEAD, "\n", "431");
	check_long(":method G", MAX_HEAD, "\n:path /\n:scheme http\n:authority h\n", "414");
	check_long(":scheme h", MAX_HEAD, "\n:path /\n:method GET\n:authority h\n", "431");
	check_long(GET "x y", MAX_HEAD, "\n", "431");
	check_long(GET "x", MAX_HEAD, " y\n", "431");
	check_long(GET "cookie a\nx y\ncookie y", MAX_HEAD, "\n", "431");
	check_long(GET "x y", MAX_HEAD - 8, "\ncontent-length 5\n", "431");
}

/* As of HTTP/1, all of the bytes may be one field, or the path. */
TEST("/http2-request/a head that is just short enough")
{
	const unsigned line = sizeof("GET / HTTP/2.0\r\nHost: h\r\n\r\n") - 1;

	check_long(":method GET\n:scheme http\n:path /\n:authority h\ny y", MAX_HEAD - line - 6,
	    "\n", "2.1 h / 2 cl=-1");
	check_long(":method GET\n:scheme http\n:path /\n:authority h\ny y", MAX_HEAD - line - 5,
	    "\n", "431");
}

TEST("/http2-request/a long path")
{
	g_autofree char *fields =
	    with(":method GET\n:scheme http\n:authority h\n:path /", 'p', 900, "\nx y\n");
	g_autofree char *want = with("2.1 h /", 'p', 900, " 2 cl=-1");

	check_verdict(fields, false, want);
}

TEST("/http2-request/what was cut is counted, and not kept")
{
	g_autofree char *many = g_strnfill(MAX_HEAD, 'x');
	unsigned i;

	http2_request_init(&q, MAX_HEAD);
	http2_request_begin(&q);
	g_assert_null(give(GET));
	g_assert_cmpuint(q.cut, ==, 0);
	for (i = 1; i <= 100; i++) {
		g_assert_null(http2_request_field(&q, TEXT("x"), text_of(many)));
		g_assert_cmpuint(q.cut, ==, i * (MAX_HEAD + 5));
	}
	g_assert_null(http2_request_field(&q, TEXT("y"), TEXT("z"))); /* nothing after a gap */
	g_assert_cmpuint(q.cut, ==, 100 * (MAX_HEAD + 5) + 6);
	g_assert_cmpuint(q.head.cap + q.cookies.cap + q.values.cap, <=, 4 * MAX_HEAD);
	http2_request_begin(&q);
	g_assert_cmpuint(q.cut, ==, 0);
	http2_request_free(&q);
}

TEST("/http2-request/without memory there is no head")
{
	struct text head = TEXT("x");

	http2_request_init(&q, MAX_HEAD);
	http2_request_begin(&q);
	g_assert_null(give(GET));
	q.head.failed = true;
	g_assert_null(http2_request_end(&q, false, &head));
	g_assert_null(head.p);
	http2_request_begin(&q);
	g_assert_null(give(GET));
	g_assert_null(http2_request_end(&q, false, &head)); /* the next one has it */
	g_assert_nonnull(head.p);
	http2_request_begin(&q);
	q.values.failed = true;
	g_assert_null(give(GET "host h:81\ncookie a\n"));
	g_assert_null(http2_request_end(&q, false, &head));
	g_assert_null(head.p);
	http2_request_free(&q);
}
