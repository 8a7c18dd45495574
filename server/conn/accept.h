/* server/conn/accept.h -- accepting, and making room in a full worker.
 *
 *   place left                        accept
 *   full, or no descriptor (EMFILE)   accept; each new connection replaces one that is idle, silent
 *                                     or without a whole head
 *   full, all busy, and one address   accept; a connection from another address replaces one of
 *   has more than half of them        that address.  One more from the same address is reset if
 *                                     clients of WORKER_RECENT addresses came lately.  Otherwise
 *                                     the address may be a proxy's: as in the next line
 *   full, all busy                    pause until a connection closes or becomes idle (or for
 *                                     500 ms, if a descriptor is missing)
 *
 * Bounds   server.max-connections, and one more for each listener: its accept may be in flight when
 *          the last evictable connection becomes busy.
 *
 * Thread   the worker's.
 */
#ifndef SERVER_CONN_ACCEPT_H
#define SERVER_CONN_ACCEPT_H

#include <stdbool.h>

struct client_addr;
struct worker;

int accept_new(struct worker *); /* the listeners of its conf; none accepts yet */
void accept_all(struct worker *);
void accept_stop(struct worker *); /* a wish: running accepts may still end */
bool accept_parked(const struct worker *);

/* Another connection from that address is about to be added.  False: refuse it. */
bool accept_make_room(struct worker *, struct client_addr from);
void accept_resume(struct worker *); /* a descriptor is free again */
/* A connection became evictable, or its unfinished head grew: closes unfinished heads while all
 * hold more than server.max-unfinished-head-bytes; then accepting goes on. */
void accept_evict_heads(struct worker *);

#endif
