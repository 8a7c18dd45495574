/* accel-warm/queue.h -- what is still to be done: directories to be read, batches of names to be touched.
 *
 *	directories, newest first: [ d ] [ c ] [ b ]         as deep as possible, so few are open
 *	batches, oldest first:     [ = = = ] [ = = = = = ]   all threads take from the first one
 *
 * Directories come first while not too many names wait: their number is what tells how long it will take.  A reader that
 * is far ahead touches names itself (walk_queue_full()), so memory is bounded whatever the tree is.
 *
 * Devices that hang are passed over until they do not any more.
 *
 * Owner    a reference of what is added goes to the queue, and to who takes it.
 * Thread   any.
 */
#ifndef ACCEL_WARM_QUEUE_H
#define ACCEL_WARM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "accel-warm/batch.h"
#include "accel-warm/dir.h"

struct walk_queue;

/* max_open: about so many directories are held open.  over_fd: an eventfd, written to when all is done. */
struct walk_queue *walk_queue_new(size_t max_open, int over_fd);
void walk_queue_free(struct walk_queue **);	/* all is done */

void walk_queue_add_dir(struct walk_queue *, struct walk_dir *);
void walk_queue_add_batch(struct walk_queue *, struct walk_batch *);

/* Waits.  True: one of the two is set, and is a job until it is said to be done.  False: all is done, or this thread is one
 * too many. */
bool walk_queue_take(struct walk_queue *, struct walk_dir **, struct walk_batch **);
struct walk_batch *walk_queue_take_batch(struct walk_queue *);	/* does not wait; NULL: none */

/* Every directory and batch is one job.  A source is what may still find names: a directory, or the holder of one. */
void walk_queue_hold(struct walk_queue *);
void walk_queue_done_source(struct walk_queue *);
void walk_queue_done_batch(struct walk_queue *);

void walk_queue_opened(struct walk_queue *);	/* a directory */
void walk_queue_closed(struct walk_queue *);
bool walk_queue_full(struct walk_queue *);
void walk_queue_wait_room(struct walk_queue *);	/* until it is not full; not for threads that empty it */
bool walk_queue_all_read(struct walk_queue *);	/* no source is left: all names are known */

/* Devices that hang, and how many threads may end because those that hung are back. */
void walk_queue_steer(struct walk_queue *, const dev_t *hanging, size_t n, unsigned surplus);
bool walk_queue_hangs(struct walk_queue *, dev_t);

#endif
