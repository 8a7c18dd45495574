/* io/disk/pools.h -- the two pools of threads that may sleep in the kernel: "stat" and "read".
 *
 * One of each per generation, shared by all its loops; a thread uses a job, never a connection.
 * They are separate, because the reads of long files must not delay opens.  Work that keeps a hot
 * file hot (checking it again; reading bytes again on file systems that cannot tell what is in
 * memory) has threads of its own, which cold files do not take.
 *
 * Devices  each has its own queue (io/disk/queue.h) and may keep per_device threads busy.  If that
 *          is 0, it may keep all of them busy, and more threads are started, up to four times as
 *          many, when another device needs some: a hung mount takes nothing from the others.
 * Bounds   max_queue jobs wait for a device.  Further ones fail with -EAGAIN (the client gets 503),
 *          and so does every job for a device whose threads have all been busy with one job each
 *          for stuck_ms.
 * Errors   io_pools_new(): -errno, nothing left behind.
 */
#ifndef IO_DISK_POOLS_H
#define IO_DISK_POOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct io_pools;

struct io_pools_conf { /* no padding: equal settings are equal bytes */
	/* Up to 1024; 0: the loop opens files and waits for the disk. */
	unsigned stat_threads;
	unsigned read_threads; /* up to 1024; 0: the loop reads */
	/* Threads of each pool that one device may keep busy; 0: see above. */
	unsigned per_device;
	unsigned max_queue; /* jobs waiting per pool and device */
	unsigned stuck_ms;  /* 0: never */
	/* Jobs of LANE_TLS that one client may keep threads busy with; 0: all threads but one. */
	unsigned tls_per_client;
	unsigned hotset_mib; /* of the server's own memory for windows of files; 0: none */
	/* the user wants io_stamps.awake: two getrusage(2) more for each job */
	unsigned tells_awake;
};

int io_pools_new(const struct io_pools_conf *, struct io_pools **);
/* needs one more io_pools_free() */
struct io_pools *io_pools_share(struct io_pools *);
/* The users of the pools are about to end: idle threads end, except one of each kind; new ones
 * start when jobs need them.  No files are held in memory any more. */
void io_pools_shrink(struct io_pools *);
/* Threads end when their running job returns; waits at most wait_ms for them.  If a disk holds some
 * for longer, the last of them frees the rest, including the waiting jobs. */
void io_pools_free(struct io_pools *, unsigned wait_ms);

/* For status pages; any thread.  Returns the number of rows written, at most max. */
struct io_lane_status {
	const char *name; /* "stat", "recheck", "read", "reread", "work", "tls" */
	unsigned threads, busy, queued;
	uint64_t jobs;      /* taken by a thread so far */
	uint64_t oldest_ns; /* age of the oldest job, waiting or running; 0: none */
};
#define IO_MOUNT_NAME 256u /* a longer mount point is cut */
struct io_device_status {
	/* Both UINT_MAX: mounted below a root, at an unknown place. */
	unsigned major, minor;
	char mount[IO_MOUNT_NAME]; /* set by io_pools_status_take(); "": not known */
	unsigned busy, queued;
	uint64_t oldest_ns, refused;
	/* of refused: while the device was stuck; the others found a full queue */
	uint64_t refused_stuck;
	bool stuck; /* Every job for it is refused: its threads have hung for stuck_ms. */
};
size_t io_pools_lanes(struct io_pools *, struct io_lane_status *, size_t max);
size_t io_pools_devices(struct io_pools *, struct io_device_status *, size_t max);

/* The server's own memory of files (io/hotset.h); any thread. */
struct io_hotset_status {
	uint64_t bytes, budget;   /* held, and at most */
	uint64_t windows;         /* held */
	uint64_t longest_wait_ns; /* of a call that counts as a loop wait; 0: none yet */
};
void io_pools_hotset(struct io_pools *, struct io_hotset_status *);

#endif
