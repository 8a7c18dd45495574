/* proxy-core/conf.h -- settings: of the pools of one block, and of one request. */
#ifndef PROXY_CORE_CONF_H
#define PROXY_CORE_CONF_H

#include <stdbool.h>
#include "proxy-core/backend.h"

struct proxy_conf { /* copied by upstream_new() */
	const struct proto *proto;
	const struct backends *backends;
	const char *balancer;   /* of balance.h */
	unsigned max_pool_size; /* sockets to each backend, at least 1 */
	/* requests on one socket; 0: it is closed after the first */
	unsigned max_keep_alive_requests;
	unsigned max_waiters; /* 0: 503 instead of waiting */
	unsigned connect_ms, disable_ms;
};

struct exchange_conf {    /* copied by exchange_start() */
	unsigned wait_ms; /* for a socket */
	unsigned read_ms; /* silence of the application; 0: without end */
	bool debug;       /* log the socket that it gets */
};

#endif
