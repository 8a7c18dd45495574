/* t/unit/accel-pool/words.c -- text in and out: shapes, names, markers, lines of access logs, the
 * order of URLs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "accel-pool/log_line.h"
#include "accel-pool/marker.h"
#include "accel-pool/urls.h"
#include "t/unit/test.h"

static struct spec
spec_of(const char *text)
{
	struct spec s = { 0, 0, 0, 0 };

	g_assert_null(spec_parse(text_of(text), &s));
	return (s);
}

TEST("/words/spec")
{
	static const struct {
		const char *in, *out, *dir; /* out NULL: refused */
	} cases[] = {
		{ "1000x100x100k", "1000x100x100k", "100k" },
		{ "1x1x102400", "1x1x100k", "100k" },
		{ "1x1x0", "1x1x0", "0" },
		{ "2x3x512", "2x3x512", "512" },
		{ "1x1000x10m", "1x1000x10m", "10m" },
		{ "1x1x1024m", "1x1x1g", "1g" },
		{ "1x1x4k-1m", "1x1x4k-1m", "4k-1m" },
		{ "1x1x4k-4096", "1x1x4k", "4k" },
		{ "1000000x1000000x4294", "1000000x1000000x4294", "4294" },
		{ "1000000x1000000x1m", NULL, NULL },
		{ "1000001x1x1", NULL, NULL },
		{ "1x1000001x1", NULL, NULL },
		{ "1x1x1025g", NULL, NULL },
		{ "1x1x0-1", NULL, NULL },
		{ "1x1x2-1", NULL, NULL },
		{ "1x1x1-", NULL, NULL },
		{ "1x1x-1", NULL, NULL },
		{ "1x1x1-2-3", NULL, NULL },
		{ "1x1x1x1", NULL, NULL },
		{ "0x1x1", NULL, NULL },
		{ "x1x1", NULL, NULL },
		{ "1x1x", NULL, NULL },
		{ "1x1", NULL, NULL },
		{ "", NULL, NULL },
		{ "+1x1x1", NULL, NULL },
	};
	char text[SPEC_TEXT_MAX];
	struct spec s;

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_assert_true(
		    (spec_parse(text_of(cases[i].in), &s) == NULL) == (cases[i].out != NULL));
		if (cases[i].out == NULL)
			continue;
		g_assert_cmpuint(spec_put(&s, text), ==, strlen(cases[i].out));
		g_assert_cmpstr(text, ==, cases[i].out);
		spec_put_dir(&s, text);
		g_assert_cmpstr(text, ==, cases[i].dir);
	}
}

TEST("/words/places")
{
	const struct spec s = spec_of("20000x30x1073741823-1g");
	struct spec_place at = { 19999, 29 }, found = { 0, 0 };
	char path[SPEC_TEXT_MAX];
	static const char *const others[] = { "1k/0000/0000.bin", "0000/0000.bin", "", "/",
		"1073741823-1g/20000/0000.bin", "1073741823-1g/0000/0030.bin",
		"1073741823-1g/0000/000.bin", "1073741823-1g/0000/0000.bin2",
		"1073741823-1g/0000/.bin", "1073741823-1g/0000/../0000.bin",
		"1073741823-1g/00000/0000.bin" };

	g_assert_cmpuint(spec_put_path(&s, at, path), ==, strlen(path));
	g_assert_cmpstr(path, ==, "1073741823-1g/19999/0029.bin");
	g_assert_true(spec_place_of(&s, text_of(path), &found));
	g_assert_cmpuint(found.dir, ==, 19999);
	g_assert_cmpuint(found.file, ==, 29);
	for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
		g_assert_false(spec_place_of(&s, text_of(others[i]), &found));
	for (at.dir = 0; at.dir < 100; at.dir++) {
		uint64_t size = spec_size(&s, at, 1);

		g_assert_true(size == s.min || size == s.max);
	}
}

