/* t/unit/base/histogram.c -- histograms and rates: bounds, and an error that only the width of the
 * buckets causes. */
#include <stdlib.h>
#include "base/clock.h"
#include "base/histogram.h"
#include "base/rate.h"
#include "t/unit/test.h"

#define VALUES 20000u

/* The largest value of a bucket; see base/histogram.h. */
static uint64_t
bound_of(unsigned bucket)
{
	uint64_t width = 1000;
	unsigned i = bucket - 1;

	if (bucket == 0)
		return (HISTOGRAM_MIN_NS);
	for (; i >= HISTOGRAM_PER_DECADE; i -= HISTOGRAM_PER_DECADE)
		width *= 10;
	return ((i + 11) * width);
}

TEST("/histogram/bounds")
{
	static struct histogram h;
	unsigned i;

	g_assert_cmpuint(bound_of(0), ==, 10000);
	g_assert_cmpuint(bound_of(HISTOGRAM_BUCKETS - 2), ==, HISTOGRAM_MAX_NS);
	for (i = 1; i < HISTOGRAM_BUCKETS - 1; i++)
		g_assert_cmpuint(bound_of(i), >, bound_of(i - 1));
	/* A bound is the last value of its bucket, one more the first of the next. */
	for (i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		histogram_add(&h, bound_of(i));
		g_assert_cmpuint(h.n[i], ==, i == 0 ? 1 : 2);
		histogram_add(&h, bound_of(i) + 1);
		g_assert_cmpuint(h.n[i + 1], ==, 1);
	}
	histogram_add(&h, 0);
	g_assert_cmpuint(h.n[0], ==, 2);
	histogram_add(&h, UINT64_MAX);
	g_assert_cmpuint(h.n[HISTOGRAM_BUCKETS - 1], ==, 2);
	g_assert_cmpuint(histogram_count(&h), ==, 2 * (HISTOGRAM_BUCKETS - 1) + 2);
}

/* The bounds that charts use. */
TEST("/histogram/round-bounds")
{
	static const uint64_t want[] = { 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 100000,
		1000000, 2500000, 100000000 };
	unsigned i, k;

	for (i = 0; i < G_N_ELEMENTS(want); i++) {
		for (k = 0; k < HISTOGRAM_BUCKETS && bound_of(k) != want[i] * 1000; k++)
			;
		g_assert_cmpuint(k, <, HISTOGRAM_BUCKETS);
	}
}

static int
by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y ? -1 : x > y);
}

/* From 10 us to 100 s, all decades alike. */
static uint64_t
any_time(GRand *rand)
{
	uint64_t ns = 10000;
	int tens = g_rand_int_range(rand, 0, 7);

	while (tens-- > 0)
		ns *= 10;
	return ((uint64_t)((double)ns * g_rand_double_range(rand, 1.0, 10.0)));
}

TEST("/histogram/percentiles")
{
	static struct histogram h;
	static uint64_t v[VALUES];
	GRand *rand = g_rand_new_with_seed(7);
	uint64_t sum = 0, last = 0;
	unsigned i;

	g_assert_cmpuint(histogram_percentile(&h, 0.5), ==, 0);
	for (i = 0; i < VALUES; i++) {
		v[i] = any_time(rand);
		sum += v[i];
		histogram_add(&h, v[i]);
	}
	qsort(v, VALUES, sizeof(v[0]), by_size);
	g_assert_cmpuint(h.sum_ns, ==, sum);
	g_assert_cmpuint(h.max_ns, ==, v[VALUES - 1]);
	for (i = 1; i <= 1000; i++) {
		uint64_t got = histogram_percentile(&h, i / 1000.0), is = v[VALUES / 1000 * i - 1];

		g_assert_cmpfloat((double)got, >=, 0.95 * (double)is);
		g_assert_cmpfloat((double)got, <=, 1.05 * (double)is);
		g_assert_cmpuint(got, >=, last);
		last = got;
	}
	g_assert_cmpuint(histogram_percentile(&h, 1.0), <=, h.max_ns);
	g_rand_free(rand);
}

TEST("/histogram/cumulative")
{
	static struct histogram h;

	histogram_add(&h, 25000);
	histogram_add(&h, 25001);
	histogram_add(&h, 200 * NS_PER_S);
	g_assert_cmpuint(histogram_up_to(&h, 24000), ==, 0);
	g_assert_cmpuint(histogram_up_to(&h, 25000), ==, 1);
	g_assert_cmpuint(histogram_up_to(&h, 26000), ==, 2);
	g_assert_cmpuint(histogram_up_to(&h, HISTOGRAM_MAX_NS), ==, 2);
	g_assert_cmpuint(histogram_up_to(&h, UINT64_MAX), ==, 3);
	g_assert_cmpuint(histogram_percentile(&h, 1.0), ==, 200 * NS_PER_S);
}

TEST("/histogram/merged")
{
	static struct histogram a, b, both, sum;
	GRand *rand = g_rand_new_with_seed(8);
	unsigned i;

	for (i = 0; i < VALUES; i++) {
		uint64_t ns = any_time(rand);

		histogram_add(i % 3 == 0 ? &a : &b, ns);
		histogram_add(&both, ns);
	}
	histogram_merge(&sum, &a);
	histogram_merge(&sum, &b);
	g_assert_cmpmem(&sum, sizeof(sum), &both, sizeof(both));
	g_rand_free(rand);
}

