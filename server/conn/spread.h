/* server/conn/spread.h -- connections spread evenly over the workers; conn_new() asks
 * for each new one.
 *
 *   accept:  as many as the share or fewer?  yes: it stays.  no: the worker with fewest gets it
 *   idle:    a connection of a worker above its share moves when it has its reply
 *   close:   100 ms later this worker looks; the worker with most moves idle ones if it has too
 *            many
 *   move:    100 ms later this worker looks; those that wait for a loop that stands still go on
 *
 * The kernel wakes the worker that was last to sleep, so without this one worker has most of the
 * connections of a quiet hour.  It keeps them when they become busy.
 *
 * A connection that stays costs one comparison; one that moves costs a lock and a wake-up of one
 * worker.  Not a socket for each worker (SO_REUSEPORT): it spreads by a hash, cannot undo what
 * clients do by leaving, and a closed socket resets the connections that wait in it.  Not a worker
 * that stops accepting: the connection would wait for one that is busy.  A worker that stands still
 * gets no more than it would take in a round (server/conn/handover.c).  Busiest worker / mean, 400
 * connections, 4 workers, and p99 of the first answer:
 *
 *                      at once   in turn   200 have left   p99
 *   this               1.15      1.15      1.13            146 us
 *   nginx              2.09      1.09      1.12            181 us
 *   nginx, reuseport   1.15      1.21      1.30            274 us
 *
 * Thread   the worker's.
 */
#ifndef SERVER_CONN_SPREAD_H
#define SERVER_CONN_SPREAD_H

#include <stdbool.h>

struct moved;
struct worker;

void spread_init(struct worker *);
void spread_stop(struct worker *); /* it drains */

/* An accepted connection: true if another worker gets it. */
bool spread_gives(struct worker *, const struct moved *);
/* True: the worker has more connections than its share. */
bool spread_is_due(struct worker *);
void spread_begin(struct worker *); /* looks now: moves idle connections if it has too many */
/* A connection has closed, or has moved. */
void spread_look_soon(struct worker *);

#endif
