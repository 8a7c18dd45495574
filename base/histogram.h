/* base/histogram.h -- durations in buckets whose width is a fixed share of the start of their
 * decade.
 *
 *   histogram       a tenth      10 us to 100 s     5 kB: for each stage of each worker of a server
 *   histogram_fine  a hundredth   1 us to 10000 s  72 kB: for a load generator
 *
 *   (0, 10 us] | (10, 11] (11, 12] ... (99, 100] us | (100, 110] us ... | (99, 100] s | longer
 *
 * The buckets are decimal, so that usual bounds of charts (25 us, 1 ms, 2.5 s) are bounds of
 * buckets and cumulative counts are exact.  Merging is exact: it adds bucket by bucket.
 *
 * Error    histogram_percentile() is at most 5 % off between 10 us and 100 s: half the widest
 *          bucket.  histogram_fine_percentile(): 0.5 % between 1 us and 10000 s.
 * Units    nanoseconds.
 * Thread   histogram_add(): one writer.  Readers: any thread at any time, with relaxed loads; a
 *          merged copy belongs to its reader.  Nothing is allocated.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include "base/buf.h"

#define HISTOGRAM_MIN_NS     10000ull
#define HISTOGRAM_MAX_NS     100000000000ull
#define HISTOGRAM_PER_DECADE 90u
#define HISTOGRAM_BUCKETS    (2 + 7 * HISTOGRAM_PER_DECADE)

struct histogram {
	uint64_t sum_ns, max_ns;
	uint64_t n[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *, uint64_t ns);
void histogram_merge(struct histogram *into, const struct histogram *from);

uint64_t histogram_count(const struct histogram *);
/* values <= ns; exact if ns is the bound of a bucket */
uint64_t histogram_up_to(const struct histogram *, uint64_t ns);
/* The value below which the share p (0 to 1) of all values lies; at most the largest value; 0 if
 * there are none. */
uint64_t histogram_percentile(const struct histogram *, double p);

/* {"count":...,"sum_ns":...,"p50_ns":...,"max_ns":...} */
void histogram_json(struct buf *, const struct histogram *);
/* With "buckets":[[bound_ns,count],...] of those that are not empty, in order.  Values beyond the
 * last bound are the rest of count.  A reader of two of them knows the percentiles in between. */
void histogram_json_buckets(struct buf *, const struct histogram *);

#define HISTOGRAM_FINE_MIN_NS     1000ull
#define HISTOGRAM_FINE_MAX_NS     10000000000000ull
#define HISTOGRAM_FINE_PER_DECADE 900u
#define HISTOGRAM_FINE_BUCKETS    (2 + 10 * HISTOGRAM_FINE_PER_DECADE)

struct histogram_fine {
	uint64_t sum_ns, max_ns;
	uint64_t n[HISTOGRAM_FINE_BUCKETS];
};

void histogram_fine_add(struct histogram_fine *, uint64_t ns);
/* n values of one bucket, least to most, evenly spread.  Their sum is exact within a nanosecond a
 * value; it stays at UINT64_MAX when it would be larger. */
void histogram_fine_add_even(struct histogram_fine *, uint64_t least, uint64_t most, uint64_t n);
/* The smallest value of the bucket of ns. */
uint64_t histogram_fine_least(uint64_t ns);
/* The sum stays at UINT64_MAX when it would be larger. */
void histogram_fine_merge(struct histogram_fine *into, const struct histogram_fine *from);
uint64_t histogram_fine_count(const struct histogram_fine *);
uint64_t histogram_fine_percentile(const struct histogram_fine *, double p);
/* Largest value of a bucket; UINT64_MAX of the last. */
uint64_t histogram_fine_bound(unsigned bucket);
/* The bucket of this bound, or -1 if no bucket has it. */
int histogram_fine_bucket(uint64_t bound_ns);

#endif
