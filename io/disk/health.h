/* io/disk/health.h -- inside io/ only: may the loop look at what a device has in memory?
 *
 * A call that "does not wait" may wait nevertheless.  preadv2(RWF_NOWAIT) starts to read a page
 * that it does not find, and sleeps if the queue of the device is full.  Reading may write an
 * access time, which waits for the journal.  So the loop makes such calls only for a device that is
 * fit:
 *
 *   no job has run on it for FIT_NS --> fit
 *   a call on the loop has slept    --> left to threads for REST_NS
 *
 * Each of these calls is between io_look_begin() and io_look_end().  One that was long although it
 * should not wait is counted (loop_waits) and logged with its device.
 *
 * Cost     two readings of the clock for each look; once in ASK_NS and device the pools' lock.
 * Thread   the loop's.
 */
#ifndef IO_DISK_HEALTH_H
#define IO_DISK_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

struct io;

#define FIT_NS  (50 * NS_PER_MS)
#define REST_NS (10 * NS_PER_S)
#define ASK_NS  (5 * NS_PER_MS)

#define HEALTH_DEVICES 16u
struct io_health { /* the last answers that a loop got */
	struct {
		uint64_t dev, asked_ns;
		bool fit;
	} device[HEALTH_DEVICES];
	/* Looks to watch: a long look may be one during which another process had the processor, so
	 * after the first one it is counted how often this thread goes to sleep. */
	unsigned doubt;
};

unsigned io_health_slot(uint64_t dev); /* its place in the table */
bool io_device_is_fit(struct io *, uint64_t dev);

struct io_look {
	uint64_t begin_ns;
	long slept;
};
struct io_looked {        /* for the log */
	const char *what; /* "read", "open" */
	uint64_t dev;
	int fd; /* of the file; or -1 and its path */
	const char *path;
};
/* How often this thread went to sleep of its own accord; 0: nothing counts it.  A thread whose
 * processor another one took has not. */
long io_times_slept(void);

struct io_look io_look_begin(struct io *);
/* Returns the time. */
uint64_t io_look_end(struct io *, const struct io_look *, const struct io_looked *);

#endif
