/* slowfs.h -- what the command line says. */
#ifndef SLOWFS_H
#define SLOWFS_H

#include <stdbool.h>

#define READ_MAX     (128 * 1024) /* bytes in one request to the disk */
#define SPINDLES_MAX 1024

struct options {
	int spindles;
	double lookup_ms, getattr_ms, open_ms, read_ms, jitter;
	bool async_dio, until_eof, no_open;
	const char *control; /* path of the control socket, or NULL */
};

extern struct options opt;
extern int source_fd;

#endif
