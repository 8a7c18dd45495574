/* proxy-core/waiters.h -- who waits for a socket of one application, in a row for each client; inside proxy-core/ only.
 *
 *   pool_get() --> rows (base/rows.h) --waiters_next()--> whose client has the fewest busy sockets, oldest first
 *                    |
 *                    |- waiters_shed()     more than may: the newest of the client that has most waiting
 *                    `- waiters_expire()   the deadline, which comes in the order of arrival
 *
 * Bounds   max_waiters, and those for whom a connect is on its way.
 * Thread   that of the worker.
 */
#ifndef PROXY_CORE_WAITERS_H
#define PROXY_CORE_WAITERS_H

#include "proxy-core/pool_impl.h"

int waiters_push(struct pool *, struct pool_wait *);   /* -ENOMEM */
struct pool_wait *waiters_next(const struct pool *);   /* NULL: none waits */
void waiters_take(struct pool_wait *, struct lease *); /* its socket is the client's until waiters_served() */
void waiters_served(struct lease *);
/* newest: the one that has just come, or NULL; others that go have been displaced. */
void waiters_shed(struct pool *, const struct pool_wait *newest);
void waiters_fail(struct pool *, int err);
void waiters_expire(struct pool *, uint64_t now);

#endif
