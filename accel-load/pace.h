/* accel-load/pace.h -- when requests start.
 *
 * Closed loop: as soon as a connection is free.  Open loop: by the clock, even if answers are late.
 * Thread i of n has the requests i, i + n, i + 2n ... of the schedule.
 */
#ifndef ACCEL_LOAD_PACE_H
#define ACCEL_LOAD_PACE_H

#include "accel-load/thread.h"

/* Starts the requests that are due.  Returns when to call it again; NEVER: after an answer.  It
 * stops at a new connection, so that its request goes out before the next one is made: servers that
 * are full close connections that have sent nothing. */
uint64_t pace_start_due(struct thread *);
/* At the end: requests that were due but had no connection count with their age. */
void pace_count_overdue(struct thread *);

#endif
