/* io/disk/pools.h -- the two pools of threads that may sleep in the kernel: "stat" and "read".
 *
 * One of each per process, shared by all loops; a thread sees a job, never a connection.
 * Kept apart: the reads of long files must not hold up those who open one.  What keeps a hot file hot (checking it again, reading
 * again what is in memory on file systems that cannot say so) has threads of its own, so cold files cannot delay it.
 *
 * Devices  each has a queue of its own (io/disk/queue.h) and may keep per_device threads busy.  Unless that is set it may
 *          keep all of them, and more are started, up to four times as many, when another device needs some: a
 *          mount that hangs takes nothing from the others.
 * Bounds   max_queue jobs wait for a device; one more fails with -EAGAIN (the client gets 503), and so does every one
 *          for a device whose threads have all been busy with one job each for stuck_ms.
 * Errors   io_pools_new(): -errno, nothing left behind.
 */
#ifndef IO_DISK_POOLS_H
#define IO_DISK_POOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct io_pools;

struct io_pools_conf { /* no padding: equal ones are equal bytes */
	unsigned stat_threads; /* ..1024; 0: files are opened on the loop, which waits for the disk then */
	unsigned read_threads; /* ..1024; 0: the same for reading */
	unsigned per_device;   /* threads of each pool that one device may keep busy; 0: see above */
	unsigned max_queue;    /* jobs waiting per pool and device */
	unsigned stuck_ms;     /* 0: never */
};

int io_pools_new(const struct io_pools_conf *, struct io_pools **);
struct io_pools *io_pools_share(struct io_pools *); /* one more io_pools_free() is needed to end them */
/* Those that use them are about to go: idle threads end, but for one of each kind; new ones start when jobs need them. */
void io_pools_shrink(struct io_pools *);
/* Threads end when their running job returns; waits at most wait_ms for them.  If a disk holds some for longer, the last of
 * them puts away what is left, the jobs that still wait included. */
void io_pools_free(struct io_pools *, unsigned wait_ms);

/* For those who watch; any thread.  The number of rows written, at most max. */
struct io_lane_stats {
	const char *name; /* "stat", "recheck", "read", "reread" */
	unsigned threads, busy, queued;
	uint64_t jobs;      /* taken by a thread so far */
	uint64_t oldest_ns; /* age of the oldest job, waiting or running; 0: none */
};
struct io_device_stats {
	unsigned major, minor; /* both UINT_MAX: mounted somewhere below a root, and not known where */
	unsigned busy, queued;
	uint64_t oldest_ns, refused;
	bool stuck; /* every job for it is refused: its threads have hung for stuck_ms */
};
size_t io_pools_lanes(struct io_pools *, struct io_lane_stats *, size_t max);
size_t io_pools_devices(struct io_pools *, struct io_device_stats *, size_t max);

#endif
