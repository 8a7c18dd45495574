/* t/unit/base/meters.c -- how much each address has used. */
#include <netinet/in.h>

#include "base/clock.h"
#include "base/meters.h"
#include "t/unit/test.h"

#define START   (1000 * NS_PER_S)
#define EACH    10u /* a second */
#define EACH_NS (NS_PER_S / EACH)

static struct client_addr
address(uint32_t n)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(n) };

	return (client_addr_of((struct sockaddr *)&a));
}

/* How many of n requests at once are within the rate. */
static unsigned
some(struct meters *m, uint32_t from, uint64_t now, unsigned n, uint64_t burst)
{
	unsigned i, ok = 0;

	for (i = 0; i < n; i++)
		ok += meters_request(m, address(from), now, EACH, burst) == 0;
	return (ok);
}

TEST("/meters/rate")
{
	struct meters *m = meters_new(1024);
	unsigned i, ok = 0;

	g_assert_cmpuint(some(m, 1, START, 100, 20), ==, 20);
	g_assert_cmpuint(some(m, 2, START, 100, 1), ==, 1);
	g_assert_cmpuint(meters_request(m, address(1), START, EACH, 20), ==, EACH_NS);
	/* what was refused does not count: two more after 0.2 s */
	g_assert_cmpuint(some(m, 1, START + 2 * EACH_NS, 100, 20), ==, 2);
	for (i = 0; i < 1000; i++) /* ten seconds in steps of 0.01 s */
		ok += some(m, 3, START + i * NS_PER_S / 100, 3, 5);
	g_assert_cmpuint(ok, ==, 5 + 99);
	g_assert_cmpuint(some(m, 3, START + 3600 * NS_PER_S, 100, 5), ==, 5);
	meters_free(m);
}

/* Blocks with other rates share the meter. */
TEST("/meters/two-rates")
{
	struct meters *m = meters_new(1024);

	g_assert_cmpuint(meters_request(m, address(1), START, 1, 1), ==, 0);
	g_assert_cmpuint(meters_request(m, address(1), START, EACH, 10), ==, EACH_NS);
	g_assert_cmpuint(meters_request(m, address(1), START, EACH, 11), ==, 0);
	meters_free(m);
}

/* Addresses that pause make room at once, without harm. */
TEST("/meters/idle-make-room")
{
	struct meters *m = meters_new(1); /* one set of 8 */
	uint32_t a;

	for (a = 0; a < 1000; a++)
		g_assert_cmpuint(some(m, a, START + a * NS_PER_S, 100, 5), ==, 5);
	meters_free(m);
}

/* A set that is full of busy addresses admits eight rates in all, however many addresses come, and
 * an address does not begin anew by coming back. */
TEST("/meters/full")
{
	struct meters *m = meters_new(1);
	uint64_t ok = 0, now = START, t;
	uint32_t a;

	g_assert_cmpuint(some(m, 7, now, 100, 10), ==, 10);
	for (t = 0; t < 10; t++, now += NS_PER_S)
		for (a = 100; a < 1100; a++)
			ok += some(m, a, now, 2, 10);
	g_assert_cmpuint(ok, <=, METERS_WAYS * (10 + 9 * 10));
	g_assert_cmpuint(ok, >, METERS_WAYS * 9 * 10 / 2);
	now -= NS_PER_S;
	g_assert_cmpuint(some(m, 7, now, 100, 10), ==, 0);
	meters_free(m);
}

/* A million addresses: each has its rate, in bounded memory. */
TEST("/meters/many")
{
	struct meters *m = meters_new(METERS_SETS);
	uint32_t a, ok = 0, first = 0;

	for (a = 0; a < 1000000; a++)
		ok += some(m, a, START, 1, 1);
	for (a = 0; a < 1000; a++)
		first += some(m, a, START, 1, 1);
	g_assert_cmpuint(ok, >, 800000); /* some sets have more than 8 */
	g_assert_cmpuint(first, <, 10);
	g_assert_cmpuint(some(m, 5000000, START + NS_PER_S, 1, 1), ==, 1);
	meters_free(m);
}

static void *
hammer(void *arg)
{
	unsigned i, ok = 0;

	for (i = 0; i < 20000; i++)
		ok += meters_request(arg, address(i % 3), START, EACH, 1000) == 0;
	return (GUINT_TO_POINTER(ok));
}

TEST("/meters/threads")
{
	struct meters *m = meters_new(1024);
	GThread *t[3];
	unsigned i, ok = 0;

	(void)some(m, 0, START - 10 * NS_PER_S, 1, 1);
	(void)some(m, 1, START - 10 * NS_PER_S, 1, 1);
	(void)some(m, 2, START - 10 * NS_PER_S, 1, 1);
	for (i = 0; i < 3; i++)
		t[i] = g_thread_new("hammer", hammer, m);
	for (i = 0; i < 3; i++)
		ok += GPOINTER_TO_UINT(g_thread_join(t[i]));
	g_assert_cmpuint(ok, ==, 3000);
	meters_free(m);
}
