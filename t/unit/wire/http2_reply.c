/* t/unit/wire/http2_reply.c -- the head of a reply of HTTP/1 --> status and fields of HTTP/2.
 *
 * Each head is read from memory of its size, so a sanitizer sees a read past it. */
#include <stdlib.h>

#include "t/unit/test.h"
#include "wire/http2/reply.h"

#define OK "HTTP/1.1 200 OK\r\n"

struct row {
	const char *head, *want;
};

/* "200 length=-1 name=value|name=value|", "more" or "bad" */
static char *
tell(const struct http2_reply *r)
{
	GString *s = g_string_new(NULL);
	unsigned i;

	g_string_printf(s, "%d length=%" G_GINT64_FORMAT " ", r->status, r->length);
	for (i = 0; i < r->n; i++)
		g_string_append_printf(s, "%.*s=%.*s|", (int)r->field[i].name.n, r->field[i].name.p,
		    (int)r->field[i].value.n, r->field[i].value.p);
	return (g_string_free(s, FALSE));
}

static char *
read_head(const char *head, size_t n)
{
	struct http2_reply r;
	char *p = malloc(n), *got;
	size_t used = 0;

	memset(&r, 0xa5, sizeof(r));
	memcpy(p, head, n);
	switch (http2_reply_read(p, n, &r, &used)) {
	case PARSE_DONE: got = tell(&r); break;
	case PARSE_BAD: got = g_strdup("bad"); break;
	default: got = g_strdup("more");
	}
	free(p);
	return (got);
}

static void
check(const struct row *row, size_t n)
{
	char *got;

	for (; n > 0; n--, row++) {
		got = read_head(row->head, strlen(row->head));
		g_assert_cmpstr(got, ==, row->want);
		g_free(got);
	}
}

TEST("/http2-reply/fields in lower case")
{
	static const struct row rows[] = {
		{ OK "\r\n", "200 length=-1 " },
		{ "HTTP/1.1 204\r\n\r\n", "204 length=-1 " },
		{ "HTTP/1.0 404 Not Found\r\n\r\n", "404 length=-1 " },
		{ "HTTP/1.1 103 Early Hints\r\nLink: <A>\r\n\r\n", "103 length=-1 link=<A>|" },
		{ OK "Content-Type: Text/HTML\r\nETAG: \"A\"\r\nx: \r\ny:\r\nz:\t a b \r\n\r\n",
		    "200 length=-1 content-type=Text/HTML|etag=\"A\"|x=|y=|z=a b|" },
		{ OK "A[]^_`{@Z: 1\r\n\r\n", "200 length=-1 a[]^_`{@z=1|" },
		{ OK "Set-Cookie: a\r\nSet-Cookie: b:c\r\n\r\n",
		    "200 length=-1 set-cookie=a|set-cookie=b:c|" },
	};

	check(rows, G_N_ELEMENTS(rows));
}

TEST("/http2-reply/its length")
{
	static const struct row rows[] = {
		{ OK "Content-Length: 0\r\n\r\n", "200 length=0 content-length=0|" },
		{ OK "CONTENT-LENGTH: 17\r\n\r\n", "200 length=17 content-length=17|" },
		{ OK "Content-Length: 9223372036854775807\r\n\r\n",
		    "200 length=9223372036854775807 content-length=9223372036854775807|" },
		{ OK "Content-Length: 9223372036854775808\r\n\r\n",
		    "200 length=-1 content-length=9223372036854775808|" },
		{ OK "Content-Length: x\r\n\r\n", "200 length=-1 content-length=x|" },
		{ OK "Content-Lengths: 5\r\n\r\n", "200 length=-1 content-lengths=5|" },
	};

	check(rows, G_N_ELEMENTS(rows));
}

TEST("/http2-reply/fields of a connection are left out")
{
	static const struct row rows[] = {
		{ OK "Connection: close\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\n"
		     "Transfer-Encoding: chunked\r\nUpgrade: x\r\nA: b\r\n\r\n",
		    "200 length=-1 a=b|" },
		{ OK "Connections: a\r\nUpgrades: b\r\n\r\n",
		    "200 length=-1 connections=a|upgrades=b|" },
		{ "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
		  "Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: y\r\n\r\n",
		    "101 length=-1 sec-websocket-protocol=y|" },
		{ OK "Sec-WebSocket-Accept: x\r\n\r\n", "200 length=-1 sec-websocket-accept=x|" },
	};

	check(rows, G_N_ELEMENTS(rows));
}

