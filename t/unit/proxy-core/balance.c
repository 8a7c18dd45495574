/* t/unit/proxy-core/balance.c -- which backend gets the next request. */
#include <glib.h>
#include <stdio.h>
#include "base/must.h"
#include "proxy-core/balance.h"

#define N 4

static struct candidate four[N];
static bool out[N]; /* those that are no candidates */

static void
reset(void)
{
	static const char *const names[N] = { "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80",
		"10.0.0.4:80" };
	size_t i;

	for (i = 0; i < N; i++)
		four[i] = (struct candidate){ .name = text_of(names[i]), .index = i, .room = true };
	memset(out, 0, sizeof(out));
}

static size_t
pick(const char *name, size_t *turn, const char *path)
{
	struct candidate c[N];
	size_t i, n = 0;

	for (i = 0; i < N; i++)
		if (!out[i])
			c[n++] = four[i];
	return (balance_pick(balancer_find(name), c, n, turn, TEXT("h"), text_of(path)));
}

static void
test_round_robin(void)
{
	size_t turn = 0, i;

	reset();
	for (i = 0; i < 9; i++)
		g_assert_cmpuint(pick("round-robin", &turn, "/"), ==, i % N);
	out[1] = true;
	g_assert_cmpuint(pick("round-robin", &turn, "/"), ==, 2);
	four[3].room = false;
	g_assert_cmpuint(pick("round-robin", &turn, "/"), ==, 0); /* 3 is full */
	four[0].room = four[2].room = false;
	g_assert_cmpuint(pick("round-robin", &turn, "/"), ==, 2); /* all are full: still in turn */
	for (i = 0; i < N; i++)
		out[i] = true;
	g_assert_true(pick("round-robin", &turn, "/") == BALANCE_NONE);
}

static void
test_sqf(void)
{
	size_t turn = 0;

	reset();
	four[0].load = 3;
	four[1].load = 1;
	four[2].load = 1;
	four[3].load = 2;
	g_assert_cmpuint(pick("sqf", &turn, "/"), ==, 1);
	g_assert_cmpuint(pick("sqf", &turn, "/"), ==, 2); /* equals take turns */
	out[1] = out[2] = true;
	g_assert_cmpuint(pick("sqf", &turn, "/"), ==, 3);
}

static void
test_static(void)
{
	size_t turn = 0;

	reset();
	g_assert_cmpuint(pick("static", &turn, "/"), ==, 0);
	g_assert_cmpuint(pick("static", &turn, "/"), ==, 0);
	out[0] = true;
	g_assert_cmpuint(pick("static", &turn, "/"), ==, 1);
}

static void
test_carp(void)
{
	size_t turn = 0, share[N] = { 0 }, i, was, moved = 0;
	char path[32];

	reset();
	for (i = 0; i < 8000; i++) {
		snprintf(path, sizeof(path), "/p/%zu", i);
		share[pick("carp", &turn, path)]++;
	}
	for (i = 0; i < N; i++) {
		g_assert_cmpuint(share[i], >, 1800);
		g_assert_cmpuint(share[i], <, 2200);
	}
	for (i = 0; i < 8000; i++) { /* a dead backend moves its own URLs only */
		snprintf(path, sizeof(path), "/p/%zu", i);
		out[2] = false;
		was = pick("carp", &turn, path);
		out[2] = true;
		moved += was != pick("carp", &turn, path);
	}
	g_assert_cmpuint(moved, ==, share[2]);
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/balance/round-robin is a rotation", test_round_robin);
	g_test_add_func("/balance/sqf takes the shortest queue", test_sqf);
	g_test_add_func("/balance/static takes the first that lives", test_static);
	g_test_add_func("/balance/carp shares evenly and moves little", test_carp);
	return (g_test_run());
}
