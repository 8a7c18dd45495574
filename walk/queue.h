/* walk/queue.h -- the work to do: directories to read, batches of names to touch.
 *
 * 	directories, newest first: [ d ] [ c ] [ b ]         as deep as possible, so few are open
 * 	batches, oldest first:     [ = = = ] [ = = = = = ]   all threads take from the first one
 *
 * Directories come first while few names wait, because their number is needed to estimate the time.
 * A reader that is far ahead touches names itself (walk_queue_full()), so memory is bounded for any
 * tree.
 *
 * Devices that hang are skipped until they answer again.
 *
 * Owner    one reference of an added job goes to the queue, then to its taker.
 * Thread   any.
 */
#ifndef WALK_QUEUE_H
#define WALK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "walk/batch.h"
#include "walk/dir.h"

struct walk_queue;

/* max_open: about this many directories are open.  over_fd: an eventfd, written to at the end of
 * all work. */
struct walk_queue *walk_queue_new(size_t max_open, int over_fd);
void walk_queue_free(struct walk_queue **); /* all work must be done */

void walk_queue_add_dir(struct walk_queue *, struct walk_dir *);
void walk_queue_add_batch(struct walk_queue *, struct walk_batch *);

/* Waits.  True: one of the two pointers is set, to a job that ends with walk_queue_done_*().
 * False: all work is done, or there is one thread too many. */
bool walk_queue_take(struct walk_queue *, struct walk_dir **, struct walk_batch **);
struct walk_batch *walk_queue_take_batch(struct walk_queue *); /* does not wait; NULL: none */

/* Every directory and batch is one job.  A source may still find names: a directory, or a caller
 * of walk_queue_hold(). */
void walk_queue_hold(struct walk_queue *);
void walk_queue_done(struct walk_queue *, bool is_source);

void walk_queue_opened(struct walk_queue *); /* a directory was opened */
/* one user less; may close the directory */
void walk_queue_unuse(struct walk_queue *, struct walk_dir *);
bool walk_queue_full(struct walk_queue *);
/* Waits until the queue is not full; not for threads that empty it. */
void walk_queue_wait_room(struct walk_queue *);
bool walk_queue_all_read(struct walk_queue *); /* no source is left: all names are known */

/* Sets the devices that hang, and the number of threads that may end because hung ones are back. */
void walk_queue_steer(struct walk_queue *, const dev_t *hanging, size_t n, unsigned surplus);
bool walk_queue_hangs(struct walk_queue *, dev_t);

#endif
