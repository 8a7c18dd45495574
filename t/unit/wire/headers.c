/* t/unit/wire/headers.c -- heads of replies: valid, hostile, and cut anywhere. */
#include "t/unit/wire/wire_test.h"

static enum head_result
feed(struct reply_head *h, const char *s, size_t n, size_t step, size_t *left)
{
	enum head_result r = HEAD_MORE;
	struct text in;
	size_t at = 0;

	reply_head_init(h);
	while (at < n && r == HEAD_MORE) {
		in = (struct text){ s + at, step < n - at ? step : n - at };
		at += in.n;
		r = reply_head_cgi(h, &in);
		*left = in.n + n - at;
	}
	return (r);
}

static char *
shown(const struct reply_head *h)
{
	GString *s = g_string_new(NULL);
	size_t i;

	g_string_printf(s, "%d %" G_GINT64_FORMAT, h->reply.status, h->reply.content_length);
	for (i = 0; i < h->reply.nheaders; i++)
		g_string_append_printf(s, "|%.*s=%.*s", (int)h->reply.headers[i].name.n,
		    h->reply.headers[i].name.p, (int)h->reply.headers[i].value.n,
		    h->reply.headers[i].value.p);
	for (i = 0; i < CONTROLS; i++)
		if (h->reply.control[i].p != NULL)
			g_string_append_printf(s, "|%s: %.*s", controls[i].name.p,
			    (int)h->reply.control[i].n, h->reply.control[i].p);
	if (h->reply.unknown_control.p != NULL)
		g_string_append_printf(s, "|? %.*s", (int)h->reply.unknown_control.n,
		    h->reply.unknown_control.p);
	return (g_string_free(s, FALSE));
}

static const struct {
	const char *in, *out; /* out NULL: refused */
} heads[] = {
	{ "\r\n", "200 -1" },
	{ "\n", "200 -1" },
	{ "Content-Type: text/plain\r\n\r\n", "200 -1|Content-Type=text/plain" },
	{ "A: 1\nB:2\n\n", "200 -1|A=1|B=2" },
	{ "A:\t x y \t\r\n\r\n", "200 -1|A=x y" },
	{ "A:\r\n\r\n", "200 -1|A=" },
	{ "Status: 404 Not Found\r\n\r\n", "404 -1" },
	{ "status:404\r\n\r\n", "404 -1" },
	{ "Location: /x\r\n\r\n", "302 -1|Location=/x" },
	{ "Location: /x\r\nStatus: 201 Created\r\n\r\n", "201 -1|Location=/x" },
	{ "Content-Length: 12\r\n\r\n", "200 12" },
	{ "Content-Length: 9223372036854775807\n\n", "200 9223372036854775807" },
	{ "Set-Cookie: a\r\nSet-Cookie: b\r\n\r\n", "200 -1|Set-Cookie=a|Set-Cookie=b" },
	{ "Connection: close, X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\nKeep-Alive: 1\r\nTransfer-Encoding: "
	  "chunked\r\n"
	  "Upgrade: h2c\r\nTE: x\r\nTrailer: x\r\nProxy-Authenticate: x\r\n\r\n",
	    "200 -1|X-End=2" },
	{ "X-Sendfile: /srv/a b\r\n\r\n", "200 -1|X-Sendfile: /srv/a b" },
	{ "x-lighttpd-SEND-file: /srv/a\r\n\r\n", "200 -1|X-LIGHTTPD-send-file: /srv/a" },
	{ "X-Accel-Redirect: /protected/a\r\n\r\n", "200 -1|X-Accel-Redirect: /protected/a" },
	{ "X-Sendfile: \r\n\r\n", "200 -1|X-Sendfile: " },
	{ "X-Sendfile: /a\r\nX-Sendfile: /b\r\n\r\n", "200 -1|X-Sendfile: /a" },
	{ "X-Sendfile: /a\r\nX-LIGHTTPD-send-file: /b\r\n\r\n",
	    "200 -1|X-Sendfile: /a|X-LIGHTTPD-send-file: /b" },
	{ "X-Sendfile2: /a 0-1\r\nX-LIGHTTPD-send-tempfile: /a\r\nX-Other: 1\r\n"
	  "X-LIGHTTPD-KBytes-per-second: 1\r\nX-Accel-Buffering: no\r\n"
	  "X-Reproxy-URL: http://x\r\nX-LiteSpeed-Location: /x\r\n\r\n",
	    "200 -1|X-Other=1|X-Sendfile2: /a 0-1|X-LIGHTTPD-send-tempfile: /a"
	    "|X-LiteSpeed-Location: /x|X-Reproxy-URL: http://x|X-Accel-Buffering: no"
	    "|X-LIGHTTPD-KBytes-per-second: 1" },
	{ "X-Accel-Mapping: /a=/b\r\n\r\n", "200 -1|? X-Accel-Mapping" },
	{ "X-Sendfile-Type: X-Accel-Redirect\r\n\r\n", "200 -1|? X-Sendfile-Type" },
	{ "HTTP/1.1 200 OK\r\n\r\n", "200 -1" },
	{ "HTTP/1.0 404 Not: found\nA: 1\n\n", "404 -1|A=1" },
	{ "HTTP/1.1 404 Not Found\r\nStatus: 200\r\n\r\n", NULL },
	{ "HTTP/1.1 100 Continue\r\n\r\n", NULL },
	{ "HTTP/1.1 \r\n\r\n", NULL },
	{ "HTTP/2 200 OK\r\n\r\n", NULL },
	{ "A: 1\r\nHTTP/1.1 200 OK\r\n\r\n", NULL },
	{ "no colon\r\n\r\n", NULL },
	{ ": no name\r\n\r\n", NULL },
	{ "Bad Name: x\r\n\r\n", NULL },
	{ "Name : x\r\n\r\n", NULL },
	{ "A: 1\r\n folded\r\n\r\n", NULL },
	{ " A: 1\r\n\r\n", NULL },
	{ "A: x\ry\r\n\r\n", NULL },
	{ "A: x\x01\r\n\r\n", NULL },
	{ "A: \x7f\r\n\r\n", NULL },
	{ "Location: /x\rSet-Cookie: evil\r\n\r\n", NULL },
	{ "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", NULL },
	{ "Content-Length: -1\r\n\r\n", NULL },
	{ "Content-Length: +1\r\n\r\n", NULL },
	{ "Content-Length: 1 1\r\n\r\n", NULL },
	{ "Content-Length: \r\n\r\n", NULL },
	{ "Content-Length: 9223372036854775808\r\n\r\n", NULL },
	{ "Content-Length: 0x10\r\n\r\n", NULL },
	{ "Status: 101 Switching\r\n\r\n", NULL },
	{ "Status: 600\r\n\r\n", NULL },
	{ "Status: 99\r\n\r\n", NULL },
	{ "Status: 2000\r\n\r\n", NULL },
	{ "Status: OK\r\n\r\n", NULL },
	{ "Status: 200\r\nStatus: 404\r\n\r\n", NULL },
};

