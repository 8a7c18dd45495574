/* server/status/counters.h -- the counters of all rooms, as their pages show them.
 *
 * A room counts into its own struct and sees no other.  This header is of those who show or add up
 * all of them: server/status/, the worker that has the structs, and the lines of the error log.
 */
#ifndef SERVER_STATUS_COUNTERS_H
#define SERVER_STATUS_COUNTERS_H

#include "files/hold/counters.h"
#include "io/counters.h"
#include "proxy-core/counters.h"
#include "server/conn/counters.h"
#include "server/handler/counters.h"
#include "server/module/counters.h"
#include "server/reply/counters.h"
#include "server/request/counters.h"
#include "server/route/counters.h"

struct worker_counters;

struct server_counters {
	struct conn_counters conn;
	struct handler_counters handler;
	struct hold_counters hold;
	struct io_counters io;
	struct module_counters module;
	struct proxy_counters proxy;
	struct reply_counters reply;
	struct request_counters request;
	struct route_counters route;
	struct {
		uint64_t log_suppressed, log_dropped; /* of the process: set in sums only */
	} status;
};

/* Offsets in struct server_counters. */
extern const struct counter_info server_counter_infos[];

/* Of all workers since the start. */
void server_counters_sum(const struct worker_counters *first, struct server_counters *);

#endif
