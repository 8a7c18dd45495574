/* server/handler/counters.h -- what handlers count; server/status/counters.def names them. */
#ifndef SERVER_HANDLER_COUNTERS_H
#define SERVER_HANDLER_COUNTERS_H

#include "base/counter.h"

struct handler_counters {
	uint64_t proxy_tunnels_refused, sendfile_headers, tempfiles_removed, control_dropped;
};

#endif
