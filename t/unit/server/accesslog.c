/* The access log: combined format, UTC, and nothing a client sends can forge a line. */
#include <glib.h>
#include "base/buf.h"
#include "server/accesslog.h"

static char *
line(const struct access *a)
{
	struct buf b;
	char *s;

	buf_init(&b, 0);
	accesslog_line(&b, a);
	g_assert_false(b.failed);
	s = g_strndup(b.p, b.n);
	buf_free(&b);
	return (s);
}

static void
combined(void)
{
	struct access a = {
		.remote = TEXT("127.0.0.1"), .line = TEXT("GET /a?b=c HTTP/1.1"), .referer = TEXT("http://x/"),
		.agent = TEXT("curl/8.0 (x)"), .status = 200, .bytes = 5368709120ull, .wall_s = 784111777,
	};
	char *s = line(&a);

	g_assert_cmpstr(s, ==, "127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] \"GET /a?b=c HTTP/1.1\" 200 5368709120 "
	    "\"http://x/\" \"curl/8.0 (x)\"\n");
	g_free(s);
}

static void
empty_fields(void)
{
	struct access a = {.remote = TEXT("::1"), .status = 400, .wall_s = 0};
	char *s = line(&a);

	g_assert_cmpstr(s, ==, "::1 - - [01/Jan/1970:00:00:00 +0000] \"-\" 400 0 \"-\" \"-\"\n");
	g_free(s);
}

static void
date_follows_the_clock(void)
{
	struct access a = {.remote = TEXT("h"), .status = 200, .wall_s = 951782399};
	char *s = line(&a);

	g_assert_nonnull(strstr(s, "[28/Feb/2000:23:59:59 +0000]"));
	g_free(s);
	a.wall_s++;
	s = line(&a);
	g_assert_nonnull(strstr(s, "[29/Feb/2000:00:00:00 +0000]"));
	g_free(s);
	a.wall_s--;
	s = line(&a);
	g_assert_nonnull(strstr(s, "[28/Feb/2000:23:59:59 +0000]"));
	g_free(s);
}

static void
no_forged_lines(void)
{
	struct access a = {
		.remote = TEXT("h"), .user = TEXT("a b\n"), .line = TEXT("GET /\r\n\x1b[2J\\ \"\x7f\0x HTTP/1.1"),
		.referer = TEXT("\" 200"), .agent = TEXT("\xc3\xa9"), .status = 404, .wall_s = 1,
	};
	char *s = line(&a);

	g_assert_cmpstr(s, ==, "h - a\\x20b\\x0a [01/Jan/1970:00:00:01 +0000] "
	    "\"GET /\\x0d\\x0a\\x1b[2J\\x5c \\x22\\x7f\\x00x HTTP/1.1\" 404 0 \"\\x22 200\" \"\xc3\xa9\"\n");
	g_free(s);
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/accesslog/combined-format", combined);
	g_test_add_func("/accesslog/empty-fields-are-dashes", empty_fields);
	g_test_add_func("/accesslog/date-of-each-second", date_follows_the_clock);
	g_test_add_func("/accesslog/clients-cannot-forge-lines", no_forged_lines);
	return (g_test_run());
}
