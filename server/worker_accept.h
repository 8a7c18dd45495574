/* server/worker_accept.h -- accepting, and who makes room when the worker is full; between worker.c and conn*.c.
 *
 *   place left                           accept
 *   full, or no descriptor (EMFILE)      accept; for each that comes one that is idle, silent or without a whole head goes
 *   full, all busy, and one address      accept; one from another address takes the place of one of its connections.  Another one of
 *   has more than half of them           its own is reset if clients of WORKER_RECENT addresses came lately; else it may be a proxy's: as below
 *   the same, and all are busy           pause, until one ends or becomes idle (or 500 ms, for a descriptor)
 *
 * Bounds   server.max-connections, and one more for each listener: its accept may be in flight when the last one that could
 *          make room becomes busy.
 *
 * Thread   the worker's.
 */
#ifndef SERVER_WORKER_ACCEPT_H
#define SERVER_WORKER_ACCEPT_H

#include "server/worker.h"

int accept_new(struct worker *);          /* listeners of its conf; none accepts yet */
void accept_all(struct worker *);
void accept_stop(struct worker *);        /* a wish */
bool accept_parked(const struct worker *);

/* Another connection, from that address, is about to be added.  False: it is refused. */
bool accept_make_room(struct worker *, struct client_addr from);
void accept_conn_gone(struct worker *);   /* a descriptor is free again */
void accept_room_grew(struct worker *);   /* a connection became one that can make room, or holds more memory */

#endif
