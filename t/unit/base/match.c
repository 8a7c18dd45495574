/* t/unit/base/match.c -- patterns, captures, hostile patterns, and many threads on one pattern. */
#include <pthread.h>
#include "base/clock.h"
#include "base/match.h"
#include "base/must.h"
#include "t/unit/test.h"

#define THREADS 4

static struct match *
compile(const char *pattern)
{
	char err[128] = "";
	struct match *m = match_new(pattern, false, err, sizeof(err));

	g_assert_cmpstr(err, ==, "");
	g_assert_nonnull(m);
	return (m);
}

TEST("/match/run")
{
	struct match *m = compile("\\.(jpg|png)$");

	g_assert_cmpint(match_run(m, TEXT("/a.jpg")), ==, MATCH_YES);
	g_assert_cmpint(match_run(m, TEXT("\0\xff.png")), ==, MATCH_YES);
	g_assert_cmpint(match_run(m, TEXT("/a.jpgx")), ==, MATCH_NO);
	g_assert_cmpint(match_run(m, TEXT("")), ==, MATCH_NO);
	g_assert_cmpint(match_run(m, TEXT_NONE), ==, MATCH_NO);
	match_free(m);
	m = compile("^/a.*x$");
	g_assert_cmpint(match_run(m, TEXT("/a\n\r\0x")), ==, MATCH_YES); /* a dot is any byte */
	match_free(m);
	m = compile("^$");
	g_assert_cmpint(match_run(m, TEXT_NONE), ==, MATCH_YES);
	match_free(m);
	match_free(NULL);
}

/* Text that a subject must have is compared first.  It must never make a pattern match less. */
TEST("/match/plain-beginnings")
{
	static const struct {
		const char *pattern, *yes, *no;
	} rows[] = {
		{ "^/static/", "/static/x", "/x/static/" },
		{ "\\.php$", "/a.php", "/a.phq" },
		{ "^/a?b", "/b", "/c" },
		{ "^/a*b", "/aab", "/c" },
		{ "^/a{0}b", "/b", "/ab" },
		{ "^/a+b", "/aab", "/b" },
		{ "^/one|^/two", "/two", "/three" },
		{ "one|two", "two", "three" },
		{ "^/(a|b)c", "/bc", "/c" },
		{ "^/[a|b]c", "/|c", "/cc" },
		{ "^/x[]|]y", "/x|y", "/xy" },
		{ "^/x[^]|]y|z", "z", "/x|y" },
		{ "(?i)^/abc", "/ABC", "/x" },
		{ "^/a(?i)bc", "/aBC", "/Abc" },
		{ "^\\Q/a|b\\E", "/a|b", "/a" },
		{ "^/a\\|b", "/a|b", "/a" },
		{ "\\d+x", "17x", "x" },
		{ "^\\/a\\-b", "/a-b", "/a" },
		{ "(?m)^b", "a\nb", "a" },
		{ "^[[:alpha:]|]x|y", "y", "1x" },
		{ "^a(?=b|c)", "ac", "ad" },
		{ "^(?x) a | b # c", "b", "c" },
		{ "a\\Kb|c", "c", "d" },
		{ "^/123456789012345678901234567890123456789",
		    "/123456789012345678901234567890123456789",
		    "/12345678901234567890123456789012" },
		{ "^$", "", "a" },
		{ "", "a", NULL },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(rows); i++) {
		struct match *m = compile(rows[i].pattern);

		g_test_message("%s", rows[i].pattern);
		g_assert_cmpint(match_run(m, text_of(rows[i].yes)), ==, MATCH_YES);
		if (rows[i].no != NULL)
			g_assert_cmpint(match_run(m, text_of(rows[i].no)), ==, MATCH_NO);
		match_free(m);
	}
}

static void
any_text(GRand *rand, const char *alphabet, size_t max, char *dst)
{
	size_t i, n = (size_t)g_rand_int_range(rand, 0, (gint32)max);

	for (i = 0; i < n; i++)
		dst[i] = alphabet[g_rand_int_range(rand, 0, (gint32)strlen(alphabet))];
	dst[n] = '\0';
}

/* In a group, a pattern has no plain beginning, so PCRE2 alone decides. */
TEST("/match/beginnings-at-random")
{
	GRand *rand = g_rand_new_with_seed(7);
	char pattern[16], group[24], subject[16], err[128];
	unsigned i, j, compared = 0, matched = 0;

	for (i = 0; i < 20000; i++) {
		struct match *m, *g;

		any_text(rand, "^^/ab.\\|()[]*+?{1}$:-x#QEi", 10, pattern);
		g_snprintf(group, sizeof(group), "(?:%s)", pattern);
		m = match_new(pattern, false, err, sizeof(err));
		g = match_new(group, false, err, sizeof(err));
		for (j = 0; m != NULL && g != NULL && j < 8; j++) {
			any_text(rand, "/ab|[]x-1QE", 8, subject);
			g_test_message("/%s/ and \"%s\"", pattern, subject);
			g_assert_cmpint(match_run(m, text_of(subject)), ==,
			    match_run(g, text_of(subject)));
			compared++;
			matched += match_run(g, text_of(subject)) == MATCH_YES;
		}
		match_free(m);
		match_free(g);
	}
	g_rand_free(rand);
	g_assert_cmpuint(compared, >, 10000);
	g_assert_cmpuint(matched, >, 1000);
}

