/* t/unit/base/utf8.c -- which characters are shown as they are, with one rule for all logs and
 * pages. */
#include "base/buf.h"
#include "base/log.h"
#include "base/utf8.h"
#include "t/unit/test.h"

static const struct {
	uint32_t from, to;
} odd_ranges[] = {
	{ 0, 0x1f },
	{ 0x7f, 0x9f },
	{ 0x61c, 0x61c },
	{ 0x200e, 0x200f },
	{ 0x2028, 0x202e },
	{ 0x2066, 0x2069 },
	{ 0xfeff, 0xfeff },
};

static bool
is_odd(uint32_t c)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(odd_ranges); i++)
		if (c >= odd_ranges[i].from && c <= odd_ranges[i].to)
			return (true);
	return (false);
}

/* Every character there is, between two others. */
TEST("/utf8/all")
{
	struct text t, shown, odd;
	char s[8];
	uint32_t c;
	int n;

	for (c = 0; c <= 0x10ffff; c++) {
		if (c >= 0xd800 && c <= 0xdfff)
			continue;
		s[0] = 'a';
		n = g_unichar_to_utf8(c, s + 1);
		s[1 + n] = 'b';
		t = (struct text){ s, (size_t)n + 2 };
		shown = utf8_visible(&t, &odd);
		g_assert_cmpuint(utf8_char((struct text){ s + 1, (size_t)n }), ==, c);
		if (is_odd(c)) {
			g_assert_cmpuint(shown.n, ==, 1);
			g_assert_cmpuint(odd.n, ==, (size_t)n);
			g_assert_cmpuint(t.n, ==, 1);
		} else {
			g_assert_cmpuint(shown.n, ==, (size_t)n + 2);
			g_assert_cmpuint(odd.n, ==, 0);
		}
	}
}

/* Bytes that are not UTF-8, one by one. */
TEST("/utf8/broken")
{
	static const struct {
		struct text in;
		const char *log;
	} cases[] = {
		{ TEXT("a\x80z"), "a\\x80z" },
		{ TEXT("\x9b"
		       "31m"),
		    "\\x9b31m" },
		{ TEXT("\xc3"), "\\xc3" },
		{ TEXT("\xc0\xaf"), "\\xc0\\xaf" },
		{ TEXT("\xe2\x80"), "\\xe2\\x80" },
		{ TEXT("\xed\xa0\x80"), "\\xed\\xa0\\x80" },
		{ TEXT("\xff\xc3\xa4"), "\\xff\xc3\xa4" },
		{ TEXT("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80" },
		{ TEXT("\"\\"), "\\x22\\x5c" },
	};
	struct buf b;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(cases); i++) {
		buf_init(&b, 0);
		buf_log_quoted(&b, cases[i].in);
		g_assert_cmpmem(b.p, b.n, cases[i].log, strlen(cases[i].log));
		buf_free(&b);
	}
}

static void
keep_line(void *arg, struct text line)
{
	g_string_append_len(arg, line.p, (gssize)line.n);
}

/* Random bytes: the error log writes what buf_log_quoted() writes, and logs, pages and JSON are
 * UTF-8 for any input. */
TEST("/utf8/writers-agree")
{
	static const char bits[] =
	    "a\"\\<&\n\x1b\x7f\x80\x9b\xc2\xe2\x80\xae\xef\xbb\xbf\xed\xa0\xf0\x9f\x98\x80\xff";
	void (*const writers[])(struct buf *, struct text) = { buf_log_quoted, buf_html, buf_json };
	g_autoptr(GString) line = g_string_new(NULL);
	char in[40];
	unsigned round, i;
	struct buf b;

	log_set_sink(keep_line, line);
	for (round = 0; round < 20000; round++) {
		struct text t = { in, (size_t)g_test_rand_int_range(1, (gint32)sizeof(in)) };

		for (i = 0; i < t.n; i++)
			in[i] = bits[g_test_rand_int_range(0, (gint32)sizeof(bits) - 1)];
		for (i = 0; i < G_N_ELEMENTS(writers); i++) {
			buf_init(&b, 0);
			writers[i](&b, t);
			g_assert_true(g_utf8_validate(b.p, (gssize)b.n, NULL));
			g_assert_null(memchr(b.p, '\n', b.n));
			g_assert_null(memchr(b.p, 0x1b, b.n));
			buf_free(&b);
		}
		in[0] = ' '; /* so it is quoted */
		buf_init(&b, 0);
		buf_str(&b, " t=\"");
		buf_log_quoted(&b, t);
		buf_str(&b, "\"\n");
		g_string_truncate(line, 0);
		log_event(LOG_WARN, NULL, "any", LF_TEXT("t", t));
		g_assert_true(
		    line->len > b.n && memcmp(line->str + line->len - b.n, b.p, b.n) == 0);
		buf_free(&b);
	}
	log_set_sink(NULL, NULL);
}

/* A line that is cut is not cut within a character. */
TEST("/utf8/cut")
{
	GString *line = g_string_new(NULL), *value = g_string_new(NULL);
	unsigned shift;

	log_set_sink(keep_line, line);
	for (shift = 0; shift < 4; shift++) {
		g_string_truncate(value, 0);
		g_string_append_len(value, "xxx", (gssize)shift);
		while (value->len < 5000)
			g_string_append(value, "\xe2\x82\xac");
		g_string_truncate(line, 0);
		log_event(LOG_WARN, NULL, "long", LF_STR("t", value->str));
		g_assert_true(g_utf8_validate(line->str, (gssize)line->len, NULL));
		g_assert_true(g_str_has_suffix(line->str, "...\n"));
	}
	log_set_sink(NULL, NULL);
	g_string_free(line, TRUE);
	g_string_free(value, TRUE);
}
