/* t/unit/base/buf.c -- growth, bound and escapes of a buffer; the arena, which bounds memory,
 * too. */
#include "base/arena.h"
#include "base/buf.h"
#include "t/unit/test.h"

TEST("/buf/grow")
{
	struct buf b;
	unsigned i;

	buf_init(&b, 0);
	for (i = 0; i < 10000; i++)
		buf_u64(&b, i % 10);
	g_assert_false(b.failed);
	g_assert_cmpuint(b.n, ==, 10000);
	for (i = 0; i < 10000; i++)
		g_assert_cmpint(b.p[i], ==, '0' + (int)(i % 10));
	buf_drop(&b, 9998);
	g_assert_true(text_eq(buf_as_text(&b), TEXT("89")));
	buf_drop(&b, 2);
	g_assert_cmpuint(b.n, ==, 0);
	buf_free(&b);
	g_assert_null(b.p);
	buf_free(&b);
}

/* No byte is asked for, so nothing is allocated; that is not a failure. */
TEST("/buf/nothing")
{
	struct buf b;

	buf_init(&b, 0);
	g_assert_nonnull(buf_extend(&b, 0));
	buf_add(&b, "", 0);
	g_assert_false(b.failed);
	g_assert_null(b.p);
	buf_free(&b);
}

TEST("/buf/bound")
{
	volatile size_t huge = SIZE_MAX; /* gcc would warn of a constant */
	struct buf b;

	buf_init(&b, 5);
	buf_str(&b, "12345");
	g_assert_false(b.failed);
	buf_str(&b, "");
	g_assert_false(b.failed);
	buf_char(&b, '6');
	g_assert_true(b.failed);
	buf_str(&b, "");
	g_assert_true(text_eq(buf_as_text(&b), TEXT("12345")));
	buf_char(&b, '6');
	g_assert_true(b.failed);
	g_assert_cmpuint(b.n, ==, 5);
	buf_free(&b);
	g_assert_false(b.failed); /* as after buf_init(), the bound kept */
	buf_str(&b, "123456");
	g_assert_true(b.failed);
	buf_free(&b);
	buf_init(&b, 0);
	buf_char(&b, 'x');
	buf_add(&b, "", huge);
	g_assert_true(b.failed);
	buf_free(&b);
}

TEST("/buf/printf")
{
	struct buf b;

	buf_init(&b, 0);
	buf_printf(&b, "%d-%s", 7, "x");
	g_assert_true(text_eq(buf_as_text(&b), TEXT("7-x")));
	buf_printf(&b, "%0700d", 1); /* longer than the buffer it tries first */
	g_assert_cmpuint(b.n, ==, 703);
	g_assert_cmpint(b.p[702], ==, '1');
	buf_drop(&b, b.n);
	buf_printf(&b, "%0512d", 1); /* one byte more than it holds, with its NUL */
	g_assert_cmpuint(b.n, ==, 512);
	g_assert_cmpint(b.p[511], ==, '1');
	buf_free(&b);
}

#define FFFD "\xef\xbf\xbd"

