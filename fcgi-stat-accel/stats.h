/* fcgi-stat-accel/stats.h -- what is counted, for the status page and the log.
 *
 * Thread   the loop's: one writer, and the page is made by the same thread.
 */
#ifndef FCGI_STAT_ACCEL_STATS_H
#define FCGI_STAT_ACCEL_STATS_H

#include <stddef.h>
#include <stdint.h>
#include "base/histogram.h"

struct stats {
#define C(name, dotted, doc) uint64_t name;
#include "fcgi-stat-accel/stats.def"
#undef C
	unsigned conns, conns_max;	/* open now, and how many may be */
	unsigned waiting;		/* requests that wait for their file */
	/* ns: for a thread, open(), reading, request to answer.  By the loop's clock, which stands still for a round: a hot
	 * request counts in total, as 0. */
	struct histogram queue, stat, read, total;
};

/* All of them, for those who print; .name NULL at the end. */
struct stats_info {
	const char *name, *dotted, *doc;
	size_t offset;
};
extern const struct stats_info stats_infos[];

static inline uint64_t
stats_get(const struct stats *s, const struct stats_info *si)
{
	return (*(const uint64_t *)((const char *)s + si->offset));
}

#define STATS_COUNT(s, name) ((s)->name++)

#endif