TEST("/match/capture")
{
	struct match *m = compile("^/(a)?(b*)/(.*)$");
	struct text cap[MATCH_CAPTURES];
	int i;

	g_assert_cmpint(match_capture(m, TEXT("/bb/rest"), cap), ==, MATCH_YES);
	g_assert_true(text_eq(cap[0], TEXT("/bb/rest")));
	g_assert_null(cap[1].p);
	g_assert_true(text_eq(cap[2], TEXT("bb")));
	g_assert_true(text_eq(cap[3], TEXT("rest")));
	for (i = 4; i < MATCH_CAPTURES; i++)
		g_assert_null(cap[i].p);
	g_assert_cmpint(match_capture(m, TEXT("/a/"), cap), ==, MATCH_YES);
	g_assert_nonnull(cap[2].p); /* empty, but set */
	g_assert_cmpuint(cap[2].n, ==, 0);
	g_assert_cmpint(match_capture(m, TEXT("x"), cap), ==, MATCH_NO);
	match_free(m);
}

TEST("/match/many-groups")
{
	struct match *m = compile("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)");
	struct text cap[MATCH_CAPTURES];

	g_assert_cmpint(match_capture(m, TEXT("abcdefghijk"), cap), ==, MATCH_YES);
	g_assert_true(text_eq(cap[9], TEXT("i")));
	match_free(m);
}

TEST("/match/errors")
{
	char err[128] = "", tiny[4];

	g_assert_null(match_new("(", false, err, sizeof(err)));
	g_assert_cmpstr(err, !=, "");
	g_assert_null(match_new("[", false, tiny, sizeof(tiny)));
	g_assert_cmpuint(strlen(tiny), <, sizeof(tiny));
}

/* Each needs more steps than allowed, so the result is neither match nor no match.  The last ones
 * are cheap from any one start offset, but not from all offsets together; PCRE2's own limit counts
 * only one. */
TEST("/match/hostile")
{
	static const struct {
		const char *pattern;
		char fill, last;
	} rows[] = {
		{ "^(a+)+$", 'a', '!' },
		{ "(a+)+$", 'a', '!' },
		{ "^(a|aa)+$", 'a', '!' },
		{ "^(.*a){20}$", 'a', '!' },
		{ "x.*y.*z", 'x', 'z' },
		{ "x.*x.*y.*z", 'x', 'z' },
		{ "x(x|q)*y(x|q)*z", 'x', 'z' },
		{ "x*+y[^w]*z", 'x', 'z' },
	};
	g_autofree char *subject = g_malloc0(65001);
	enum match_result got;
	struct match *m;
	uint64_t from;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(rows); i++) {
		memset(subject, rows[i].fill, 65000);
		subject[64999] = rows[i].last;
		m = compile(rows[i].pattern);
		from = clock_cpu_ns();
		got = match_run(m, text_of(subject));
		g_test_message("%s: result %d after %.3f ms", rows[i].pattern, (int)got,
		    (double)(clock_cpu_ns() - from) / NS_PER_MS);
		/* 5 without a sanitizer; the old way: 25 s */
		g_assert_cmpuint(clock_cpu_ns() - from, <, 200 * NS_PER_MS);
		g_assert_cmpint(got, ==, MATCH_FAILED);
		match_free(m);
	}
}

TEST("/match/long-subjects")
{
	g_autofree char *subject = g_strnfill(8000, 'q');
	struct match *m = compile("id=.*&name=");
	struct text cap[MATCH_CAPTURES];

	memcpy(subject + 100, "id=", 3);
	g_assert_cmpint(match_run(m, text_of(subject)), ==, MATCH_NO);
	memcpy(subject + 7000, "&name=", 6);
	g_assert_cmpint(match_capture(m, text_of(subject), cap), ==, MATCH_YES);
	g_assert_true(cap[0].p == subject + 100 && cap[0].n == 6906);
	match_free(m);
	m = compile("b$|c\\z|^d");
	g_assert_cmpint(match_run(m, text_of(subject)), ==, MATCH_NO);
	subject[7999] = 'c';
	g_assert_cmpint(match_run(m, text_of(subject)), ==, MATCH_YES);
	match_free(m);
}

TEST("/match/not-utf8")
{
	struct match *m = compile("(*UTF)^/\\w+$");

	g_assert_cmpint(match_run(m, TEXT("/abc")), ==, MATCH_YES);
	g_assert_cmpint(match_run(m, TEXT("/a\xc0\xae")), ==, MATCH_FAILED);
	match_free(m);
}

static void *
run_often(void *arg)
{
	const struct match *m = arg;
	struct text cap[MATCH_CAPTURES];
	char subject[32];
	int i;

	for (i = 0; i < 2000; i++) {
		g_snprintf(subject, sizeof(subject), "/%d.jpg", i);
		must(match_capture(m, text_of(subject), cap) == MATCH_YES);
		must(cap[1].p == subject + 1);
		must(match_run(m, TEXT("/x.jpg")) == MATCH_NO);
	}
	return (NULL);
}

TEST("/match/threads")
{
	struct match *m = compile("^/([0-9]+)\\.jpg$");
	pthread_t t[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		g_assert_cmpint(pthread_create(&t[i], NULL, run_often, m), ==, 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	match_free(m);
}
