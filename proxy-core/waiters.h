/* proxy-core/waiters.h -- the requests that wait for a socket of one application, in a row for each
 * client; inside proxy-core/ only.
 *
 *   pool_get() --> fair queue --waiters_next()--> the oldest waiter of the client
 *                    |                          with the fewest busy sockets
 *                    `- waiters_shed()     over the limit: the newest of the client with most
 *
 * Bounds   max_waiters, and those for whom a connect is in flight.
 * Thread   the worker's.
 */
#ifndef PROXY_CORE_WAITERS_H
#define PROXY_CORE_WAITERS_H

#include "proxy-core/pool_impl.h"

int waiters_push(struct pool *, struct pool_wait *); /* -ENOMEM */
/* the waiter that gets the next socket; NULL: none waits, or the client of each waiter has as many
 * sockets as a client may have */
struct pool_wait *waiters_next(const struct pool *);
/* the socket counts for the client until waiters_served() */
void waiters_take(struct pool_wait *, struct lease *);
void waiters_served(struct lease *);
/* newest: the waiter that has just come, or NULL; other waiters that are removed count as
 * displaced. */
void waiters_shed(struct pool *, const struct pool_wait *newest);
void waiters_fail(struct pool *, int err);

#endif
