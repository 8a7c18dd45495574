/* t/unit/base/rate.c -- a rate per second: even, with a small burst, and into debt
 * for costs that are known afterwards. */

#include "base/rate.h"
#include "t/unit/test.h"

#define START (1000 * NS_PER_S)
#define BURST (20 * NS_PER_MS)

static uint64_t
wait_for(uint64_t due_ns, uint64_t now_ns)
{
	return (due_ns > now_ns ? due_ns - now_ns : 0);
}

/* When n tokens have been allowed, to a caller that takes each one as early as it can. */
static uint64_t
time_of(uint64_t *due_ns, unsigned n, uint64_t per_s)
{
	uint64_t now = START;

	for (unsigned i = 0; i < n; i++) {
		now += wait_for(*due_ns, now);
		pace_note(due_ns, now - BURST, 1, per_s);
	}
	return (now - START);
}

TEST("/pace/rate")
{
	uint64_t due_ns = 0;
	uint64_t ns = time_of(&due_ns, 1001, 100);

	g_assert_cmpuint(ns, <=, 10 * NS_PER_S);
	g_assert_cmpuint(ns, >=, 10 * NS_PER_S - 20 * NS_PER_MS);
}

TEST("/pace/no-limit")
{
	uint64_t due_ns = 0;

	pace_note(&due_ns, START - BURST, 1 << 30, 0);
	g_assert_cmpuint(wait_for(due_ns, START), ==, 0);
}

/* An hour without work does not become an hour of work at once. */
TEST("/pace/idle")
{
	uint64_t due_ns = 0;
	const uint64_t later = START + 3600 * NS_PER_S;
	unsigned n = 0;

	time_of(&due_ns, 10, 1000);
	for (; wait_for(due_ns, later) == 0; n++)
		pace_note(&due_ns, later - BURST, 1, 1000);
	g_assert_cmpuint(n, >=, 20);
	g_assert_cmpuint(n, <=, 21);
}

TEST("/pace/debt")
{
	uint64_t due_ns = 0;

	pace_note(&due_ns, START - BURST, 5000, 1000);
	g_assert_cmpuint(wait_for(due_ns, START), ==, 5 * NS_PER_S - 20 * NS_PER_MS);
	g_assert_cmpuint(wait_for(due_ns, START + 4 * NS_PER_S), ==, NS_PER_S - 20 * NS_PER_MS);
	g_assert_cmpuint(wait_for(due_ns, START + 5 * NS_PER_S), ==, 0);
}
