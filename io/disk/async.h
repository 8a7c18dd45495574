/* io/disk/async.h -- inside io/ only: jobs that the kernel does for one loop (a ring, aio), queued
 * like those of threads.
 *
 *   io_async_push() --> queue --> start()  hands it to the kernel
 *                                   |
 *   finish()  <-- io_async_done() <-'  on the loop, at the kernel's completion; starts the next one
 *
 * Owner    as for jobs: memory that the kernel may write to belongs to the job until
 *          io_async_done().
 * Thread   the loop's.
 */
#ifndef IO_DISK_ASYNC_H
#define IO_DISK_ASYNC_H

#include "io/disk/queue.h"

struct io_watch; /* io/engine.h */

struct io_async {
	struct io_queue queue;
	void (*start)(struct io_async *, struct io_job *); /* may call io_async_done() at once */
	bool starting;
};

/* `jobs` at a time, as in the pools: unless conf->per_device is set, one device may have all of
 * them, and several devices together four times as many, so that a hung device takes no place from
 * the others.  Never more than most. */
void io_async_init(struct io_async *, const struct io_conf *, unsigned jobs, unsigned most,
    void (*start)(struct io_async *, struct io_job *));
/* At the end of the loop: waits a short time for jobs whose ops have ended, as fd (a watched
 * eventfd) reports.  Blocks. */
void io_async_settle(struct io_async *, int fd, struct io_watch *);
/* -EBUSY: the kernel still has jobs; their memory must never be freed. */
int io_async_fini(struct io_async *);

/* For io_job_push(). */
int io_async_push(struct io_async *, struct io_job *);
void io_async_done(struct io_async *, struct io_job *, int64_t res);
/* A thread does the rest of the job. */
void io_async_leave(struct io_async *, struct io_job *);
/* The job needs another device (j->dev is new): it waits there and starts again. */
void io_async_move(struct io_async *, struct io_job *);

#endif
