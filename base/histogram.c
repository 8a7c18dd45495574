/* base/histogram.c -- see histogram.h */
#include <inttypes.h>

#include "base/histogram.h"
#include "base/must.h"

#define LAST (HISTOGRAM_BUCKETS - 1)

/* Bucket width of each decade. */
static const uint64_t width[] = { 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000 };

static unsigned
bucket_of(uint64_t ns)
{
	unsigned d;

	if (ns <= HISTOGRAM_MIN_NS)
		return (0); /* most values are of hot requests and end here */
	if (ns > HISTOGRAM_MAX_NS)
		return (LAST);
	for (d = 0; ns > 100 * width[d]; d++)
		;
	return ((unsigned)(1 + HISTOGRAM_PER_DECADE * d + (ns - 1) / width[d] - 10));
}

/* Largest value of a bucket. */
static uint64_t
bound_of(unsigned bucket)
{
	unsigned i = bucket - 1;

	if (bucket == 0)
		return (HISTOGRAM_MIN_NS);
	if (bucket >= LAST)
		return (UINT64_MAX);
	return ((i % HISTOGRAM_PER_DECADE + 11) * width[i / HISTOGRAM_PER_DECADE]);
}

static uint64_t
get(const uint64_t *v)
{
	return (__atomic_load_n(v, __ATOMIC_RELAXED));
}

static void
put(uint64_t *v, uint64_t to)
{
	__atomic_store_n(v, to, __ATOMIC_RELAXED);
}

void
histogram_add(struct histogram *h, uint64_t ns)
{
	uint64_t *n = &h->n[bucket_of(ns)];

	put(n, get(n) + 1);
	put(&h->sum_ns, get(&h->sum_ns) + ns);
	if (ns > get(&h->max_ns))
		put(&h->max_ns, ns);
}

void
histogram_merge(struct histogram *into, const struct histogram *from)
{
	uint64_t max = get(&from->max_ns);
	unsigned i;

	into->sum_ns += get(&from->sum_ns);
	if (max > into->max_ns)
		into->max_ns = max;
	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->n[i] += get(&from->n[i]);
}

/* The sum of the buckets, not a separate number, so that a reader never sees two different
 * counts. */
uint64_t
histogram_count(const struct histogram *h)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum += get(&h->n[i]);
	return (sum);
}

uint64_t
histogram_up_to(const struct histogram *h, uint64_t ns)
{
	unsigned i, end = bucket_of(ns);
	uint64_t sum = 0;

	if (bound_of(end) <= ns)
		end++;
	for (i = 0; i < end; i++)
		sum += get(&h->n[i]);
	return (sum);
}

static uint64_t
middle(unsigned bucket)
{
	return (bucket == 0 ? HISTOGRAM_MIN_NS / 2 : (bound_of(bucket - 1) + bound_of(bucket)) / 2);
}

uint64_t
histogram_percentile(const struct histogram *h, double p)
{
	uint64_t count = histogram_count(h), max = get(&h->max_ns), seen = 0, rank;
	unsigned i;

	if (count == 0)
		return (0);
	rank = (uint64_t)(p * (double)count);
	if ((double)rank < p * (double)count || rank == 0)
		rank++;
	for (i = 0; i < LAST; i++) {
		seen += get(&h->n[i]);
		if (seen >= rank)
			return (middle(i) < max ? middle(i) : max);
	}
	return (max);
}

void
histogram_json(struct buf *out, const struct histogram *h)
{
	static const struct {
		const char *name;
		double p;
	} all[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p95", 0.95 }, { "p99", 0.99 },
		{ "p999", 0.999 } };
	size_t i;

	buf_printf(out, "{\"count\":%" PRIu64 ",\"sum_ns\":%" PRIu64, histogram_count(h),
	    h->sum_ns);
	for (i = 0; i < NELEM(all); i++)
		buf_printf(out, ",\"%s_ns\":%" PRIu64, all[i].name,
		    histogram_percentile(h, all[i].p));
	buf_printf(out, ",\"max_ns\":%" PRIu64 "}", h->max_ns);
}