TEST("/http2-reply/what is not a head")
{
	static const struct row rows[] = {
		{ "HTTP/1.1 200 OK", "more" },
		{ "HTTP/1.1 20\r\n\r\n", "bad" },
		{ "HTTP/2.0 200 OK\r\n\r\n", "bad" },
		{ "HTTP/1.1 2x0 OK\r\n\r\n", "bad" },
		{ "HTTP/1.1 x00 OK\r\n\r\n", "bad" },
		{ "HTTP/1.1 20x OK\r\n\r\n", "bad" },
		{ "HTTP/1.1 099 OK\r\n\r\n", "bad" },
		{ "HTTP/1.1 100 OK\r\n\r\n", "100 length=-1 " },
		{ "\r\n\r\n", "bad" },
		{ OK "no colon\r\n\r\n", "bad" },
		{ OK ": x\r\n\r\n", "bad" },
		{ OK "a: b", "more" },
		{ OK "a: b\rc: d\r\n\r\n", "bad" },
		{ OK "\r\r\n", "bad" },
		{ "HTTP/1.1 200 OK\r \r\n", "bad" },
	};

	check(rows, G_N_ELEMENTS(rows));
}

/* Whatever is cut off, nothing after the end is read. */
TEST("/http2-reply/a part of a head")
{
	static const char head[] = OK "Content-Length: 5\r\nConnection: close\r\nA: b\r\n\r\n";
	char *got;
	size_t n;

	for (n = 1; n < sizeof(head) - 1; n++) {
		got = read_head(head, n);
		g_assert_cmpstr(got, ==, "more");
		g_free(got);
	}
}

TEST("/http2-reply/the end of a head")
{
	static const char head[] = OK "\r\nbody\r\n\r\n";

	char copy[sizeof(head)];
	struct http2_reply r;
	size_t used = 0;

	memcpy(copy, head, sizeof(head));
	g_assert_cmpint(http2_reply_read(copy, sizeof(head) - 1, &r, &used), ==, PARSE_DONE);
	g_assert_cmpuint(used, ==, sizeof(OK) - 1 + 2);
}

static char *
many_fields(unsigned n, const char *more)
{
	GString *s = g_string_new(OK);
	unsigned i;

	for (i = 0; i < n; i++)
		g_string_append(s, "A: b\r\n");
	g_string_append_printf(s, "%s\r\n", more);
	return (g_string_free(s, FALSE));
}

TEST("/http2-reply/too many fields")
{
	g_autofree char *most = many_fields(HTTP2_REPLY_FIELDS, "Connection: x\r\n");
	g_autofree char *more = many_fields(HTTP2_REPLY_FIELDS + 1, "");
	g_autofree char *got = read_head(most, strlen(most));
	g_autofree char *bad = read_head(more, strlen(more));

	g_assert_cmpstr(got, !=, "bad");
	g_assert_cmpstr(bad, ==, "bad");
}

static char *
read_trailers(const char *lines)
{
	size_t n = strlen(lines);
	char *p = malloc(n), *got;
	struct http2_reply r;

	memcpy(p, lines, n);
	got = http2_trailers_read(p, n, &r) ? tell(&r) : g_strdup("bad");
	free(p);
	return (got);
}

TEST("/http2-reply/fields after the body")
{
	static const struct row rows[] = {
		{ "X-Sum: A\r\nx-sum:\r\n", "0 length=-1 x-sum=A|x-sum=|" },
		{ "Connection: x\r\nA: b\r\n", "0 length=-1 a=b|" },
		{ "X-Sum: A", "bad" },
		{ "X-Sum: A\r", "bad" },
		{ "X-Sum: A\n", "bad" },
		{ "X-Sum\r\n", "bad" },
		{ ": A\r\n", "bad" },
		{ "\r\n", "bad" },
		{ "A: b\rC: d\r\n", "bad" },
	};
	g_autofree char *more = many_fields(HTTP2_REPLY_FIELDS + 1, "");
	unsigned i;
	char *got;

	for (i = 0; i < G_N_ELEMENTS(rows); i++) {
		got = read_trailers(rows[i].head);
		g_assert_cmpstr(got, ==, rows[i].want);
		g_free(got);
	}
	got = read_trailers(more + sizeof(OK) - 1);
	g_assert_cmpstr(got, ==, "bad");
	g_free(got);
}
