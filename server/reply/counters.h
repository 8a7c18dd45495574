/* server/reply/counters.h -- what replies count; server/status/counters.def names them. */
#ifndef SERVER_REPLY_COUNTERS_H
#define SERVER_REPLY_COUNTERS_H

#include "base/counter.h"

struct reply_counters {
	uint64_t replies, replies_2xx, replies_3xx, replies_4xx, replies_5xx, replies_cut;
	uint64_t file_shrunk, file_changed, file_failed, access_left_out;
};

#endif
