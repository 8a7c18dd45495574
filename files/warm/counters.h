/* files/warm/counters.h -- what files/warm/ counts; its files and those who show it see this. */
#ifndef FILES_WARM_COUNTERS_H
#define FILES_WARM_COUNTERS_H

#include "base/counter.h"

struct warm_counters {
	/* requests, by where their answer came from */
	uint64_t hot, remembered, joined, cold, late;
	uint64_t slow, behind_skipped; /* files */
	uint64_t bytes_before, bytes_behind;
};

#endif
