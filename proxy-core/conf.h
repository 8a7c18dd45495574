/* proxy-core/conf.h -- settings: of the pools of one block, and of one request.
 *
 * Units    milliseconds (_ms).  The manual calls them proxy-core.*, with limits and defaults.
 * Owner    the caller; texts and lists stay with it as long as the pools or the request use them.
 */
#ifndef PROXY_CORE_CONF_H
#define PROXY_CORE_CONF_H

#include <stdbool.h>
#include "proxy-core/backends.h"

struct proxy_conf { /* copied by upstream_new() */
	const struct proto *proto;
	const struct backends *backends; /* stays with its owner, and may change */
	const char *balancer;            /* of balance.h */
	unsigned balance_factor;         /* of balance.h, percent */
	const char *secret;      /* for a codec that sends one; NULL: none; stays with its owner */
	unsigned max_pool_size;  /* sockets to each backend, at least 1 */
	unsigned max_per_client; /* busy sockets of one client; 0: all */
	/* requests on one socket; 0: it is closed after the first */
	unsigned max_keep_alive_requests;
	unsigned max_waiters; /* 0: 503 instead of waiting */
	unsigned connect_ms;
	unsigned disable_ms; /* first pause of a backend that cannot be reached */
	unsigned idle_ms;    /* a kept socket without a request is closed then */
	/* GET this from each backend every check_ms; NULL: never */
	const char *check_url;
	unsigned check_ms;
	unsigned slow_start_ms; /* 0: a backend that came back gets its whole share at once */
	/* this many failures in fail_ms take a backend out for fail_ms; 0: never */
	unsigned max_fails;
	unsigned fail_ms;
};

/* Faults after which a request goes to the next backend: N(bit, "word of proxy-core.next-upstream",
 * status of the reply or 0). */
#define NEXT_FAULTS(N)              \
	N(error, "error", 0)        \
	N(timeout, "timeout", 0)    \
	N(bad, "invalid-header", 0) \
	N(500, "http-500", 500)     \
	N(502, "http-502", 502)     \
	N(503, "http-503", 503)     \
	N(504, "http-504", 504)

enum {
#define N(bit, word, status) NEXT_AT_##bit,
	NEXT_FAULTS(N)
#undef N
};
enum {
#define N(bit, word, status) NEXT_##bit = 1 << NEXT_AT_##bit,
	NEXT_FAULTS(N)
#undef N
};

struct exchange_conf {     /* copied by exchange_start() */
	unsigned wait_ms;  /* for a socket */
	unsigned read_ms;  /* silence of the application; 0: without end */
	unsigned reply_ms; /* from the whole request to the head of the reply; 0: read_ms */
	unsigned total_ms; /* from the first socket to the end of the reply; 0: without end */
	unsigned
	    hedge_ms; /* without a byte of the reply: a second try at another backend; 0: none */
	unsigned hedge_percent; /* percent of a worker's requests that may get one */
	/* number of the only backend that may get it, from 1; 0: any (backends.h) */
	unsigned place;
	unsigned next;       /* bits NEXT_*; 0: a request that was sent goes to no other backend */
	unsigned next_tries; /* backends that may get the request; 0: all */
	unsigned next_ms;    /* since the start of the exchange; 0: at any time */
	bool debug;          /* log the socket that it gets */
};

#endif
