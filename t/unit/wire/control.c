/* t/unit/wire/control.c -- the table of control headers, and values of each kind. */
#include <string.h>

#include "t/unit/test.h"
#include "wire/codec/control.h"
#include "wire/http1/headers.h"
#include "wire/http1/media_type.h"

TEST("/control/table")
{
	enum control c, d;

	for (c = 0; c < CONTROLS; c++) {
		g_assert_cmpint(control_find(controls[c].name), ==, c);
		g_assert_true(header_is_control(controls[c].name)); /* in a family */
		g_assert_true(header_is_token(controls[c].name));
		g_assert_cmpuint(strlen(controls[c].doc), >, 0);
		for (d = 0; d < c; d++)
			g_assert_false(text_ieq(controls[c].name, controls[d].name));
	}
	g_assert_cmpint(control_find(TEXT("x-SENDFILE")), ==, CONTROL_SENDFILE);
	g_assert_cmpint(control_find(TEXT("X-Sendfile-Type")), ==, CONTROLS);
	g_assert_cmpint(control_find(TEXT("")), ==, CONTROLS);
}

TEST("/control/families")
{
	static const char *const inside[] = { "X-Sendfile-Type", "x-accel-mapping",
		"X-LIGHTTPD-anything", "X-Reproxy-Expected-Size", "X-Rewrite-Unknown",
		"X-LiteSpeed-Location-2" };
	static const char *const outside[] = { "X-Send", "X-Accel", "X-Acceleration", "Sendfile",
		"X_Sendfile", "", "X", "Range" };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(inside); i++)
		g_assert_true(header_is_control(text_of(inside[i])));
	for (i = 0; i < G_N_ELEMENTS(outside); i++)
		g_assert_false(header_is_control(text_of(outside[i])));
}

static const struct {
	enum control_value kind;
	const char *value;
	bool ok;
} values[] = {
	{ CONTROL_NUMBER, "0", true },
	{ CONTROL_NUMBER, "18446744073709551615", true },
	{ CONTROL_NUMBER, "18446744073709551616", false },
	{ CONTROL_NUMBER, "", false },
	{ CONTROL_NUMBER, "-1", false },
	{ CONTROL_NUMBER, "1k", false },
	{ CONTROL_TIME, "3600", true },
	{ CONTROL_TIME, "@0", true },
	{ CONTROL_TIME, "@253402300799", true },
	{ CONTROL_TIME, "@253402300800", false },
	{ CONTROL_TIME, "@", false },
	{ CONTROL_TIME, "", false },
	{ CONTROL_TIME, "off", false },
	{ CONTROL_SWITCH, "yes", true },
	{ CONTROL_SWITCH, "NO", true },
	{ CONTROL_SWITCH, "off", false },
	{ CONTROL_SWITCH, "", false },
	{ CONTROL_NAME, "utf-8", true },
	{ CONTROL_NAME, "utf-8; x", false },
	{ CONTROL_NAME, "\"utf-8\"", false },
	{ CONTROL_NAME, "", false },
	{ CONTROL_NAME, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true },
	{ CONTROL_NAME, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
	    false },
	{ CONTROL_PATH, "/a", true },
	{ CONTROL_PATH, "a", false },
	{ CONTROL_PATH, "", false },
	{ CONTROL_URI, "/a?b", true },
	{ CONTROL_URI, "@named", false },
	{ CONTROL_URL, "", false },
	{ CONTROL_PIECES, "", false },
};

TEST("/control/values")
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(values); i++) {
		const char *why = control_fault(values[i].kind, text_of(values[i].value));

		if ((why == NULL) != values[i].ok)
			g_error("kind %d \"%s\": %s", values[i].kind, values[i].value, why);
	}
}

static const struct {
	const char *url, *authority, *target; /* authority NULL: refused */
} urls[] = {
	{ "http://h:1/a?b", "h:1", "/a?b" },
	{ "HTTP://[::1]:80", "[::1]:80", "/" },
	{ "http://h//x/../y", "h", "//x/../y" },
	{ "http:///a", NULL, NULL },
	{ "http://", NULL, NULL },
	{ "http://u@h/", NULL, NULL },
	{ "http://h?q", NULL, NULL },
	{ "http://h/a b", NULL, NULL },
	{ "http://h/a#b", NULL, NULL },
	{ "http://h/\xc3\xa4", NULL, NULL },
	{ "http://h/\t", NULL, NULL },
	{ "https://h/", NULL, NULL },
	{ "h/", NULL, NULL },
	{ "", NULL, NULL },
};

TEST("/control/urls")
{
	struct text authority, target;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(urls); i++) {
		bool ok = control_url(text_of(urls[i].url), &authority, &target);

		g_assert_true(ok == (urls[i].authority != NULL));
		if (!ok)
			continue;
		g_assert_true(text_eq(authority, text_of(urls[i].authority)));
		g_assert_true(text_eq(target, text_of(urls[i].target)));
	}
}

static const struct {
	const char *type, *charset, *want;
} types[] = {
	{ "text/html", "koi8-r", "text/html; charset=koi8-r" },
	{ "Text/Plain", "x", "Text/Plain; charset=x" },
	{ "text/html; charset=utf-8", "x", "text/html; charset=x" },
	{ "text/html;CHARSET=utf-8 ;format=flowed", "x", "text/html;format=flowed; charset=x" },
	{ "text/html;", "x", "text/html; charset=x" },
	{ "text/x; a=\"1;2\"", "x", "text/x; a=\"1;2\"; charset=x" },
	{ "text/x;a;b;c;d;e;f;g;h;i;j;k;l;m;n;o", "x",
	    "text/x;a;b;c;d;e;f;g;h;i;j;k;l;m;n;o; charset=x" },
	{ "image/png", "x", "image/png" },
	{ "textual/html", "x", "textual/html" },
	{ "", "x", "" },
};

TEST("/control/charset")
{
	char *dst;
	size_t i, n;

	for (i = 0; i < G_N_ELEMENTS(types); i++) {
		struct text type = text_of(types[i].type), charset = text_of(types[i].charset);

		dst = g_malloc(type.n + charset.n + MEDIA_TYPE_MORE);
		n = media_type_charset(dst, type, charset);
		g_assert_cmpmem(dst, n, types[i].want, strlen(types[i].want));
		g_free(dst);
	}
}
