/* io/blocking.h -- the two pools of threads that may sleep in the kernel: "stat" and "read".
 *
 * One of each per process, shared by all loops; a thread sees a job, never a connection.
 * Kept apart: 64 slow reads must not hold up a stat that is cached.  Urgent jobs (re-checks of files
 * that are being served) have a thread of their own, so cold look-ups cannot delay a hot file.
 *
 * Bounds   max_queue jobs wait; one more fails with -EAGAIN (the client gets 503).  First come first served;
 *          a reply has at most two reads out (its window and the next one), so no long file takes every reader.
 * Errors   io_pools_new(): -errno, nothing left behind.
 */
#ifndef IO_BLOCKING_H
#define IO_BLOCKING_H

#include <stdint.h>

struct io_pools;

struct io_pools_conf {
	unsigned stat_threads; /* 1..1024 */
	unsigned read_threads; /* 1..1024 */
	unsigned max_queue;    /* jobs waiting per pool */
};

int io_pools_new(const struct io_pools_conf *, struct io_pools **);
/* Threads end when their running job returns; waits at most wait_ms for them, then leaves them behind. */
void io_pools_free(struct io_pools *, unsigned wait_ms);

#endif
