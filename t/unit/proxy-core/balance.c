/* t/unit/proxy-core/balance.c -- which backend gets the next request. */
#include <stdio.h>
#include "base/must.h"
#include "proxy-core/balance.h"
#include "t/unit/test.h"

#define N    4
#define URLS 8000

static struct candidate four[N];
static int64_t turns[N];
static bool out[N]; /* the backends that are not candidates */
static unsigned factor;

static void
reset(void)
{
	static const char *const names[N] = { "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80",
		"10.0.0.4:80" };
	size_t i;

	memset(turns, 0, sizeof(turns));
	for (i = 0; i < N; i++)
		four[i] = (struct candidate){ .name = text_of(names[i]),
			.index = i,
			.room = true,
			.weight = 1,
			.turn = &turns[i] };
	memset(out, 0, sizeof(out));
	factor = 125;
}

static size_t
pick_for(const char *name, const char *path, const char *client)
{
	struct balance_key k = { TEXT("h"), text_of(path), text_of(client), factor };
	struct candidate c[N];
	size_t i, n = 0;

	for (i = 0; i < N; i++)
		if (!out[i])
			c[n++] = four[i];
	return (balance_pick(balancer_find(name), c, n, &k));
}

static size_t
pick(const char *name, const char *path)
{
	return (pick_for(name, path, "192.0.2.1"));
}

TEST("/balance/round-robin is a rotation")
{
	size_t i;

	reset();
	for (i = 0; i < 9; i++)
		g_assert_cmpuint(pick("round-robin", "/"), ==, i % N);
	out[1] = true;
	g_assert_cmpuint(pick("round-robin", "/"), ==, 2);
	four[3].room = false;
	for (i = 0; i < 8; i++) /* 3 is full */
		g_assert_cmpuint(pick("round-robin", "/") % 2, ==, 0);
	four[0].room = four[2].room = false;
	g_assert_cmpuint(pick("round-robin", "/"), !=, 1); /* all are full: still one of them */
	for (i = 0; i < N; i++)
		out[i] = true;
	g_assert_true(pick("round-robin", "/") == BALANCE_NONE);
}

/* 3, 1, 1, 1: exact shares in each round of six, and never three times the same in a row. */
TEST("/balance/round-robin is smooth with weights")
{
	size_t i, now, last = N, row = 0, share[N] = { 0 };

	reset();
	four[0].weight = 3;
	for (i = 0; i < 600; i++) {
		now = pick("round-robin", "/");
		row = now == last ? row + 1 : 1;
		last = now;
		g_assert_cmpuint(row, <=, 2);
		share[now]++;
		if (i % 6 == 5)
			g_assert_cmpuint(share[0], ==, (i + 1) / 2);
	}
	g_assert_cmpuint(share[1], ==, 100);
	g_assert_cmpuint(share[3], ==, 100);
}

TEST("/balance/sqf takes the shortest queue for its weight")
{
	reset();
	four[0].load = 3;
	four[1].load = 1;
	four[2].load = 1;
	four[3].load = 2;
	g_assert_cmpuint(pick("sqf", "/"), ==, 1);
	g_assert_cmpuint(pick("sqf", "/"), ==, 2); /* equals take turns */
	out[1] = out[2] = true;
	g_assert_cmpuint(pick("sqf", "/"), ==, 3);
	four[0].weight = 2; /* 3 / 2 is less than 2 / 1 */
	g_assert_cmpuint(pick("sqf", "/"), ==, 0);
}

TEST("/balance/static takes the first that lives")
{
	reset();
	g_assert_cmpuint(pick("static", "/"), ==, 0);
	g_assert_cmpuint(pick("static", "/"), ==, 0);
	out[0] = true;
	g_assert_cmpuint(pick("static", "/"), ==, 1);
}

static size_t
pick_nth(const char *name, size_t i)
{
	char s[32];

	snprintf(s, sizeof(s), "/p/%zu", i);
	return (pick_for(name, s, s));
}

