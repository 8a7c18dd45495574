/* t/unit/accel-warm/words.c -- text in and out: sizes, --warm, entries of a list, the progress
 * line, the summary, names in messages. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "t/unit/test.h"
#include "walk/list.h"
#include "accel-warm/options.h"
#include "walk/progress.h"
#include "walk/report.h"
#include "files/warm/mode.h"

TEST("/options/bytes")
{
	static const struct {
		const char *text;
		uint64_t n; /* 0: refused */
	} cases[] = {
		{ "1", 1 },
		{ "4096", 4096 },
		{ "64k", 65536 },
		{ "2M", 2 << 20 },
		{ "1g", 1 << 30 },
		{ "1048576g", 1ull << 50 },
		{ "", 0 },
		{ "0", 0 },
		{ "k", 0 },
		{ "-1", 0 },
		{ "+1", 0 },
		{ "1.5m", 0 },
		{ "1t", 0 },
		{ "1kk", 0 },
		{ " 1", 0 },
		{ "1048577g", 0 },
		{ "\v4096", 0 },
		{ "99999999999999999999", 0 },
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		uint64_t n = 0;

		g_assert_cmpint(text_size(text_of(cases[i].text), 1, 1ull << 50, &n), ==,
		    cases[i].n != 0);
		g_assert_cmpuint(n, ==, cases[i].n);
	}
}

/* The bounds are about bytes, even where the text has a unit. */
TEST("/bounds")
{
	uint64_t n = 0;

	g_assert_true(text_size(text_of("4k"), 4096, 8192, &n) && n == 4096);
	g_assert_true(text_size(text_of("8k"), 4096, 8192, &n) && n == 8192);
	g_assert_false(text_size(text_of("3k"), 4096, 8192, &n));
	g_assert_false(text_size(text_of("9k"), 4096, 8192, &n));
	g_assert_false(text_size(text_of("4096m"), 1, 1024, &n));
}

TEST("/options/warm")
{
	enum warm_how how;
	uint64_t n;

	g_assert_true(warm_mode_parse("stat", &how, &n) && how == WARM_STAT);
	g_assert_true(warm_mode_parse("open", &how, &n) && how == WARM_OPEN);
	g_assert_true(warm_mode_parse("read:all", &how, &n) && how == WARM_READ && n == WARM_ALL);
	g_assert_true(warm_mode_parse("read:16m", &how, &n) && how == WARM_READ && n == 16 << 20);
	g_assert_false(warm_mode_parse("read", &how, &n));
	g_assert_false(warm_mode_parse("read:", &how, &n));
	g_assert_false(warm_mode_parse("", &how, &n));
	g_assert_false(warm_mode_parse("auto", &how, &n)); /* there is no server to wait for */
}

TEST("/options/warm-auto")
{
	struct warm_conf c = { .soon = 1 };

	g_assert_true(warm_mode_parse_auto("read:1m", &c) && c.before == 1 << 20 && c.soon == 0);
	g_assert_true(warm_mode_parse_auto("auto", &c) && c.how == WARM_READ);
	g_assert_cmpuint(c.before, ==, 16 << 20);
	g_assert_cmpuint(c.soon, ==, 16 << 20);
	g_assert_true(warm_mode_parse_auto("auto:threads", &c) && c.how == WARM_READ);
	g_assert_cmpuint(c.before, ==, 0);
	g_assert_cmpuint(c.soon, ==, 16 << 20);
	g_assert_false(warm_mode_parse_auto("auto:", &c));
	g_assert_false(warm_mode_parse_auto("automatic", &c));
	g_assert_false(warm_mode_parse_auto("auto:loop", &c));
}

TEST("/list/entries")
{
	const struct walk_conf plain = { .list = "-" }, below = { .list = "-", .below = "/r" },
			       urls = { .list = "-", .below = "/r", .urls = true };
	const struct {
		const struct walk_conf *conf;
		const char *entry, *path;
		int err;
	} cases[] = {
		{ &plain, "/a/../b", "/a/../b", 0 },
		{ &plain, "a%20b?", "a%20b?", 0 },
		{ &plain, "", "", -ENOENT },
		{ &plain, "\r", "\r", 0 },
		{ &below, "/a", "a", 0 },
		{ &below, "//a/b", "a/b", 0 },
		{ &below, "/", ".", 0 },
		{ &below, "\xff\n", "\xff\n", 0 },
		{ &urls, "/a%20b?c=/d#e", "a b", 0 },
		{ &urls, "http://h/a/./b/../c\r", "a/c", 0 },
		{ &urls, "https://h", ".", 0 },
		{ &urls, "//x//y", "x/y", 0 },
		{ &urls, "/../x", NULL, -EINVAL },
		{ &urls, "/%2e%2e/x", NULL, -EINVAL },
		{ &urls, "/a%00", NULL, -EINVAL },
		{ &urls, "a/b", NULL, -EINVAL },
		{ &urls, "/%zz", NULL, -EINVAL },
		{ &urls, "\r", "", -ENOENT },
	};
	g_autoptr(GString) path = g_string_new(NULL);

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_assert_cmpint(walk_list_entry(cases[i].conf, cases[i].entry,
				    strlen(cases[i].entry), path),
		    ==, cases[i].err);
		if (cases[i].path != NULL)
			g_assert_cmpstr(path->str, ==, cases[i].path);
	}
	g_assert_cmpint(walk_list_entry(&plain, "a\0b", 3, path), ==, -EINVAL);
}

