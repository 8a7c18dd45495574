/* io/disk/pools_impl.h -- shared by pools.c, which has the threads, and jobs.c, which gives them
 * jobs. */
#ifndef IO_DISK_POOLS_IMPL_H
#define IO_DISK_POOLS_IMPL_H

#include <pthread.h>
#include <semaphore.h>
#include "io/disk/job.h"
#include "io/disk/pools.h"
#include "io/disk/queue.h"
#include "io/hotset.h"

struct lane_kind {
	const char *name;
	bool reads; /* its threads read */
	bool keeps; /* keeps hot files hot: one thread per device */
	bool works; /* computes: threads are started when there are jobs, for half of the cores */
	bool holds; /* its jobs are short and many: see HELD_MAX in pools.c */
};

struct pool_lane {
	struct io_pools *pools;
	const char *name;
	/* One post for each thread that is no longer idle.  Not a condition variable: signalling
	 * one of glibc may wait for a thread that was woken before, measured 3.6 ms on a loop.
	 */
	sem_t more;
	struct io_queue queue;
	unsigned idle, threads;
	const struct lane_kind *kind;
	uint64_t jobs;
};

/* Devices for which a loop had to wait: threads look at their files until then. */
#define POOLS_REST 16u
struct pools_rest {
	uint64_t dev, until_ns;
};

struct io_pools {
	pthread_mutex_t lock;
	struct pools_rest rest[POOLS_REST];
	uint64_t longest_wait_ns; /* of a loop */
	struct hotset *hotset;    /* NULL: none */
	pthread_cond_t gone;
	bool stop;
	bool tells_awake; /* see io_pools_conf */
	bool shrinks;     /* idle threads end */
	unsigned shares;  /* users that call io_pools_free(); of the main thread */
	bool left_behind; /* set by io_pools_free(): the last thread frees everything */
	unsigned alive;   /* running threads */
	unsigned nthread; /* started threads */
	struct pool_lane lane[LANES];
	pthread_t thread[];
};

int io_lane_staff(struct pool_lane *);   /* -errno: it has no thread, and none can be started */
void io_lane_unlock(struct pool_lane *); /* also wakes a thread, or starts one, if a job may run */
void io_job_put(struct io_job *);        /* it has run: goes back to its loop, or is freed */

#endif