static void
test_hash(gconstpointer name)
{
	size_t share[N] = { 0 }, i, was, moved = 0;

	reset();
	for (i = 0; i < URLS; i++)
		share[pick_nth(name, i)]++;
	for (i = 0; i < N; i++) {
		g_assert_cmpuint(share[i], >, 1800);
		g_assert_cmpuint(share[i], <, 2200);
	}
	for (i = 0; i < URLS; i++) { /* a dead backend moves its own requests only */
		out[2] = false;
		was = pick_nth(name, i);
		out[2] = true;
		moved += was != pick_nth(name, i);
	}
	g_assert_cmpuint(moved, ==, share[2]);
}

static void
test_hash_weights(gconstpointer name)
{
	size_t share[N] = { 0 }, i, was, moved = 0;

	reset();
	four[1].weight = 3;
	for (i = 0; i < URLS; i++)
		share[pick_nth(name, i)]++;
	g_assert_cmpuint(share[1], >, URLS / 2 - 250);
	g_assert_cmpuint(share[1], <, URLS / 2 + 250);
	g_assert_cmpuint(share[0], >, URLS / 6 - 200);
	for (i = 0; i < URLS; i++) { /* more weight attracts, and moves nothing else */
		four[1].weight = 1;
		was = pick_nth(name, i);
		four[1].weight = 3;
		if (pick_nth(name, i) != was) {
			moved++;
			g_assert_cmpuint(pick_nth(name, i), ==, 1);
		}
	}
	g_assert_cmpuint(moved, >, 0);
}

/* One URL gets all requests, and none of them ends. */
TEST("/balance/a hot URL spills over its bound")
{
	size_t total, i, first, now;

	reset();
	first = pick("carp", "/hot");
	for (total = 1; total <= 400; total++) {
		now = pick("carp", "/hot");
		four[now].load++;
		for (i = 0; i < N; i++) /* ceil(1.25 x the mean) */
			g_assert_cmpuint(four[i].load, <=, (5 * total + 4 * N - 1) / (4 * N));
	}
	g_assert_cmpuint(four[first].load, ==, 125);
	for (i = 0; i < N; i++)
		four[i].load = i == first ? 5 : 4;
	g_assert_cmpuint(pick("carp", "/hot"), ==,
	    first); /* within its bound again: 22 / 4 x 1.25 */
	g_assert_cmpuint(pick("sticky", "/hot"), ==, pick("sticky", "/cold")); /* never spills */
	four[pick("sticky", "/")].load = 1000;
	g_assert_cmpuint(four[pick("sticky", "/")].load, ==, 1000);
}

static void
test_factor(gconstpointer of)
{
	size_t i, first;

	reset();
	factor = GPOINTER_TO_UINT(of);
	first = pick("carp", "/hot");
	for (i = 0; i < 400; i++)
		four[pick("carp", "/hot")].load++;
	g_assert_cmpuint(four[first].load, ==, factor == 0 ? 400 : factor < 100 ? 100 : factor);
}

TEST("/balance/old names are known")
{
	g_assert_cmpstr(balancer_find("fair")->now, ==, "sqf");
	g_assert_true(balancer_find("hash")->pick == balancer_find("carp")->pick);
	g_assert_null(balancer_find("carp")->now);
	g_assert_null(balancer_find("random"));
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_data_func("/balance/carp shares evenly and moves little", "carp", test_hash);
	g_test_add_data_func("/balance/sticky shares evenly and moves little", "sticky", test_hash);
	g_test_add_data_func("/balance/carp follows the weights", "carp", test_hash_weights);
	g_test_add_data_func("/balance/sticky follows the weights", "sticky", test_hash_weights);
	g_test_add_data_func("/balance/factor 0", GUINT_TO_POINTER(0), test_factor);
	g_test_add_data_func("/balance/factor 1", GUINT_TO_POINTER(1), test_factor);
	g_test_add_data_func("/balance/factor 100", GUINT_TO_POINTER(100), test_factor);
	g_test_add_data_func("/balance/factor 200", GUINT_TO_POINTER(200), test_factor);
	return (tests_run());
}
