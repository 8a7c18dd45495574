/* t/unit/walk/ring.c -- shares of the servers, and how much moves when one comes or goes.  That
 * HAProxy chooses the same is checked by t/warm/shard.t. */
#include <stdio.h>

#include "t/unit/test.h"
#include "walk/ring.h"

#define URLS  20000u
#define NODES 100u

static size_t
find(const struct ring *r, unsigned url)
{
	char path[32];
	int n = snprintf(path, sizeof(path), "/d%u/f%u.html", url / 100, url);

	return (ring_find(r, ring_hash(RING_SDBM, true, (struct text){ path, (size_t)n })));
}

static struct ring *
equal_servers(size_t n, unsigned weight)
{
	struct ring_server s[NODES];

	for (size_t i = 0; i < n; i++)
		s[i] = (struct ring_server){ (unsigned)i + 1, weight };
	return (ring_new(s, n));
}

/* The share of the largest of n servers, as a multiple of the mean. */
static double
largest(size_t n, unsigned weight)
{
	struct ring *r = equal_servers(n, weight);
	unsigned got[NODES] = { 0 }, most = 0;

	for (unsigned i = 0; i < URLS; i++)
		got[find(r, i)]++;
	for (size_t i = 0; i < n; i++)
		most = MAX(most, got[i]);
	ring_free(&r);
	return ((double)most * (double)n / URLS);
}

TEST("/ring/shares")
{
	static const unsigned weights[] = { 1, 10, 100, 256 };

	for (size_t i = 0; i < G_N_ELEMENTS(weights); i++)
		g_test_message("weight %u: the largest of 4 has %.2f times the mean, of 20 %.2f",
		    weights[i], largest(4, weights[i]), largest(20, weights[i]));
	g_assert_cmpfloat(largest(4, 1), >, largest(4, 100));
	g_assert_cmpfloat(largest(4, 100), <, 1.1);
	g_assert_cmpfloat(largest(20, 100), <, 1.2);
}

TEST("/ring/a new server takes from all, and nothing else moves")
{
	struct ring *four = equal_servers(4, 100), *five = equal_servers(5, 100);
	unsigned moved = 0;

	for (unsigned i = 0; i < URLS; i++) {
		size_t before = find(four, i), now = find(five, i);

		g_assert_true(now == before || now == 4);
		moved += now != before;
	}
	g_assert_cmpfloat(moved, >, URLS * 0.17);
	g_assert_cmpfloat(moved, <, URLS * 0.23);
	ring_free(&four);
	ring_free(&five);
}

/* By id, not by place: the order of the lines does not matter. */
TEST("/ring/a lost server moves its own share only")
{
	static const struct ring_server without_3[] = { { 4, 100 }, { 1, 100 }, { 2, 100 } };
	static const unsigned old_place[] = { 3, 0, 1 };
	struct ring *four = equal_servers(4, 100), *three = ring_new(without_3, 3);

	for (unsigned i = 0; i < URLS; i++) {
		size_t before = find(four, i);

		g_assert_true(before == 2 || old_place[find(three, i)] == before);
	}
	ring_free(&four);
	ring_free(&three);
}

/* At both ends of the ring. */
TEST("/ring/one server has all")
{
	struct ring *one = equal_servers(1, 1);

	g_assert_cmpuint(ring_find(one, 0), ==, 0);
	g_assert_cmpuint(ring_find(one, UINT32_MAX), ==, 0);
	ring_free(&one);
}
