/* io/disk/queue.h -- inside io/ only: which of the waiting jobs goes next.
 *
 *   job --> device (st_dev) --> row of its client (base/rows.h) --> oldest first
 *
 *   queue_push(): waits      queue_take(): runs, its device has a place less      queue_ran(): gives it back
 *
 * Devices take turns, and so do the clients of a device: a disk that hangs holds up its own jobs only, and a client with a
 * thousand connections gets no more than its share.
 *
 * Bounds   per_device jobs of a device run at a time, total of all devices, of which the last few are kept for devices of
 *          which nothing runs; max_waiting wait for a device.  One more displaces the newest job of the longest row, or is
 *          refused if its own row would be as long.  Once all places of a device are taken and each job has run there for
 *          stuck_ms, nobody waits for it any more.
 * Owner    a job is the queue's from push until take; the caller has it while it runs.
 * Thread   none of its own: the caller locks, or has it to itself.
 */
#ifndef IO_DISK_QUEUE_H
#define IO_DISK_QUEUE_H

#include "io/disk/pools.h"
#include "io/disk/job.h"

struct io_device;

#define QUEUE_LAST 16u /* at most, and never so many that one device alone could not have its share */
#define QUEUE_SPARE 4u /* times as many places in all when one device may have what is configured */

struct io_queue {
	unsigned per_device, total, max_waiting, stuck_ms;
	unsigned last;       /* of total: places for devices that have none */
	unsigned running, waiting;
	struct list devices; /* those with jobs, and some that had */
	unsigned ndevices;
	struct list turn;    /* those with a job that may run */
};

/* stuck_ms 0: never */
void queue_init(struct io_queue *, unsigned per_device, unsigned total, unsigned max_waiting, unsigned stuck_ms);

/* What is configured, as places: one device may have per_device of `jobs`; 0: all of them, and others get some more then. */
static inline void
queue_places(unsigned per_device, unsigned jobs, unsigned most, unsigned *each, unsigned *total)
{
	*total = per_device != 0 ? jobs : QUEUE_SPARE * jobs;
	*total = *total < most ? *total : most;
	*each = per_device != 0 && per_device < jobs ? per_device : jobs;
	*each = *each < *total ? *each : *total;
}

void queue_fini(struct io_queue *); /* nothing waits or runs in it */

/* 0; -EAGAIN: max_waiting wait for j->dev already, or it is stuck (a job nobody waits for is never refused: it
 * gives something back); -ENOMEM.  The job is still yours then.  *displaced: NULL, or a job that waited and is yours now, to end
 * with its res, -EAGAIN; also when the push fails. */
int queue_push(struct io_queue *, struct io_job *, struct io_job **displaced);
/* It waits, and this client wants it, too: goes to the row of the two that is shorter. */
void queue_join(struct io_queue *, struct io_job *, uint32_t client);
struct io_job *queue_take(struct io_queue *);            /* NULL: none may run now */
bool queue_ready(const struct io_queue *);               /* whether one may */
void queue_ran(struct io_queue *, struct io_job *);      /* after take */
void queue_pull(struct io_queue *, struct io_job *);     /* out of it, while it waits */
struct io_job *queue_pop_any(struct io_queue *);         /* for the end: whatever waits, limits or not; NULL: nothing */

uint64_t queue_oldest_ns(const struct io_queue *);       /* when its oldest job was pushed, 0: empty */
/* Adds its devices to the n of v (equal ones are summed); returns how many there are now. */
size_t queue_devices(const struct io_queue *, struct io_device_stats *v, size_t n, size_t max);

#endif
