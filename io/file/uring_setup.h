/* io/file/uring_setup.h -- inside io/file/uring*.c only: makes a ring and sets its limits. */
#ifndef IO_FILE_URING_SETUP_H
#define IO_FILE_URING_SETUP_H

#include <liburing.h>
#include "io/disk/async.h"

/* most file systems read at most this much at a time; a window is read in such parts */
#define URING_PART (128u << 10)

#define URING_WORKERS_MAX 1024u

unsigned uring_parts(const struct io_conf *); /* of a window; each needs a worker */
/* 0; or -errno, and *why says it in words */
int uring_setup(struct io_uring *, unsigned workers, const char **why);
const char *uring_why(int err);

#endif
