/* t/unit/linear.h -- does the work grow with the input, or with its square?
 *
 * A case makes an input of size n and works on it; the CPU time of n and 2 n is compared.  Linear
 * work gives 2, a product of
 * two lengths 4.  The least of several runs counts, and of several comparisons, so that a busy
 *                 machine adds nothing.
 */
#ifndef T_LINEAR_H
#define T_LINEAR_H

#include <stdbool.h>
#include <time.h>
#include "t/unit/test.h"

#define LINEAR_RUNS  7
#define LINEAR_TRIES 5
#define LINEAR_RATIO 3.2
/* least time for the shorter input, which is repeated until then */
#define LINEAR_ENOUGH_NS 200000.0

struct linear {
	const char *name;
	GString *(*make)(unsigned n);
	void (*work)(const GString *);
	unsigned n; /* half of what the limits allow */
};

static inline double
linear_once_ns(const struct linear *l, const GString *in, unsigned repeat)
{
	struct timespec a, b;
	unsigned i;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (i = 0; i < repeat; i++)
		l->work(in);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec));
}

/* True: 2 n takes less than LINEAR_RATIO times as long as n. */
static inline bool
linear_compare(const struct linear *l, const GString *one, const GString *two, unsigned repeat)
{
	double t, least1 = 1e18, least2 = 1e18;
	unsigned i;

	for (i = 0; i < LINEAR_RUNS; i++) {
		t = linear_once_ns(l, one, repeat);
		least1 = t < least1 ? t : least1;
		t = linear_once_ns(l, two, repeat);
		least2 = t < least2 ? t : least2;
	}
	g_test_message("%s: %zu bytes %.1f us, %zu bytes %.1f us, ratio %.2f", l->name, one->len,
	    least1 / repeat / 1000, two->len, least2 / repeat / 1000, least2 / least1);
	return (least2 / least1 < LINEAR_RATIO);
}

static inline void
linear_test(const void *arg)
{
	const struct linear *l = arg;
	GString *one = l->make(l->n), *two = l->make(2 * l->n);
	unsigned tries = 1, repeat = 1;

	while (repeat < 10000 && linear_once_ns(l, one, repeat) < LINEAR_ENOUGH_NS)
		repeat *= 2;
	while (!linear_compare(l, one, two, repeat))
		g_assert_cmpuint(tries++, <, LINEAR_TRIES);
	g_string_free(one, TRUE);
	g_string_free(two, TRUE);
}

static inline int
linear_main(int argc, char **argv, const struct linear *v, size_t n)
{
	size_t i;
	char *path;

	g_test_init(&argc, &argv, NULL);
	for (i = 0; i < n; i++) {
		path = g_strdup_printf("/linear/%s", v[i].name);
		g_test_add_data_func(path, &v[i], linear_test);
		g_free(path);
	}
	return (tests_run());
}

#endif