static const struct {
	struct text in;
	const char *log, *html, *url, *json;
} escapes[] = {
	{ TEXT(""), "", "", "", "\"\"" },
	{ TEXT("a/b-c_d.e~1"), "a/b-c_d.e~1", "a/b-c_d.e~1", "a/b-c_d.e~1", "\"a/b-c_d.e~1\"" },
	{ TEXT("<a href=\"'&"), "<a href=\\x22'&", "&lt;a href=&quot;&#39;&amp;",
	    "%3Ca%20href%3D%22%27%26", "\"<a href=\\\"'&\"" },
	{ TEXT("\\\r\n\t\x7f\x1b"), "\\x5c\\x0d\\x0a\\x09\\x7f\\x1b", "\\\\x0d\\x0a\\x09\\x7f\\x1b",
	    "%5C%0D%0A%09%7F%1B", "\"\\\\\\r\\n\\t\\u007f\\u001b\"" },
	{ TEXT("a\0b"), "a\\x00b", NULL, "a%00b", "\"a\\u0000b\"" },
	{ TEXT("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"), "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
	    "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "%C3%A4%E2%82%AC%F0%9F%98%80",
	    "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"" },
	{ TEXT("a\xc2\x9b"
	       "31m\x9b\xe2\x80\xae"
	       "b"),
	    "a\\xc2\\x9b31m\\x9b\\xe2\\x80\\xaeb", "a\\xc2\\x9b31m\\x9b\\xe2\\x80\\xaeb",
	    "a%C2%9B31m%9B%E2%80%AEb", "\"a\\u009b31m" FFFD "\\u202eb\"" },
};

/* Bytes that are not UTF-8: cut short, overlong, a surrogate, above U+10FFFF. */
static const struct {
	struct text in;
	const char *json;
} broken[] = {
	{ TEXT("a\xc3"), "\"a" FFFD "\"" },
	{ TEXT("\xc3(\x80"), "\"" FFFD "(" FFFD "\"" },
	{ TEXT("\xc0\xaf"), "\"" FFFD FFFD "\"" },
	{ TEXT("\xe0\x80\xaf"), "\"" FFFD FFFD FFFD "\"" },
	{ TEXT("\xed\xa0\x80"), "\"" FFFD FFFD FFFD "\"" },
	{ TEXT("\xf4\x90\x80\x80"), "\"" FFFD FFFD FFFD FFFD "\"" },
	{ TEXT("\xf0\x9f\x98"), "\"" FFFD FFFD FFFD "\"" },
	{ TEXT("\xff"), "\"" FFFD "\"" },
};

static void
check_escape(void (*escape)(struct buf *, struct text), struct text in, const char *want)
{
	struct buf b;

	if (want == NULL)
		return;
	buf_init(&b, 0);
	escape(&b, in);
	buf_char(&b, '\0');
	g_assert_cmpstr(b.p, ==, want);
	buf_free(&b);
}

TEST("/buf/escapes")
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(escapes); i++) {
		check_escape(buf_log_quoted, escapes[i].in, escapes[i].log);
		check_escape(buf_html, escapes[i].in, escapes[i].html);
		check_escape(buf_urlenc, escapes[i].in, escapes[i].url);
		check_escape(buf_json, escapes[i].in, escapes[i].json);
	}
	for (i = 0; i < G_N_ELEMENTS(broken); i++)
		check_escape(buf_json, broken[i].in, broken[i].json);
}

/* ---------------------------------------------------------------- arena */

TEST("/arena/lent")
{
	char lent[100], *p, *big;
	struct arena a;
	struct text t;
	int round;

	arena_init(&a, lent + 1, sizeof(lent) - 1, 20000); /* not on the grid of 16 */
	for (round = 0; round < 3; round++) {
		p = arena_get(&a, 3);
		g_assert_true(p > lent && p + 3 <= lent + sizeof(lent));
		g_assert_cmpuint((uintptr_t)p % 16, ==, 0);
		t = arena_text(&a, TEXT("a\0b"));
		g_assert_true(text_eq(t, TEXT("a\0b")));
		g_assert_cmpint(t.p[3], ==, '\0');
		big = arena_get(&a, 10000);
		g_assert_cmpuint((uintptr_t)big % 16, ==, 0);
		memset(big, 1, 10000);
		g_assert_null(arena_get(&a, 10000));
		g_assert_nonnull(arena_get(&a, 5000));
		g_assert_null(arena_get(&a, SIZE_MAX));
		g_assert_null(arena_text(&a, (struct text){ lent, 9999 }).p);
		arena_reset(&a);
	}
}

/* No memory is lent, or too little for one aligned piece: the first piece comes from malloc(). */
TEST("/arena/bare")
{
	struct arena a;
	char tiny[1];
	int i;

	arena_init(&a, NULL, 0, 0);
	for (i = 0; i < 1000; i++)
		memset(arena_get(&a, (size_t)i), 1, (size_t)i);
	g_assert_cmpstr(arena_text(&a, TEXT_NONE).p, ==, "");
	g_assert_cmpstr(arena_join(&a, TEXT("/a"), TEXT("/b")).p, ==, "/a/b");
	arena_reset(&a);
	arena_init(&a, tiny, sizeof(tiny), 64);
	g_assert_nonnull(arena_get(&a, 16));
	arena_reset(&a);
}
