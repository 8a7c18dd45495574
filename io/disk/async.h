/* io/disk/async.h -- inside io/ only: jobs that the kernel does for one loop (a ring, aio), queued like those of threads.
 *
 *   io_async_push() --> queue --> start()  hands it to the kernel
 *                                   |
 *   finish()  <-- io_async_done() <-'  when the kernel says so, on the loop; the next one starts
 *
 * Owner    as for jobs: what the kernel may still write to belongs to the job until io_async_done().
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

struct io_async_conf {
	unsigned per_device, total; /* jobs the kernel has at a time */
	unsigned max_waiting, stuck_ms;
};

/* As the pools do it: unless conf->per_device is set one device may have all of jobs, and several together four times as
 * many, so that one that hangs takes nothing from the others.  In no case more than most. */
struct io_async_conf io_async_places(const struct io_conf *, unsigned jobs, unsigned most);

void io_async_init(struct io_async *, const struct io_async_conf *, void (*start)(struct io_async *, struct io_job *));
/* When the loop ends: a short time for those that nobody waits for any more to come back, as fd (an eventfd that is
 * watched) tells.  Blocks. */
void io_async_settle(struct io_async *, int fd, struct io_watch *);
/* -EBUSY: the kernel still has some: leave alone what they point at, for ever. */
int io_async_fini(struct io_async *);

/* 0, or -EAGAIN, -ENOMEM: the job is still yours. */
int io_async_push(struct io_async *, struct io_job *);
/* Pushes it for op, which waits then; if that fails the op ends and the job is freed. */
void io_async_start(struct io_async *, struct io_op *, struct io_job *);
void io_async_done(struct io_async *, struct io_job *, int64_t res);
/* It turned out to need another device (j->dev is new): waits there, starts again. */
void io_async_move(struct io_async *, struct io_job *);
void io_async_joined(struct io_async *, struct io_job *, uint32_t client); /* as io_job_joined() */
bool io_async_pull(struct io_async *, struct io_job *); /* as io_job_pull() */

#endif
