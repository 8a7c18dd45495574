/* base/meters.h -- how much each client address has used lately: requests and bytes, in all
 * threads.
 *
 * A meter is a time: when what the address has used so far has had its time, at the rate that it
 * may have.  An address may be ahead of the clock by its burst.
 *
 *        now        meter               each request moves the meter by 1/rate seconds
 *   ------|-----------|---> time        beyond now + burst/rate: refused, and the meter stays
 *         |<- <= burst ->|
 *
 *   hash of the address --> set of 8 slots {address, requests, bytes}
 *
 * Who makes room   a meter that is not ahead of the clock says nothing, so its slot is free.  In a
 *                  set without a free slot the one that is least ahead gets the new address, and
 *                  keeps its time.  So an address that comes back after others took its slot does
 *                  not begin anew, and all addresses of a set together have at most 8 rates.
 *                  Nobody outside knows which addresses share a set: the hash has a secret.
 * Bounds           METERS_SETS sets of 192 bytes, 24 MiB; memory that no address has used is not
 *                  touched.
 * Thread           any, without locks.  Two threads that meet in one slot may count a request for
 *                  the wrong address of the set.
 */
#ifndef BASE_METERS_H
#define BASE_METERS_H

#include "base/client_addr.h"

#define METERS_SETS (1u << 17)
#define METERS_WAYS 8u

struct meters;

struct meters *meters_new(unsigned sets); /* a power of two; NULL: no memory */
void meters_free(struct meters *);        /* NULL is allowed */

/* Counts one request.  per_s: the rate; burst: requests at once, at least 1.  0: it is
 * within the rate; otherwise the time until one would be, and nothing is counted. */
uint64_t meters_request(struct meters *, struct client_addr, uint64_t now_ns, uint64_t per_s,
    uint64_t burst);
/* The meter of bytes, atomic, for pace_turn(): to be used at once. */
uint64_t *meters_bytes(struct meters *, struct client_addr);

#endif