static const char *
line(const struct walk_progress *p, unsigned width)
{
	static char text[200];
	g_autoptr(GString) s = g_string_new(NULL);

	walk_progress_line(p, width, s);
	g_strlcpy(text, s->str, sizeof(text));
	return (text);
}

TEST("/progress/line")
{
	struct walk_progress p = { .counters = { .found = 900, .finished = 300 },
		.rate = 50,
		.seconds = 6 };

	g_assert_cmpstr(line(&p, 79), ==, "300 done, 900 found so far  50/s");
	p.total = 900;
	g_assert_cmpstr(line(&p, 0), ==, " 33 %  300 of 900  50/s  ETA 0:12");
	g_assert_cmpstr(line(&p, 47), ==, "[===>      ]   33 %  300 of 900  50/s  ETA 0:12");
	g_assert_cmpstr(line(&p, 46), ==, " 33 %  300 of 900  50/s  ETA 0:12");
	g_assert_cmpstr(line(&p, 10), ==, " 33 %  300");
	g_assert_cmpstr(line(&p, 150), ==,
	    "[=============>                          ]   33 %  300 of 900  50/s  ETA 0:12");
	p.counters.bytes = 12345678;
	p.counters.errors = 2;
	p.stuck = 1;
	p.rate = 0.1;
	g_assert_cmpstr(line(&p, 0), ==,
	    " 33 %  300 of 900  0/s  12.3 MB  ETA 1:40:00  2 errors  1 without answer");
	p.total = 200; /* an estimate that was too low */
	g_assert_cmpstr(line(&p, 40), ==, "100 %  300 of 200  0/s  12.3 MB  2 error");
}

TEST("/progress/summary")
{
	struct walk_progress p = {
		.counters = { .files = 1000, .directories = 10, .found = 1000, .finished = 1000 },
		.seconds = 2
	};
	g_autoptr(GString) s = g_string_new(NULL);

	walk_progress_summary(&p, false, s);
	g_assert_cmpstr(s->str, ==,
	    "1000 files, 10 directories in 2.00 s: 500 files/s; 0 errors\n");
	g_string_truncate(s, 0);
	p.counters.bytes = 5000000;
	p.counters.vanished = 3;
	p.seconds = 20;
	walk_progress_summary(&p, true, s);
	g_assert_cmpstr(s->str, ==,
	    "interrupted: 1000 files, 10 directories, 5.0 MB in 20 s: 50 files/s, 250 kB/s; 3 "
	    "vanished meanwhile; 0 errors\n");
	g_string_truncate(s, 0);
	walk_progress_json(&p, true, s);
	g_assert_cmpstr(s->str, ==,
	    "{\"files\":1000,\"directories\":10,\"others\":0,\"bytes\":5000000,\"errors\":0,"
	    "\"vanished\":3,\"resumed\":0,\"excluded\":0,\"elsewhere\":0,\"again\":0,\"found\":"
	    "1000,\"finished\":1000,\"seconds\":20.000000,\"files_per_second\":50.0,\"without_"
	    "answer\":0,\"interrupted\":true}\n");
}

static void
check_quote(const char *path, const char *expected)
{
	struct buf b;

	buf_init(&b, 0);
	buf_log_quoted(&b, text_of(path));
	buf_char(&b, '\0');
	g_assert_cmpstr(b.p, ==, expected);
	buf_free(&b);
}

TEST("/report/quote")
{
	check_quote("a b\n\033[m\"\\\303\244", "a b\\x0a\\x1b[m\\x22\\x5c\303\244");
	check_quote("\303\244\377", "\303\244\\xff");
	/* CSI in one, right to left */
	check_quote("\302\23331m\342\200\256\302\240", "\\xc2\\x9b31m\\xe2\\x80\\xae\302\240");
}
