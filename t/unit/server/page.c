/* t/unit/server/page.c -- error pages: readable, small, self-contained, without markup of
 * clients. */
#include "base/buf.h"
#include "server/reply/page.h"
#include "t/unit/test.h"

static char *
page(int status)
{
	struct buf b;
	char *s;

	buf_init(&b, 0);
	page_error(&b, status);
	g_assert_false(b.failed);
	s = g_strndup(b.p, b.n);
	buf_free(&b);
	return (s);
}

TEST("/page/small-self-contained-and-names-the-status")
{
	static const int status[] = { 400, 403, 404, 405, 408, 412, 413, 414, 416, 417, 431, 500,
		501, 502, 503, 504, 505, 418, 599 };
	char number[8], *s;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(status); i++) {
		s = page(status[i]);
		g_snprintf(number, sizeof(number), "<b>%d</b>", status[i]);
		g_assert_nonnull(strstr(s, number));
		g_assert_true(g_str_has_prefix(s, "<!doctype html>"));
		g_assert_cmpuint(strlen(s), <, 1024);
		g_assert_nonnull(strstr(s, "light dark"));
		g_assert_null(strstr(s, "<script"));
		g_assert_null(strstr(s, "://"));
		g_free(s);
	}
}

TEST("/page/redirect-links-to-its-target")
{
	struct buf b;
	char *s;

	buf_init(&b, 0);
	page_redirect(&b, 301, TEXT("/a/\"><b>/"));
	s = g_strndup(b.p, b.n);
	g_assert_nonnull(
	    strstr(s, "<a href=\"/a/&quot;&gt;&lt;b&gt;/\">/a/&quot;&gt;&lt;b&gt;/</a>"));
	g_assert_nonnull(strstr(s, "<b>301</b>"));
	g_free(s);
	buf_free(&b);
}