/* As many files in each octave, within bounds; the same on all machines. */
TEST("/words/sizes")
{
	const struct spec s = spec_of("100x160x1k-64k");
	unsigned octave[6] = { 0 };
	uint64_t sum = 0, size;
	struct spec_place at;

	for (at.dir = 0; at.dir < s.dirs; at.dir++)
		for (at.file = 0; at.file < s.files; at.file++) {
			size = spec_size(&s, at, 1);
			g_assert_true(size >= 1024 && size <= 65536);
			octave[MIN(63 - __builtin_clzll(size) - 10, 5)]++;
			sum += size;
		}
	for (unsigned i = 0; i < G_N_ELEMENTS(octave); i++)
		g_assert_true(octave[i] > 2400 && octave[i] < 2900);
	g_assert_cmpuint(spec_bytes(&s, 1), ==, sum);
	g_assert_cmpuint(sum, ==, UINT64_C(254156236));
	g_assert_cmpuint(spec_bytes(&s, 2), !=, sum);
}

TEST("/words/marker")
{
	static const struct {
		const char *text;
		int err;
		unsigned n;
	} cases[] = {
		{ "accel-pool 1\nseed 7\nnew\nspec 2x3x4k\nspec 1x1x1-9\n", 0, 2 },
		{ "accel-pool 1\n", 0, 0 },
		{ "accel-pool 1\nspec 2x3x4k\nspec 4x4x4k\n", 0, 1 },
		{ "accel-pool 1\nspec 2x3x4k\nspec 4x2x4k\n", -EPROTO, 0 },
		{ "accel-pool 2\n", -EPROTO, 0 },
		{ "", -EPROTO, 0 },
		{ "accel-pool 1\nseed x\n", -EPROTO, 0 },
		{ "accel-pool 1\nspec\n", -EPROTO, 0 },
		{ "accel-pool 1\nspec ../x1x1\n", -EPROTO, 0 },
		{ "accel-pool 1\nmore\n", -EPROTO, 0 },
	};
	struct marker m, again;
	struct buf b;
	char spec[32];

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_assert_cmpint(marker_parse(text_of(cases[i].text), &m), ==, cases[i].err);
		if (cases[i].err != 0)
			continue;
		g_assert_cmpuint(m.n, ==, cases[i].n);
		buf_init(&b, 0);
		marker_put(&m, &b);
		g_assert_cmpint(marker_parse(buf_as_text(&b), &again), ==, 0);
		g_assert_cmpmem(&again, sizeof(again), &m, sizeof(m));
		buf_free(&b);
	}
	marker_parse(TEXT("accel-pool 1\n"), &m);
	for (unsigned i = 1; i <= SPECS_MAX + 1; i++) {
		struct spec s;

		g_snprintf(spec, sizeof(spec), "1x1x%u", i);
		s = spec_of(spec);
		g_assert_true((marker_add(&m, &s) == NULL) == (i <= SPECS_MAX));
	}
	buf_init(&b, 0);
	marker_put(&m, &b);
	g_assert_cmpuint(b.n, <, MARKER_MAX);
	buf_free(&b);
}

TEST("/words/log-line")
{
	static const struct {
		const char *line, *method, *target; /* method NULL: not a line of an access log */
		unsigned status;
	} cases[] = {
		{ "h - - [t] \"GET /a HTTP/1.1\" 200 5", "GET", "/a", 200 },
		{ "h - - [t] \"GET /a HTTP/1.1\" 200\r", "GET", "/a", 200 },
		{ "h - a\"b [t] \"GET /a\" 404 -", "GET", "/a", 404 },
		{ "\"GET /a b HTTP/2.0\" 200", "GET", "/a b", 200 },
		{ "h [t] \"GET /\\\"\\\\\\x41\\t\\q\\x4 HTTP/1.0\" 200 1", "GET", "/\"\\A\tqx4",
		    200 },
		{ "h [t] \"-\" 400 0", "-", "", 400 },
		{ "h [t] \"\" 400 0", "", "", 400 },
		{ "h [t] \"GET\" 400 0", "GET", "", 400 },
		{ "h [t] \"GET  HTTP/\" 400 0", "GET", " HTTP/", 400 },
		{ "h [t] \"GET /a HTTP/1.1\" 20 5", NULL, NULL, 0 },
		{ "h [t] \"GET /a HTTP/1.1\" 099 5", NULL, NULL, 0 },
		{ "h [t] \"GET /a HTTP/1.1\" 2000 5", NULL, NULL, 0 },
		{ "h [t] \"GET /a HTTP/1.1\"", NULL, NULL, 0 },
		{ "h [t] \"GET /a HTTP/1.1\\\" 200", NULL, NULL, 0 },
		{ "h [t] \"GET /a\\", NULL, NULL, 0 },
		{ "h [t] GET /a", NULL, NULL, 0 },
		{ "", NULL, NULL, 0 },
	};
	struct log_request r;
	char buf[256];

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_assert_true(
		    log_line_parse(text_of(cases[i].line), buf, &r) == (cases[i].method != NULL));
		if (cases[i].method == NULL)
			continue;
		g_assert_cmpmem(r.method.p, r.method.n, cases[i].method, strlen(cases[i].method));
		g_assert_cmpmem(r.target.p, r.target.n, cases[i].target, strlen(cases[i].target));
		g_assert_cmpuint(r.status, ==, cases[i].status);
	}
}

