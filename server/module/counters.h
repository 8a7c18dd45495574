/* server/module/counters.h -- what modules count; server/status/counters.def names them. */
#ifndef SERVER_MODULE_COUNTERS_H
#define SERVER_MODULE_COUNTERS_H

#include "base/counter.h"

struct module_counters {
	uint64_t over_rate_closed, requests_over_rate;
	uint64_t deflate_files, deflate_siblings, deflate_streams, deflate_from_cache;
	uint64_t deflate_none, deflate_refused, deflate_late;
	uint64_t auth_checks, auth_failed, auth_busy;
};

#endif
