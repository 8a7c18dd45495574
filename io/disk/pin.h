/* io/disk/pin.h -- windows of files that stay in memory until a web server has probably sent them.
 *
 *   a thread has read a window --> io_pin_window(): mmap, mlock --> [oldest .. newest] --> munmap
 *                                                                    ^              |
 *                                      its file is answered again: new time --------'
 *
 * Bounds   conf.bytes in whole pages, and PINS_MAX windows.  A new one displaces the oldest.  One
 *          file has at most half of the bytes, so that a long file does not displace all others.
 * Errors   a window that the system does not lock is counted as refused, and nothing else happens.
 *          Nobody touches the mapping: a file that becomes shorter raises no signal.
 * Cost     measured for 100 kB that are in memory: 30 us of a thread to lock and to unlock.
 * Thread   any; one table for the process.  io_pins_start() and io_pins_stop() have no other
 *          beside them.
 */
#ifndef IO_DISK_PIN_H
#define IO_DISK_PIN_H

#include <stdbool.h>
#include <stdint.h>

struct io_pins_counters; /* io/counters.h */
struct statx;

#define PINS_MAX 4096u /* a process may have 65530 mappings */

struct io_pins_conf {
	uint64_t bytes;                    /* at most this many; 0: nothing is pinned */
	unsigned ms;                       /* for this long after the last answer */
	struct io_pins_counters *counters; /* must outlive the threads */
};
struct io_pins_status {
	uint64_t bytes, budget, windows;
};

/* Before there are threads. */
void io_pins_start(const struct io_pins_conf *);
void io_pins_stop(void); /* unpins everything; for tests */
bool io_pins_on(void);
uint64_t io_pins_file_max(void); /* bytes of one file */
void io_pins_status(struct io_pins_status *);

/* In a thread that may wait: these bytes of the file are in memory now, and stay there.  A window
 * that is pinned already gets a new time. */
void io_pin_window(int fd, uint64_t off, uint64_t len);
/* Never waits for a disk.  True: windows of this file are pinned, and get a new time. */
bool io_pin_again(const struct statx *);
/* In a thread: unpins windows that are too old.  munmap(2) may free the blocks of a removed
 * file. */
void io_pins_expire(void);
void io_pin_drop(const struct statx *); /* In a thread: unpins all windows of this file. */

#endif
