/* t/unit/server/accesslog.c -- the access log: combined format, UTC, and no forged line. */
#include "base/buf.h"
#include "server/log/accesslog.h"
#include "t/unit/test.h"
#include "wire/http1/http_date.h"

static char *
line(struct access a, uint64_t wall_s)
{
	char date[HTTP_DATE_LEN + 1];
	struct buf b;
	char *s;

	http_date_put(date, wall_s);
	a.date = date;
	buf_init(&b, 0);
	accesslog_line(&b, &a);
	g_assert_false(b.failed);
	s = g_strndup(b.p, b.n);
	buf_free(&b);
	return (s);
}

TEST("/accesslog/combined-format")
{
	struct access a = {
		.remote = TEXT("127.0.0.1"),
		.line = TEXT("GET /a?b=c HTTP/1.1"),
		.referer = TEXT("http://x/"),
		.agent = TEXT("curl/8.0 (x)"),
		.status = 200,
		.bytes = 5368709120ull,
	};
	g_autofree char *s = line(a, 784111777);

	g_assert_cmpstr(s, ==,
	    "127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] \"GET /a?b=c HTTP/1.1\" 200 5368709120 "
	    "\"http://x/\" \"curl/8.0 (x)\"\n");
}

TEST("/accesslog/empty-fields-are-dashes")
{
	struct access a = { .remote = TEXT("::1"), .status = 400 };
	g_autofree char *s = line(a, 0);

	g_assert_cmpstr(s, ==, "::1 - - [01/Jan/1970:00:00:00 +0000] \"-\" 400 0 \"-\" \"-\"\n");
}

TEST("/accesslog/date-of-each-second")
{
	struct access a = { .remote = TEXT("h"), .status = 200 };
	char *s = line(a, 951782399);

	g_assert_nonnull(strstr(s, "[28/Feb/2000:23:59:59 +0000]"));
	g_free(s);
	s = line(a, 951782400);
	g_assert_nonnull(strstr(s, "[29/Feb/2000:00:00:00 +0000]"));
	g_free(s);
	s = line(a, 951782399);
	g_assert_nonnull(strstr(s, "[28/Feb/2000:23:59:59 +0000]"));
	g_free(s);
}

TEST("/accesslog/clients-cannot-forge-lines")
{
	struct access a = {
		.remote = TEXT("h"),
		.user = TEXT("a b\n"),
		.line = TEXT("GET /\r\n\x1b[2J\\ \"\x7f\0x HTTP/1.1"),
		.referer = TEXT("\" 200"),
		.agent = TEXT("\xc3\xa9"),
		.status = 404,
	};
	g_autofree char *s = line(a, 1);

	g_assert_cmpstr(s, ==,
	    "h - a\\x20b\\x0a [01/Jan/1970:00:00:01 +0000] \"GET /\\x0d\\x0a\\x1b[2J\\x5c "
	    "\\x22\\x7f\\x00x HTTP/1.1\" 404 0 \"\\x22 200\" \"\xc3\xa9\"\n");
}
