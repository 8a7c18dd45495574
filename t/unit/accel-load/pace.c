/* t/unit/accel-load/pace.c -- the open loop: requests that were due but never started. */
#include "accel-load/pace.h"
#include "t/unit/test.h"

#include <string.h>

#define START 123456789012345ull

/* Counts them one by one, from the i-th of the thread on.  Returns the first that was not due. */
static uint64_t
one_by_one(const struct thread *t, uint64_t i, struct counts *c)
{
	uint64_t at, end = MIN(t->now, t->run->end_ns);

	for (; t->limit == 0 || i < t->limit; i++) {
		at = t->run->start_ns + (uint64_t)((double)(i * t->conf->threads + t->nr) *
						   (double)NS_PER_S / t->conf->rate);
		if (at >= end)
			break;
		count_requests(c, 1);
		count_unanswered(c, clock_between(at, t->now));
	}
	return (i);
}

static void
compare(const struct thread *t, uint64_t i, const struct counts *one)
{
	const struct counts *all = t->counts;
	uint64_t apart = MAX(all->latency.sum_ns, one->latency.sum_ns) -
			 MIN(all->latency.sum_ns, one->latency.sum_ns);

	g_assert_cmpuint(t->scheduled, ==, i);
	g_assert_cmpuint(all->requests, ==, one->requests);
	g_assert_cmpuint(all->unanswered, ==, one->unanswered);
	g_assert_cmpuint(all->latency.max_ns, ==, one->latency.max_ns);
	g_assert_cmpmem(all->latency.n, sizeof(all->latency.n), one->latency.n,
	    sizeof(one->latency.n));
	g_assert_cmpuint(apart, <=, one->requests);
}

/* A run of these seconds at this rate, of which the first requests were started. */
static void
end_run(double rate, double seconds, uint64_t started, uint64_t limit, bool late)
{
	const struct load_conf conf = { .rate = rate, .threads = 3 };
	const struct run run = { .conf = &conf,
		.start_ns = START,
		.end_ns = START + (uint64_t)(seconds * 1e9) };
	struct thread t = { .conf = &conf, .run = &run, .limit = limit, .scheduled = started };
	struct counts *one = counts_new();

	t.now = late ? run.end_ns + 12345678 : run.end_ns - 77;
	t.counts = counts_new();
	for (t.nr = 0; t.nr < conf.threads; t.nr++) {
		t.scheduled = started;
		started = one_by_one(&t, t.scheduled, one);
		pace_count_overdue(&t);
		compare(&t, started, one);
		started = t.scheduled / 2;
	}
	counts_free(one);
	counts_free(t.counts);
}

TEST("/accel-load/pace/overdue")
{
	const double rates[] = { 0.3, 7, 999.7, 1e5, 1e7 };

	for (size_t i = 0; i < G_N_ELEMENTS(rates); i++)
		for (int k = 0; k < 8; k++)
			end_run(rates[i], rates[i] > 1000 ? 0.05 : 9.87, (uint64_t)k * k * k,
			    k % 4 == 3 ? 50 : 0, k % 2 == 0);
	end_run(1000, 0.001, 0, 0, false); /* none, or one of each thread */
	end_run(1000, 1, 100000, 0, false);
}

/* The largest rate for a day: the work is that of the buckets. */
TEST("/accel-load/pace/many")
{
	const struct load_conf conf = { .rate = 1e7, .threads = 1 };
	const struct run run = { .conf = &conf,
		.start_ns = START,
		.end_ns = START + 86400 * NS_PER_S };
	struct thread t = { .conf = &conf, .run = &run, .now = run.end_ns };

	t.counts = counts_new();
	pace_count_overdue(&t);
	g_assert_cmpuint(t.counts->requests, ==, 864000000000);
	g_assert_cmpuint(histogram_fine_count(&t.counts->latency), ==, 864000000000);
	g_assert_cmpuint(t.counts->latency.sum_ns, ==, UINT64_MAX); /* it is larger */
	counts_add(t.counts, t.counts);
	g_assert_cmpuint(t.counts->latency.sum_ns, ==, UINT64_MAX);
	counts_free(t.counts);
}
