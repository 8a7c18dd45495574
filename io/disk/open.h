/* io/disk/open.h -- inside io/ only: the steps of a look-up.  A thread takes them in a row (open.c), a ring one by one.
 *
 *   openat2(j->root, io_open_path(j), &j->how) --> fd ----> statx(fd, "", AT_EMPTY_PATH, IO_OPEN_FACTS, &j->stx)
 *        ^         |                                              |
 *        |         v error                                        v 0 or error
 *   OPEN_AGAIN <-- io_open_failed() --> OPEN_FAILED         io_open_seen() --> true: the job has it
 *                        `------------> OPEN_MOVES                  `--------> false: close it
 *
 * Thread   the one that has the job.
 */
#ifndef IO_DISK_OPEN_H
#define IO_DISK_OPEN_H

#include "io/disk/job.h"

/* Not the access time: a read makes FUSE and network file systems forget it, and asking for it then is a
 * trip to the (busy) disk for something nobody wants to know. */
#define IO_OPEN_FACTS (STATX_TYPE | STATX_MODE | STATX_INO | STATX_SIZE | STATX_MTIME | STATX_CTIME | \
    STATX_NLINK | STATX_UID | STATX_GID)

enum open_next {
	OPEN_AGAIN,  /* j->how has changed, or it is worth another try */
	OPEN_MOVES,  /* j->dev is new: to be done in that device's queue */
	OPEN_FAILED, /* j->res says why */
};

const char *io_open_path(const struct io_job *);
enum open_next io_open_failed(struct io_job *, int err); /* what openat2 said: -errno */
int io_open_error(int err); /* a socket, or a device without driver: -EACCES as all that is not a file */
/* err: of statx, 0 or -errno.  j->res is set; true: so is j->fd. */
bool io_open_seen(struct io_job *, int fd, int err);

#endif