static void
check_head(const char *in, const char *out, size_t step)
{
	char *whole = g_strconcat(in, "body", NULL), *s;
	struct reply_head h;
	size_t left = 0;
	enum head_result r;

	r = feed(&h, whole, strlen(whole), step, &left);
	if (out == NULL) {
		g_assert_cmpint(r, ==, HEAD_BAD);
		g_assert_nonnull(h.why);
	} else {
		g_assert_cmpint(r, ==, HEAD_DONE);
		g_assert_cmpuint(left, ==, 4);
		s = shown(&h);
		g_assert_cmpstr(s, ==, out);
		g_free(s);
	}
	reply_head_free(&h);
	g_free(whole);
}

TEST("/headers/each head, cut everywhere")
{
	size_t i, step;

	for (i = 0; i < G_N_ELEMENTS(heads); i++)
		for (step = 1; step <= strlen(heads[i].in) + 4; step++)
			check_head(heads[i].in, heads[i].out, step);
}

TEST("/headers/a NUL is refused")
{
	static const char in[] = "A: x\0y\r\n\r\n";
	struct reply_head h;
	size_t left;

	g_assert_cmpint(feed(&h, in, sizeof(in) - 1, 100, &left), ==, HEAD_BAD);
	reply_head_free(&h);
}

TEST("/headers/length and number are bounded")
{
	g_autoptr(GString) s = g_string_new(NULL);
	struct reply_head h;
	size_t left;
	int i;

	for (i = 0; i < 256; i++)
		g_string_append(s, "A: 1\r\n");
	g_string_append(s, "\r\n");
	g_assert_cmpint(feed(&h, s->str, s->len, 7, &left), ==, HEAD_DONE);
	g_assert_cmpuint(h.reply.nheaders, ==, 256);
	reply_head_free(&h);
	g_string_prepend(s, "A: 1\r\n");
	g_assert_cmpint(feed(&h, s->str, s->len, 7, &left), ==, HEAD_BAD); /* one too many */
	reply_head_free(&h);
	g_string_assign(s, "A: ");
	for (i = 0; i < 70000; i++)
		g_string_append_c(s, 'x');
	g_assert_cmpint(feed(&h, s->str, s->len, 1000, &left), ==, HEAD_BAD); /* endless line */
	reply_head_free(&h);
}

TEST("/headers/tokens")
{
	static const char *const bad[] = { "", "X Y", "X:", "X\r\nY", "X\xc3\xa4", "X\"" };
	size_t i;

	g_assert_true(header_is_token(TEXT("X-Accel-Redirect")));
	g_assert_true(header_is_token(TEXT("!#$%&'*+-.^_`|~09azAZ")));
	g_assert_false(header_is_token(TEXT("X\0Y")));
	for (i = 0; i < G_N_ELEMENTS(bad); i++)
		g_assert_false(header_is_token(text_of(bad[i])));
}

/* By the byte: a long value is looked at sixteen bytes at a time. */
TEST("/headers/bytes of a value")
{
	char value[40];
	unsigned c;

	for (c = 0; c < 256; c++) {
		memset(value, 'v', sizeof(value));
		value[20] = (char)c;
		g_assert_true(header_value_ok((struct text){ value, sizeof(value) }) ==
			      (c == '\t' || (c >= ' ' && c != 127)));
		g_assert_true(header_value_ok((struct text){ value + 20, 1 }) ==
			      (c == '\t' || (c >= ' ' && c != 127)));
	}
}
