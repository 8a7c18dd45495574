/* io/disk/queue.h -- inside io/ only: the order of waiting jobs.
 *
 *   job --> device (st_dev) --> row of its client (base/fair_queue.h) --> oldest first
 *
 *   queue_push(): waits --> queue_take(): runs, holds a place of its device --> queue_ran(): done
 *
 * Devices take turns, and so do the clients of a device.  So a hung disk delays only its own jobs,
 * and a client with a thousand connections gets no more than its share.
 *
 * Bounds   per_device jobs of a device run at a time, per_client of a client of it, and total of
 *          all devices; the last few places are reserved for devices with no running job.
 *          max_waiting jobs wait for a device.  One more displaces the newest job of the longest
 *          row, or is refused if its own row would be as long.  When all places of a device are
 *          taken and each job has run for stuck_ms, further jobs are refused.
 * Owner    the queue from push until take; the caller while the job runs.
 * Thread   the caller locks, or is the only one.
 */
#ifndef IO_DISK_QUEUE_H
#define IO_DISK_QUEUE_H

#include <pthread.h>
#include "io/disk/pools.h"
#include "io/disk/job.h"

struct io_device;

/* Places reserved for devices without a running job; at most half of total - per_device. */
#define QUEUE_LAST 16u
/* per_device 0: the queue has QUEUE_SPARE * jobs places, and one device may use `jobs` of them. */
#define QUEUE_SPARE 4u

struct io_queue {
	pthread_mutex_t *lock; /* NULL: one thread uses the queue */
	unsigned per_device, total, max_waiting, stuck_ms;
	unsigned per_client; /* 0: no limit; set before the first job */
	unsigned last;       /* of total: places for devices without a running job */
	unsigned running, waiting;
	struct list devices; /* devices with jobs, and some without */
	unsigned ndevices;
	struct list turn; /* devices with a job that may run */
};

/* stuck_ms 0: never */
void queue_init(struct io_queue *, unsigned per_device, unsigned total, unsigned max_waiting,
    unsigned stuck_ms);

/* Sets the places: one device may have per_device of `jobs`; 0: all of them, and other devices
 * get more then. */
static inline void
queue_places(unsigned per_device, unsigned jobs, unsigned most, unsigned *each, unsigned *total)
{
	*total = per_device != 0 ? jobs : QUEUE_SPARE * jobs;
	*total = *total < most ? *total : most;
	*each = per_device != 0 && per_device < jobs ? per_device : jobs;
	*each = *each < *total ? *each : *total;
}

void queue_fini(struct io_queue *); /* no job may wait or run */

/* 0; -EAGAIN: max_waiting jobs wait for j->dev, or the device is stuck (a job with put_away is
 * never refused); -ENOMEM.  After an error the job is still yours. *displaced: NULL, or a waiting
 * job that is yours now, to be ended with its res, -EAGAIN; even if the push fails. */
int queue_push(struct io_queue *, struct io_job *, struct io_job **displaced);
/* Another client needs the waiting job: moves it to the shorter of the two rows. */
void queue_join(struct io_queue *, struct io_job *, uint32_t client);
struct io_job *queue_take(struct io_queue *);        /* NULL: none may run now */
bool queue_ready(const struct io_queue *);           /* true if a job may run */
void queue_ran(struct io_queue *, struct io_job *);  /* call it after take */
void queue_pull(struct io_queue *, struct io_job *); /* removes a waiting job */
/* For the end: any waiting job, without limits; NULL: none. */
struct io_job *queue_pop_any(struct io_queue *);

/* The client of a job that waits or runs has more than may run at a time. */
bool queue_client_is_full(const struct io_queue *, const struct io_job *);

/* These take the lock.  A job that is in no queue, or runs, does not wait. */
bool queue_job_waits(const struct io_job *);
uint64_t queue_job_start(const struct io_job *);       /* when it began to run; 0: it waits */
void queue_job_join(struct io_job *, uint32_t client); /* queue_join() if it waits */
bool queue_job_pull(struct io_job *);                  /* true: it waited and is yours again */

/* When the job that runs for the longest on this device began; 0: none runs. */
uint64_t queue_runs_since(const struct io_queue *, uint64_t dev);
/* Time at which its oldest job was pushed; 0: empty. */
uint64_t queue_oldest_ns(const struct io_queue *);
/* Adds the devices of the queue to the n of v (sums equal ones); returns the new number. */
size_t queue_devices(const struct io_queue *, struct io_device_status *v, size_t n, size_t max);

#endif
