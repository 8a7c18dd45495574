/* server/route/counters.h -- what routing counts; server/status/counters.def names them. */
#ifndef SERVER_ROUTE_COUNTERS_H
#define SERVER_ROUTE_COUNTERS_H

#include "base/counter.h"

struct route_counters {
	uint64_t sets_evicted;
};

#endif