TEST("/rate")
{
	struct rate r = { 0 };
	uint64_t s = NS_PER_S, total = 0;
	unsigned i;

	g_assert_cmpfloat(rate_read(&r, 1000 * s), ==, 0);
	for (i = 0; i < 40; i++) /* four notes a second, ten each */
		rate_note(&r, 1000 * s + i * s / 4, total += 10);
	g_assert_cmpfloat(rate_read(&r, 1010 * s), ==, 40);
	g_assert_cmpfloat(rate_read(&r, 1010 * s + s / 2), ==, 40);
	g_assert_cmpfloat(rate_read(&r, 1009 * s), ==, 40);
	g_assert_cmpfloat(rate_read(&r, 1012 * s), ==, 24); /* two of the five were idle */
	g_assert_cmpfloat(rate_read(&r, 1015 * s), ==, 0);
	rate_note(&r, 1020 * s, total); /* it did not grow */
	g_assert_cmpfloat(rate_read(&r, 1021 * s), ==, 0);
	rate_note(&r, 1020 * s, total += 5);
	g_assert_cmpfloat(rate_read(&r, 1021 * s), ==, 1);
}

/* The widths of the fine kind: 1 % from 1 us on; the same round bounds, and all can be found. */
TEST("/histogram/fine-bounds")
{
	static struct histogram_fine h;
	uint64_t bound, before = 0;
	unsigned i;

	for (i = 0; i < HISTOGRAM_FINE_BUCKETS - 1; i++, before = bound) {
		bound = histogram_fine_bound(i);
		g_assert_cmpuint(bound, >, before);
		g_assert_cmpuint(bound - before, <=, i == 0 ? 1000 : before / 100);
		g_assert_cmpint(histogram_fine_bucket(bound), ==, (int)i);
		g_assert_cmpint(histogram_fine_bucket(bound + 1), ==, -1);
		histogram_fine_add(&h, bound);
		g_assert_cmpuint(h.n[i], ==, i == 0 ? 1 : 2);
		histogram_fine_add(&h, bound + 1);
		g_assert_cmpuint(h.n[i + 1], ==, 1);
	}
	g_assert_cmpuint(before, ==, HISTOGRAM_FINE_MAX_NS);
	g_assert_cmpuint(histogram_fine_bound(0), ==, HISTOGRAM_FINE_MIN_NS);
	g_assert_cmpint(histogram_fine_bucket(0), ==, -1);
	g_assert_cmpint(histogram_fine_bucket(UINT64_MAX), ==, HISTOGRAM_FINE_BUCKETS - 1);
	histogram_fine_add(&h, UINT64_MAX);
	g_assert_cmpuint(h.n[HISTOGRAM_FINE_BUCKETS - 1], ==, 2);
	g_assert_cmpuint(histogram_fine_count(&h), ==, 2 * (HISTOGRAM_FINE_BUCKETS - 1) + 1);
}

TEST("/histogram/fine-percentiles")
{
	static struct histogram_fine a, b, both, sum;
	static uint64_t v[VALUES];
	GRand *rand = g_rand_new_with_seed(9);
	unsigned i;

	for (i = 0; i < VALUES; i++) {
		v[i] = any_time(rand) / 10;
		histogram_fine_add(i % 3 == 0 ? &a : &b, v[i]);
		histogram_fine_add(&both, v[i]);
	}
	histogram_fine_merge(&sum, &a);
	histogram_fine_merge(&sum, &b);
	g_assert_cmpmem(&sum, sizeof(sum), &both, sizeof(both));
	qsort(v, VALUES, sizeof(v[0]), by_size);
	for (i = 1; i < 10000; i++) { /* the product of share and count may be rounded up */
		uint64_t got = histogram_fine_percentile(&sum, i / 10000.0),
			 is = v[VALUES / 10000 * i - 1], next = v[VALUES / 10000 * i];

		g_assert_cmpfloat((double)got, >=, 0.995 * (double)is);
		g_assert_cmpfloat((double)got, <=, 1.005 * (double)next);
	}
	g_assert_cmpuint(histogram_fine_percentile(&sum, 1.0), <=, sum.max_ns);
	g_rand_free(rand);
}

/* What one reader sees of the time between two answers. */
TEST("/histogram/json-buckets")
{
	struct histogram h = { 0 };
	struct buf b;

	buf_init(&b, 0);
	histogram_json_buckets(&b, &h);
	g_assert_true(text_ends(buf_as_text(&b), TEXT(",\"max_ns\":0,\"buckets\":[]}")));
	buf_free(&b);
	histogram_add(&h, 1);
	histogram_add(&h, 10500);
	histogram_add(&h, 10501);
	histogram_add(&h, 100000000000ull);
	histogram_add(&h, 100000000001ull);
	buf_init(&b, 0);
	histogram_json_buckets(&b, &h);
	g_assert_true(text_starts(buf_as_text(&b), TEXT("{\"count\":5,")));
	g_assert_true(text_ends(buf_as_text(&b),
	    TEXT(",\"buckets\":[[10000,1],[11000,2],[100000000000,1]]}")));
	buf_free(&b);
}
