/* accel-warm/crew.h -- the threads that read directories and touch names.
 *
 *	main --> walk_crew_start() --> thread 1..N: take, touch, count --> queue is empty: over_fd
 *	  `----> walk_crew_tick(), four times a second: who hangs?  Another thread takes its place.
 *
 * A thread that has not come back for WALK_STUCK_MS hangs.  For each one that does another is started, up to four times
 * as many as are wanted; when they come back, as many end.  One file that hangs is one thread; when half as many as are
 * wanted hang on the same device, it is the device, and nobody goes there until some have come back.
 *
 * Thread   all of these: the one that started the crew.
 */
#ifndef ACCEL_WARM_CREW_H
#define ACCEL_WARM_CREW_H

#include "accel-warm/conf.h"
#include "accel-warm/queue.h"
#include "accel-warm/state.h"
#include "accel-warm/tally.h"

#define WALK_STUCK_MS 5000

struct walk_crew;

/* *conf, the queue and state (NULL: none) outlive it.  -errno: not one thread could be started. */
int	 walk_crew_start(const struct walk_conf *, struct walk_queue *, struct walk_state *, struct walk_crew **);
unsigned walk_crew_tick(struct walk_crew *);	/* how many threads hang */
void	 walk_crew_tally(const struct walk_crew *, struct walk_tally *);
void	 walk_crew_join(struct walk_crew **);	/* the queue is empty: waits for the threads' ends */

#endif
