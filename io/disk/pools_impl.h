/* io/disk/pools_impl.h -- what the two halves share: pools.c has the threads, jobs.c gives them work. */
#ifndef IO_DISK_POOLS_IMPL_H
#define IO_DISK_POOLS_IMPL_H

#include <pthread.h>
#include <semaphore.h>
#include "io/disk/job.h"
#include "io/disk/pools.h"
#include "io/disk/queue.h"

struct pool_lane {
	struct io_pools *pools;
	const char *name;
	sem_t more;       /* a post for each thread that is no longer idle.  Not a condition: glibc's signal may wait for a thread
	                   * that was woken before, measured 3.6 ms on a loop */
	struct io_queue queue;
	unsigned idle, threads;
	uint64_t jobs;
};

struct io_pools {
	pthread_mutex_t lock;
	pthread_cond_t gone;
	bool stop;
	bool shrinks;     /* idle threads end */
	unsigned shares;  /* who calls io_pools_free(); the main thread's */
	bool left_behind; /* by io_pools_free(): the last thread puts all away */
	unsigned alive;   /* threads */
	unsigned nthread; /* started */
	struct pool_lane lane[LANES];
	pthread_t thread[];
};

void io_lane_unlock(struct pool_lane *); /* and wakes a thread, or starts one, when a job may run */
void io_job_put(struct io_job *);        /* it is done: back to its loop, or freed */

#endif
