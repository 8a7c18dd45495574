/* base/histogram.c -- see histogram.h
 *
 * Both kinds share this code.  It is inline with a constant scale, so that each kind is compiled
 * with its own numbers.
 */
#include <inttypes.h>

#include "base/histogram.h"
#include "base/must.h"

#define SHARED static inline __attribute__((always_inline))

struct scale {
	uint64_t min_ns, max_ns;
	unsigned steps, decades; /* steps: buckets in a tenth of a decade */
	const uint64_t *width;   /* of a bucket, by decade */
};

static const uint64_t widths[] = { 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000,
	1000000000, 10000000000 };

static const struct scale coarse = { HISTOGRAM_MIN_NS, HISTOGRAM_MAX_NS, 10, 7, widths + 2 };
static const struct scale fine = { HISTOGRAM_FINE_MIN_NS, HISTOGRAM_FINE_MAX_NS, 100, 10, widths };

/* A histogram of either kind. */
struct view {
	const uint64_t *max_ns, *n;
};

SHARED unsigned
last_of(struct scale s)
{
	return (1 + 9 * s.steps * s.decades);
}

SHARED unsigned
bucket_of(struct scale s, uint64_t ns)
{
	unsigned d;

	if (ns <= s.min_ns)
		return (0); /* most values are of hot requests and end here */
	if (ns > s.max_ns)
		return (last_of(s));
	for (d = 0; ns > 10 * s.steps * s.width[d]; d++)
		;
	return ((unsigned)(1 + 9 * s.steps * d + (ns - 1) / s.width[d] - s.steps));
}

/* Largest value of a bucket. */
SHARED uint64_t
bound_of(struct scale s, unsigned bucket)
{
	unsigned i = bucket - 1;

	if (bucket == 0)
		return (s.min_ns);
	if (bucket >= last_of(s))
		return (UINT64_MAX);
	return ((i % (9 * s.steps) + s.steps + 1) * s.width[i / (9 * s.steps)]);
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

SHARED void
add(uint64_t *n, uint64_t *sum_ns, uint64_t *max_ns, uint64_t ns)
{
	put(n, get(n) + 1);
	put(sum_ns, get(sum_ns) + ns);
	if (ns > get(max_ns))
		put(max_ns, ns);
}

void
histogram_add(struct histogram *h, uint64_t ns)
{
	add(&h->n[bucket_of(coarse, ns)], &h->sum_ns, &h->max_ns, ns);
}

void
histogram_fine_add(struct histogram_fine *h, uint64_t ns)
{
	add(&h->n[bucket_of(fine, ns)], &h->sum_ns, &h->max_ns, ns);
}

static uint64_t
added(uint64_t a, uint64_t b)
{
	return (a <= UINT64_MAX - b ? a + b : UINT64_MAX);
}

uint64_t
histogram_fine_least(uint64_t ns)
{
	unsigned bucket = bucket_of(fine, ns);

	return (bucket == 0 ? 0 : bound_of(fine, bucket - 1) + 1);
}

void
histogram_fine_add_even(struct histogram_fine *h, uint64_t least, uint64_t most, uint64_t n)
{
	unsigned bucket = bucket_of(fine, most);
	uint64_t sum;

	must(least <= most && bucket_of(fine, least) == bucket);
	if (__builtin_mul_overflow(least + (most - least) / 2, n, &sum))
		sum = UINT64_MAX;
	sum = added(sum, (most - least) % 2 * (n / 2));
	put(&h->sum_ns, added(get(&h->sum_ns), sum));
	put(&h->n[bucket], get(&h->n[bucket]) + n);
	if (most > get(&h->max_ns))
		put(&h->max_ns, most);
}

/* Merges max_ns and all buckets; the caller adds the sum. */
SHARED void
merge(struct scale s, uint64_t *into_max_ns, uint64_t *into_n, struct view from)
{
	uint64_t max = get(from.max_ns);
	unsigned i;

	if (max > *into_max_ns)
		*into_max_ns = max;
	for (i = 0; i <= last_of(s); i++)
		into_n[i] += get(&from.n[i]);
}

void
histogram_merge(struct histogram *into, const struct histogram *from)
{
	into->sum_ns += get(&from->sum_ns);
	merge(coarse, &into->max_ns, into->n, (struct view){ &from->max_ns, from->n });
}

void
histogram_fine_merge(struct histogram_fine *into, const struct histogram_fine *from)
{
	into->sum_ns = added(into->sum_ns, get(&from->sum_ns));
	merge(fine, &into->max_ns, into->n, (struct view){ &from->max_ns, from->n });
}

/* The sum of the buckets, not a separate number, so that a reader never sees two different
 * counts. */
SHARED uint64_t
count_of(const uint64_t *n, unsigned end)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < end; i++)
		sum += get(&n[i]);
	return (sum);
}

uint64_t
histogram_count(const struct histogram *h)
{
	return (count_of(h->n, HISTOGRAM_BUCKETS));
}

uint64_t
histogram_fine_count(const struct histogram_fine *h)
{
	return (count_of(h->n, HISTOGRAM_FINE_BUCKETS));
}

uint64_t
histogram_up_to(const struct histogram *h, uint64_t ns)
{
	unsigned end = bucket_of(coarse, ns);

	if (bound_of(coarse, end) <= ns)
		end++;
	return (count_of(h->n, end));
}

SHARED uint64_t
middle(struct scale s, unsigned bucket)
{
	if (bucket == 0)
		return (s.min_ns / 2);
	return ((bound_of(s, bucket - 1) + bound_of(s, bucket)) / 2);
}

SHARED uint64_t
percentile(struct scale s, struct view h, double p)
{
	uint64_t count = count_of(h.n, last_of(s) + 1), max = get(h.max_ns), seen = 0, rank;
	unsigned i;

	if (count == 0)
		return (0);
	rank = (uint64_t)(p * (double)count);
	if ((double)rank < p * (double)count || rank == 0)
		rank++;
	for (i = 0; i < last_of(s); i++) {
		seen += get(&h.n[i]);
		if (seen >= rank)
			return (middle(s, i) < max ? middle(s, i) : max);
	}
	return (max);
}

uint64_t
histogram_percentile(const struct histogram *h, double p)
{
	return (percentile(coarse, (struct view){ &h->max_ns, h->n }, p));
}

uint64_t
histogram_fine_percentile(const struct histogram_fine *h, double p)
{
	return (percentile(fine, (struct view){ &h->max_ns, h->n }, p));
}

uint64_t
histogram_fine_bound(unsigned bucket)
{
	return (bound_of(fine, bucket));
}

int
histogram_fine_bucket(uint64_t bound_ns)
{
	unsigned bucket = bucket_of(fine, bound_ns);

	return (bound_of(fine, bucket) == bound_ns ? (int)bucket : -1);
}

static void
json_numbers(struct buf *out, const struct histogram *h)
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
	buf_printf(out, ",\"max_ns\":%" PRIu64, h->max_ns);
}

void
histogram_json(struct buf *out, const struct histogram *h)
{
	json_numbers(out, h);
	buf_char(out, '}');
}

void
histogram_json_buckets(struct buf *out, const struct histogram *h)
{
	const char *comma = "";
	unsigned i;

	json_numbers(out, h);
	buf_str(out, ",\"buckets\":[");
	for (i = 0; i < last_of(coarse); i++) {
		uint64_t n = get(&h->n[i]);

		if (n == 0)
			continue;
		buf_printf(out, "%s[%" PRIu64 ",%" PRIu64 "]", comma, bound_of(coarse, i), n);
		comma = ",";
	}
	buf_str(out, "]}");
}
