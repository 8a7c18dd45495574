/* proxy-core/upstream.h -- one block's backends in one worker: its pools, its running exchanges and
 * the timer that checks their deadlines.  For the files of proxy-core/; exchange.h is for others.
 *
 * Owner    the worker; upstream_new() and upstream_free() are in exchange.h.
 * Thread   the worker's.
 */
#ifndef PROXY_CORE_UPSTREAM_H
#define PROXY_CORE_UPSTREAM_H

#include "base/list.h"
#include "proxy-core/exchange.h"
#include "proxy-core/members.h"
#include "wire/codec/codec.h"

#define LINES_PER_SECOND 100 /* in the log: stderr lines of applications; exchanges that failed */

struct upstream {
	struct io *io;
	struct proxy_counters *counters;
	const struct proto *proto;
	const struct balancer *balancer;
	unsigned balance_factor;
	struct members members;
	struct list exchanges; /* all of them, for the tick */
	struct list soon;      /* exchanges with work in the next round */
	unsigned nexchanges;
	unsigned hedge_credit; /* what its requests have earned, in hundredths of a second try */
	struct io_op tick;
	struct io_op round; /* a call in the next round */
	struct list checks; /* that run; check.c */
	bool ticking, round_due, dying;
	bool first_tick;     /* has not come yet */
	bool closing;        /* drains: no more checks */
	uint64_t checked_ns; /* when this worker last had a check to make */
};

/* Called by the two timers; exchange.c. */
void exchange_tick(struct list *link, uint64_t now_ns);
void exchange_end_drain(struct list *link); /* it must be an exchange without a caller */
void exchange_next_round(struct list *soon);
/* In each pool that is full, one exchange ends if a client without a socket waits;
 * exchange_yield.c. */
void upstream_yield(struct upstream *, uint64_t now_ns);

void upstream_enter(struct upstream *, struct list *exchange);
void upstream_leave(struct upstream *, struct list *exchange);
void upstream_next_round(struct upstream *, struct list *soon);
/* Slot of a pool whose bit in tried is not set, or BALANCE_NONE. */
size_t upstream_pick(struct upstream *, const struct proxy_request *, uint64_t tried,
    unsigned place);
unsigned upstream_retry_after_s(const struct upstream *);

#endif
