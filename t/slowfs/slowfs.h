/* slowfs.h -- what the command line says. */
#ifndef SLOWFS_H
#define SLOWFS_H

#include <stdbool.h>

#define READ_MAX     (128 * 1024) /* bytes in one request to the disk */
#define SPINDLES_MAX 1024

#ifndef STAT_ACCEL_VERSION
#define STAT_ACCEL_VERSION "0"
#endif

struct options {
	unsigned spindles;
	double lookup_ms, getattr_ms, open_ms, read_ms, jitter;
	double write_ms; /* < 0: read-only */
	bool no_async_dio, until_eof, no_open, flush, drop_at_open;
	const char *control; /* path of the control socket, or NULL */
};

extern struct options opt;
extern int source_fd;

#endif
