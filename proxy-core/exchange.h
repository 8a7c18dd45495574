/* proxy-core/exchange.h -- one request to one application, and its reply, as they happen.
 *
 *   exchange_start -> [waiting for a socket] -> connect -> send -> on_head -> on_body... -> on_end
 *
 * Result   on_end(arg, 0): the reply is complete.  Before on_head: on_end(arg, 502, 503 or 504), what to tell the
 *          client (retry_after_s is set for 503).  After on_head: on_end(arg, -errno): the reply broke off, cut the
 *          client's connection.  on_end comes exactly once and last, unless exchange_forget() took the sink away.
 * Owner    the request and all it points to belong to the caller and stay valid until on_end or
 *          exchange_forget().  Texts given to on_head and on_body are lent until the call returns.
 * Thread   the worker's loop.  Callbacks never come from inside exchange_start().
 */
#ifndef PROXY_CORE_EXCHANGE_H
#define PROXY_CORE_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/counter.h"
#include "base/text.h"
#include "io/io.h"
#include "proxy-core/meter.h"
#include "wire/message.h"

struct proxy_times {        /* CLOCK_MONOTONIC ns; 0: did not happen */
	uint64_t start, leased, sent, head, end;
};

struct exchange_sink {
	void (*on_head)(void *arg, const struct proxy_reply *);
	void (*on_body)(void *arg, struct text bytes);
	void (*on_room)(void *arg); /* after exchange_body() took less than it was given: room again */
	void (*on_end)(void *arg, int status, unsigned retry_after_s);
};

struct proxy_conf {             /* of one block; copied by upstream_new() */
	const char *protocol;   /* "fastcgi" */
	const char *const *backends;
	size_t nbackends;
	const char *balancer;
	unsigned max_pool_size, max_keep_alive_requests, disable_time_s, max_waiters;
	unsigned wait_ms, connect_ms, read_ms;
	bool split_hostnames, queue; /* queue false: 503 instead of waiting */
	unsigned debug;
	unsigned number;             /* of the block: 0 for the first that has backends */
};

struct upstream; /* one block's backends, pools and waiters in one worker */
struct exchange;

/* Looks addresses up and checks the protocol: start-up only, blocks.  0 or -errno with *err (errsize bytes) saying what
 * is wrong and what to do. */
int upstream_check(const struct proxy_conf *, char *err, size_t errsize);
/* After that check: a meter for each pool there will be (NULL: no memory), for status pages to show before the first request. */
void upstream_meters(const struct proxy_conf *, void (*take)(struct meter *, void *arg), void *arg);
/* After upstream_check(). */
struct upstream *upstream_new(struct io *, struct counters *, const struct proxy_conf *, int *err);
void upstream_free(struct upstream *); /* no exchange may be running; closes idle sockets (io_run() until done) */
bool upstream_idle(const struct upstream *); /* no exchange, no socket */
void upstream_close_idle(struct upstream *); /* drain: idle sockets close, busy ones after their reply */

/* 0 or -ENOMEM. */
int exchange_start(struct upstream *, const struct proxy_request *, const struct exchange_sink *, void *arg,
    struct exchange **);
/* Request body bytes, copied; returns how many were taken (the rest after on_room). */
size_t exchange_body(struct exchange *, struct text bytes);
void exchange_pause(struct exchange *);  /* no on_body until resume: the client is slow */
void exchange_resume(struct exchange *);
/* No callback any more; yours is NULL now.  drain: the rest of the reply is read (at most 64 KiB, for at most a second)
 * so that the socket can be kept; else the socket is closed. */
void exchange_forget(struct exchange **, bool drain);
const struct proxy_times *exchange_times(const struct exchange *);
const char *exchange_backend(const struct exchange *); /* name for logs; "" before one is chosen */

#endif