TEST("/words/target")
{
	static const struct {
		const char *target, *path;
	} cases[] = {
		{ "/a?b", "/a?b" },
		{ "http://h/a", "/a" },
		{ "HTTPS://h:1/", "/" },
		{ "http://h", NULL },
		{ "https://", NULL },
		{ "http://", NULL },
		{ "*", NULL },
		{ "h:443", NULL },
		{ "", NULL },
	};
	struct text path;

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_assert_true(
		    log_target_path(text_of(cases[i].target), &path) == (cases[i].path != NULL));
		if (cases[i].path != NULL)
			g_assert_cmpmem(path.p, path.n, cases[i].path, strlen(cases[i].path));
	}
}

static char *
urls_of(struct urls_conf conf, const char *const *list)
{
	char *text = NULL;
	size_t n = 0;
	struct urls u;

	conf.out = open_memstream(&text, &n);
	urls_init(&u, &conf);
	for (; *list != NULL; list++)
		urls_add(&u, *list, strlen(*list));
	g_assert_cmpint(urls_end(&u), ==, 0);
	urls_free(&u);
	fclose(conf.out);
	return (text);
}

TEST("/words/urls")
{
	static const char *const list[] = { "/c", "/a", "/c", "/b", NULL };
	static const struct {
		struct urls_conf conf;
		const char *out;
	} cases[] = {
		{ { URLS_AS_THEY_COME }, "/c\n/a\n/c\n/b\n" },
		{ { URLS_AS_THEY_COME, .unique = true }, "/c\n/a\n/b\n" },
		{ { URLS_AS_THEY_COME, .limit = 2 }, "/c\n/a\n" },
		{ { URLS_SORTED, "http://h" }, "http://h/a\nhttp://h/b\nhttp://h/c\nhttp://h/c\n" },
		{ { URLS_SORTED, .unique = true, .limit = 2 }, "/a\n/b\n" },
	};
	const struct urls_conf shuffled = { URLS_SHUFFLED, .unique = true, .seed = 3 };
	GHashTable *orders = g_hash_table_new_full(g_str_hash, g_str_equal, free, NULL);

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		char *out = urls_of(cases[i].conf, list);

		g_assert_cmpstr(out, ==, cases[i].out);
		free(out);
	}
	for (unsigned seed = 0; seed < 200; seed++) {
		struct urls_conf conf = shuffled;

		conf.seed = seed;
		g_hash_table_add(orders, urls_of(conf, list));
	}
	g_assert_cmpuint(g_hash_table_size(orders), ==, 6); /* all orders of three */
	g_hash_table_destroy(orders);
}

/* A URL that is longer than accel-load takes is left out. */
TEST("/words/long-urls")
{
	char *whole = g_strnfill(LIST_URL_MAX, 'a'), *more = g_strnfill(LIST_URL_MAX + 1, 'a'),
	     *out;
	const char *const list[] = { more, whole, NULL };

	out = urls_of((struct urls_conf){ URLS_AS_THEY_COME }, list);
	g_assert_cmpuint(strlen(out), ==, LIST_URL_MAX + 1);
	free(out);
	out = urls_of((struct urls_conf){ URLS_AS_THEY_COME, .base = "http://h" }, list);
	g_assert_cmpstr(out, ==, "");
	free(out);
	g_free(whole);
	g_free(more);
}
