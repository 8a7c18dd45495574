/* proxy-core/counters.h -- what exchanges and pools count; server/status/ has a row for each. */
#ifndef PROXY_CORE_COUNTERS_H
#define PROXY_CORE_COUNTERS_H

#include "base/counter.h"

struct proxy_counters {
	uint64_t proxy_requests, proxy_failed, proxy_retries, proxy_next, proxy_next_none;
	uint64_t proxy_taken_out, proxy_hedges, proxy_hedges_won, proxy_hedges_refused;
	uint64_t proxy_tunnels, proxy_stalls, proxy_displaced, proxy_gave_way;
};

#endif
