/* t/unit/base/match.c -- patterns, captures, hostile patterns, and many threads on one pattern. */
#include <glib.h>
#include <pthread.h>
#include "base/match.h"
#include "base/must.h"

#define THREADS 4

static struct match *
compile(const char *pattern)
{
	char err[128] = "";
	struct match *m = match_new(pattern, err, sizeof(err));

	g_assert_cmpstr(err, ==, "");
	g_assert_nonnull(m);
	return (m);
}

static void
test_run(void)
{
	struct match *m = compile("\\.(jpg|png)$");

	g_assert_true(match_run(m, TEXT("/a.jpg")));
	g_assert_true(match_run(m, TEXT("\0\xff.png")));
	g_assert_false(match_run(m, TEXT("/a.jpgx")));
	g_assert_false(match_run(m, TEXT("")));
	g_assert_false(match_run(m, TEXT_NONE));
	match_free(m);
	m = compile("^$");
	g_assert_true(match_run(m, TEXT_NONE));
	match_free(m);
	match_free(NULL);
}

static void
test_capture(void)
{
	struct match *m = compile("^/(a)?(b*)/(.*)$");
	struct text cap[MATCH_CAPTURES];
	int i;

	g_assert_true(match_capture(m, TEXT("/bb/rest"), cap));
	g_assert_true(text_eq(cap[0], TEXT("/bb/rest")));
	g_assert_null(cap[1].p);
	g_assert_true(text_eq(cap[2], TEXT("bb")));
	g_assert_true(text_eq(cap[3], TEXT("rest")));
	for (i = 4; i < MATCH_CAPTURES; i++)
		g_assert_null(cap[i].p);
	g_assert_true(match_capture(m, TEXT("/a/"), cap));
	g_assert_nonnull(cap[2].p);             /* empty, but set */
	g_assert_cmpuint(cap[2].n, ==, 0);
	g_assert_false(match_capture(m, TEXT("x"), cap));
	match_free(m);
}

static void
test_many_groups(void)
{
	struct match *m = compile("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)");
	struct text cap[MATCH_CAPTURES];

	g_assert_true(match_capture(m, TEXT("abcdefghijk"), cap));
	g_assert_true(text_eq(cap[9], TEXT("i")));
	match_free(m);
}

static void
test_errors(void)
{
	char err[128] = "", tiny[4];

	g_assert_null(match_new("(", err, sizeof(err)));
	g_assert_cmpstr(err, !=, "");
	g_assert_null(match_new("[", tiny, sizeof(tiny)));
	g_assert_cmpuint(strlen(tiny), <, sizeof(tiny));
}

/* Without a limit each of these takes longer than anybody has. */
static void
test_hostile(void)
{
	static const char *const patterns[] = {"^(a+)+$", "^(a|aa)+$", "^(.*a){20}$", "^((a*)*)*b$"};
	g_autofree char *subject = g_strnfill(20000, 'a');
	struct match *m;
	gint64 from;
	size_t i;

	subject[19999] = '!';
	for (i = 0; i < G_N_ELEMENTS(patterns); i++) {
		m = compile(patterns[i]);
		from = g_get_monotonic_time();
		g_assert_false(match_run(m, text_of(subject)));
		g_assert_cmpint(g_get_monotonic_time() - from, <, 5 * G_USEC_PER_SEC);
		match_free(m);
	}
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
		must(match_capture(m, text_of(subject), cap));
		must(cap[1].p == subject + 1);
		must(!match_run(m, TEXT("/x.jpg")));
	}
	return (NULL);
}

static void
test_threads(void)
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

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/match/run", test_run);
	g_test_add_func("/match/capture", test_capture);
	g_test_add_func("/match/many-groups", test_many_groups);
	g_test_add_func("/match/errors", test_errors);
	g_test_add_func("/match/hostile", test_hostile);
	g_test_add_func("/match/threads", test_threads);
	return (g_test_run());
}
