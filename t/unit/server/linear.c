/* t/unit/server/linear.c -- the cost of what a client sends is linear in its length. */
#include "wire/urlpath.h"
#include "server/log/accesslog.h"
#include "server/config/impl.h"
#include "server/config/check/mime.h"
#include "wire/http1/range.h"
#include "wire/http1/validate.h"
#include "t/unit/linear.h"

/* n times a piece, between two others. */
static GString *
repeat(const char *before, const char *piece, unsigned n, const char *after)
{
	GString *s = g_string_new(before);

	while (n-- > 0)
		g_string_append(s, piece);
	return (g_string_append(s, after));
}

/* ---------------------------------------------------------------- heads */

#define LINE "GET / HTTP/1.1\r\nHost: a\r\n"

static struct http_request req; /* large: not on the stack of each call */

static void
work_head(const GString *s)
{
	size_t used;
	int status;
	const char *why;

	g_assert_cmpint(http1_head((struct text){ s->str, s->len }, 65000, &req, &used, &status,
			    &why),
	    ==, PARSE_DONE);
}

static GString *
make_connection(unsigned n)
{
	return (repeat(LINE "Connection: a", ",b", n, "\r\n\r\n"));
}

static GString *
make_fields(unsigned n)
{
	return (repeat(LINE, "Name: value\r\n", n, "\r\n"));
}

static GString *
make_escapes(unsigned n)
{
	return (repeat("GET /", "%41", n, " HTTP/1.1\r\nHost: a\r\n\r\n"));
}

/* ---------------------------------------------------------------- conditions and ranges */

static GString *
make_tags(unsigned n)
{
	return (repeat(LINE "If-None-Match: \"a\"", ",\"b\"", n, "\r\n\r\n"));
}

static void
work_tags(const GString *s)
{
	struct validators v = { .etag = TEXT("\"none\""), .mtime_s = 1 };

	work_head(s);
	g_assert_cmpint(conditions_check(&req, &v), ==, 0);
}

static GString *
make_blanks(unsigned n)
{
	return (repeat(LINE "If-None-Match: \"a\"", ", ,\t", n, "\r\n\r\n"));
}

static GString *
make_ranges(unsigned n)
{
	return (repeat(LINE "Range: bytes=0-0", ",2-3", n, "\r\n\r\n"));
}

static void
work_ranges(const GString *s)
{
	struct validators v = { .etag = TEXT("\"none\""), .mtime_s = 1 };
	struct range_part out[RANGES_MAX];

	work_head(s);
	(void)ranges_select(&req, &v, 1000000, out);
}

/* ---------------------------------------------------------------- bodies */

static GString *
make_chunks(unsigned n)
{
	return (repeat("", "1\r\nx\r\n", n, "0\r\n\r\n"));
}

static GString *
make_trailers(unsigned n)
{
	return (repeat("0\r\n", "a: b\r\n", n, "\r\n"));
}

static void
work_chunks(const GString *s)
{
	struct http1_chunked c = { 0 };
	struct text in = { s->str, s->len }, data;
	enum parse got;

	do
		got = http1_chunked(&c, &in, &data);
	while (got == PARSE_MORE && in.n != 0);
	g_assert_cmpint(got, ==, PARSE_DONE);
}

/* ---------------------------------------------------------------- paths, logs */

static GString *
make_climbs(unsigned n)
{
	GString *up = repeat("", "../", n, "x"), *s = repeat("/", "a/", n, up->str);

	g_string_free(up, TRUE);
	return (s);
}

static GString *
make_dots(unsigned n)
{
	return (repeat("/", "long-name/.././/", n, "x"));
}

static void
work_path(const GString *s)
{
	static char dst[70000];

	g_assert_cmpint(urlpath_clean((struct text){ s->str, s->len }, dst), >, 0);
}

static GString *
make_suffixes(unsigned n)
{
	return (repeat("/a", ".x", n, ""));
}

static void
work_mime(const GString *s)
{
	static struct mime *m;
	struct conf_map none = { 0, NULL };
	char err[256];

	if (m == NULL)
		m = mime_new(&none, TEXT_NONE, err, sizeof(err));
	g_assert_cmpuint(mime_type(m, (struct text){ s->str, s->len }).n, >, 0);
}

static GString *
make_controls(unsigned n)
{
	return (repeat("GET /", "\x01 ", n, ""));
}

static void
work_log(const GString *s)
{
	struct text t = { s->str, s->len };
	struct access a = { .remote = TEXT("::1"),
		.user = t,
		.line = t,
		.referer = t,
		.agent = t,
		.status = 200,
		.date = "Sun, 06 Nov 1994 08:49:37 GMT" };
	struct buf out;

	buf_init(&out, 0);
	accesslog_line(&out, &a);
	g_assert_false(out.failed);
	buf_free(&out);
}

/* ---------------------------------------------------------------- configurations */

/* Generated ones have thousands of hosts. */
static GString *
make_blocks(unsigned n)
{
	GString *s = g_string_new("server.document-root = \"/\"\nserver.port = 0\n");

	while (n-- > 0)
		g_string_append_printf(s,
		    "$HTTP[\"host\"] == \"h%u.example\" { accesslog.filename = \"/l/%u\" "
		    "alias.url = ( \"/a/\" => \"/b/%u/\" ) }\n",
		    n, n % 4000, n);
	return (s);
}

static void
work_config(const GString *s)
{
	struct config *cfg;
	struct buf err, warn;

	buf_init(&err, 0);
	buf_init(&warn, 0);
	cfg = config_load_text("linear", (struct text){ s->str, s->len }, true, &err, &warn);
	g_assert_nonnull(cfg);
	config_free(cfg);
	buf_free(&err);
	buf_free(&warn);
}

static const struct linear cases[] = {
	{ "head/connection", make_connection, work_head, 16000 },
	{ "head/fields", make_fields, work_head, 49 },
	{ "head/escapes", make_escapes, work_head, 10000 },
	{ "if-none-match", make_tags, work_tags, 8000 },
	{ "if-none-match/blanks", make_blanks, work_tags, 8000 },
	{ "ranges", make_ranges, work_ranges, 8000 },
	{ "chunked/one-byte", make_chunks, work_chunks, 5000 },
	{ "chunked/trailers", make_trailers, work_chunks, 650 },
	{ "path/climbs", make_climbs, work_path, 6000 },
	{ "path/dots", make_dots, work_path, 2000 },
	{ "mime", make_suffixes, work_mime, 8000 },
	{ "access-log", make_controls, work_log, 8000 },
	{ "configuration/blocks", make_blocks, work_config, 5000 },
};

int
main(int argc, char **argv)
{
	return (linear_main(argc, argv, cases, G_N_ELEMENTS(cases)));
}
