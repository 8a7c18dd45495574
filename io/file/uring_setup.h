/* io/file/uring_setup.h -- inside io/file/uring*.c only: making a ring, and how much it may be asked to do at a time. */
#ifndef IO_FILE_URING_SETUP_H
#define IO_FILE_URING_SETUP_H

#include <liburing.h>
#include "io/disk/async.h"

#define URING_PART (128u << 10) /* what most file systems read at a time; a window is read in such parts */

/* 0: *looks and *reads are for the queues of look-ups and windows.  Else -errno, and *why in words. */
int uring_setup(struct io_uring *, const struct io_conf *, struct io_async_conf *looks, struct io_async_conf *reads,
    const char **why);
const char *uring_why(int err);

#endif
