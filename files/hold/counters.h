/* files/hold/counters.h -- what the open-file cache counts; server/status/ has a row for each. */
#ifndef FILES_HOLD_COUNTERS_H
#define FILES_HOLD_COUNTERS_H

#include "base/counter.h"

struct hold_counters {
	uint64_t stat_hits, stat_misses, stat_joins, stat_absent_hits;
	uint64_t stat_rechecks, stat_unsettled, stat_overdue;
	uint64_t stat_idle_closed, stat_forgotten, stat_evicted, stat_returned;
};

#endif
