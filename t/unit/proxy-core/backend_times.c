/* t/unit/proxy-core/backend_times.c -- histograms of a backend: one for each pool, summed, taken
 * over, never lost. */
#include <pthread.h>

#include "proxy-core/backend.h"
#include "proxy-core/backend_times.h"
#include "t/unit/test.h"

static uint64_t
count_of(const struct backend *b, enum backend_stage s)
{
	struct histogram h = { 0 };

	backend_times_sum(b, s, &h);
	return (histogram_count(&h));
}

TEST("/backend_times/taken_over")
{
	struct backend b = { 0 };
	struct backend_times *one = backend_times_take(&b), *two = backend_times_take(&b);

	g_assert_true(one != two);
	backend_times_add(one, BACKEND_wait, 10, 20);
	backend_times_add(two, BACKEND_wait, 10, 5); /* a clock read earlier */
	backend_times_add(two, BACKEND_reply, 0, 5000000);
	g_assert_cmpuint(count_of(&b, BACKEND_wait), ==, 2);
	g_assert_cmpuint(count_of(&b, BACKEND_reply), ==, 1);
	g_assert_cmpuint(count_of(&b, BACKEND_connect), ==, 0);
	backend_times_return(one);
	g_assert_true(backend_times_take(&b) == one);
	g_assert_cmpuint(count_of(&b, BACKEND_wait), ==, 2);
	free(one);
	free(two);
}

static void *
adder(void *arg)
{
	struct backend *b = arg;
	unsigned i, k;

	for (i = 0; i < 100; i++) {
		struct backend_times *t = backend_times_take(b);

		for (k = 0; k < 100; k++)
			backend_times_add(t, BACKEND_first_byte, 0, k * 1000);
		backend_times_return(t);
	}
	return (NULL);
}

TEST("/backend_times/threads")
{
	struct backend b = { 0 };
	struct backend_times *t, *next;
	pthread_t thread[4];
	unsigned i, n = 0;

	for (i = 0; i < G_N_ELEMENTS(thread); i++)
		g_assert_cmpint(pthread_create(&thread[i], NULL, adder, &b), ==, 0);
	g_assert_cmpuint(count_of(&b, BACKEND_first_byte), <=, 40000);
	for (i = 0; i < G_N_ELEMENTS(thread); i++)
		pthread_join(thread[i], NULL);
	g_assert_cmpuint(count_of(&b, BACKEND_first_byte), ==, 40000);
	for (t = b.times; t != NULL; t = next, n++) {
		next = t->next;
		free(t);
	}
	g_assert_cmpuint(n, <=, G_N_ELEMENTS(thread));
}
