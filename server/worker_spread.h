/* server/worker_spread.h -- connections spread evenly over the workers; between worker.c and
 * server/conn/.
 *
 *   accept:  as many as the share or fewer?  yes: it stays.  no: the worker with fewest gets it
 *   idle:    a connection of a worker above its share moves when it has its reply
 *   close:   100 ms later this worker looks; whoever has most, and too many, moves idle ones
 *
 * The kernel wakes the worker that was last to sleep, so without this one worker has most of the
 * connections of a quiet hour.  It keeps them when they become busy.
 *
 * Thread   the worker's.
 */
#ifndef SERVER_WORKER_SPREAD_H
#define SERVER_WORKER_SPREAD_H

#include "server/worker.h"

void spread_init(struct worker *);
void spread_stop(struct worker *); /* it drains */

/* An accepted connection: true if another worker gets it. */
bool spread_gives(struct worker *, const struct moved *);
/* True: the worker has more connections than its share. */
bool spread_is_due(struct worker *);
void spread_begin(struct worker *);  /* looks now: moves idle connections if it has too many */
void spread_closed(struct worker *); /* a connection has closed */

#endif
