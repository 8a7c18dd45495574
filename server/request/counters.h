/* server/request/counters.h -- what requests count; server/status/counters.def names them. */
#ifndef SERVER_REQUEST_COUNTERS_H
#define SERVER_REQUEST_COUNTERS_H

#include "base/counter.h"

struct request_counters {
	uint64_t match_failed;
	uint64_t own_5xx_application, own_5xx_file, own_5xx_descriptors, own_5xx_memory;
	uint64_t own_5xx_other;
	uint64_t spool_bytes, spool_opened, spool_closed, spool_refused;
};

#endif
