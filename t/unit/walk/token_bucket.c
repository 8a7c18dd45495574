/* t/unit/walk/token_bucket.c -- a rate per second: even, with a small burst, and into debt
 * for costs that are known afterwards. */

#include "base/clock.h"
#include "t/unit/test.h"
#include "walk/token_bucket.h"

#define START (1000 * NS_PER_S)

/* When n tokens have been allowed, to a caller that takes each one as early as it can. */
static uint64_t
time_of(struct token_bucket *b, unsigned n)
{
	uint64_t now = START;

	for (unsigned i = 0; i < n; i++) {
		now += token_bucket_wait(b, now);
		token_bucket_take(b, 1, now);
	}
	return (now - START);
}

TEST("/bucket/rate")
{
	struct token_bucket b = { .per_s = 100 };
	uint64_t ns = time_of(&b, 1001);

	g_assert_cmpuint(ns, <=, 10 * NS_PER_S);
	g_assert_cmpuint(ns, >=, 10 * NS_PER_S - 20 * NS_PER_MS);
}

TEST("/bucket/no-limit")
{
	struct token_bucket b = { .per_s = 0 };

	token_bucket_take(&b, 1 << 30, START);
	g_assert_cmpuint(token_bucket_wait(&b, START), ==, 0);
}

/* An hour without work does not become an hour of work at once. */
TEST("/bucket/idle")
{
	struct token_bucket b = { .per_s = 1000 };
	unsigned n = 0;

	time_of(&b, 10);
	for (; token_bucket_wait(&b, START + 3600 * NS_PER_S) == 0; n++)
		token_bucket_take(&b, 1, START + 3600 * NS_PER_S);
	g_assert_cmpuint(n, >=, 20);
	g_assert_cmpuint(n, <=, 21);
}

TEST("/bucket/debt")
{
	struct token_bucket b = { .per_s = 1000 };

	token_bucket_take(&b, 5000, START);
	g_assert_cmpuint(token_bucket_wait(&b, START), ==, 5 * NS_PER_S - 20 * NS_PER_MS);
	g_assert_cmpuint(token_bucket_wait(&b, START + 4 * NS_PER_S), ==,
	    NS_PER_S - 20 * NS_PER_MS);
	g_assert_cmpuint(token_bucket_wait(&b, START + 5 * NS_PER_S), ==, 0);
}
