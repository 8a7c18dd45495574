/* base/histogram.h -- how long things took: 10 us to 100 s in buckets whose width is a tenth of their decade's start.
 *
 *   (0, 10 us]  |  (10, 11] (11, 12] ... (99, 100] us  |  (100, 110] ... us  |  ...  |  (99, 100] s  |  longer
 *
 * Decimal, so that the bounds people draw (25 us, 1 ms, 2.5 s) are bounds of buckets and cumulative counts are exact.
 *
 * Error    histogram_percentile() is at most 5 % off between 10 us and 100 s: half the widest bucket.
 * Units    nanoseconds.
 * Thread   histogram_add(): one writer.  Readers anywhere, at any time, with relaxed loads; a merged copy is the
 *          reader's own.  Nothing is allocated.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_MIN_NS 10000ull
#define HISTOGRAM_MAX_NS 100000000000ull
#define HISTOGRAM_PER_DECADE 90u
#define HISTOGRAM_BUCKETS (2 + 7 * HISTOGRAM_PER_DECADE)

struct histogram {
	uint64_t sum_ns, max_ns;
	uint64_t n[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *, uint64_t ns);
void histogram_merge(struct histogram *into, const struct histogram *from);

uint64_t histogram_count(const struct histogram *);
uint64_t histogram_up_to(const struct histogram *, uint64_t ns); /* values <= ns; exact when ns is a bucket's bound */
/* The value below which the share p (0 to 1) of all lie; never more than the largest; 0 when there is none. */
uint64_t histogram_percentile(const struct histogram *, double p);
uint64_t histogram_bound(unsigned bucket); /* its largest value; UINT64_MAX for the last */

#endif
