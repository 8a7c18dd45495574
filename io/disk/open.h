/* io/disk/open.h -- inside io/ only: the steps of a look-up.  A thread takes them in a row
 * (open.c), a ring one by one.
 *
 *   openat2(j->root, io_open_path(j), &j->how) --> fd ----> statx(fd, ..., &j->stx)
 *        ^         |                                           |
 *        |         v error                                     v 0 or error
 *   OPEN_AGAIN <-- io_open_failed() --> OPEN_FAILED      io_open_seen() --> true: the job has it
 *                        `--> OPEN_MOVES, OPEN_WALKS             `--------> false: close it
 *
 * Thread   the one that has the job.
 */
#ifndef IO_DISK_OPEN_H
#define IO_DISK_OPEN_H

#include "io/disk/job.h"

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20 /* Linux 5.12 */
#endif

/* Not the access time: after a read FUSE and network file systems must ask the (busy) disk for
 * it, and nobody needs it. */
#define IO_OPEN_FACTS                                                                   \
	(STATX_TYPE | STATX_MODE | STATX_INO | STATX_SIZE | STATX_MTIME | STATX_CTIME | \
	    STATX_NLINK | STATX_UID | STATX_GID | STATX_MNT_ID)

enum open_next {
	OPEN_AGAIN,  /* j->how has changed, or a retry may succeed */
	OPEN_MOVES,  /* j->dev is new: continue in that device's queue */
	OPEN_WALKS,  /* in a thread: open_run() goes on with io/disk/links.h */
	OPEN_FAILED, /* j->res has the reason */
};

/* In a thread: the device of a path that leaves the file system of its root. */
uint64_t io_device_beyond(int root, const char *below);
const char *io_open_path(const struct io_job *);
enum open_next io_open_failed(struct io_job *, int err); /* err: -errno of openat2 */
/* a socket, or a device without driver: -EACCES like every other kind */
int io_open_error(int err);
/* err: of statx, 0 or -errno.  Sets j->res; true: also j->fd. */
bool io_open_seen(struct io_job *, int fd, int err);

/* For a file that is open: what j->first asks for.  False: its bytes cannot be read (at once). */
bool io_first_read(struct io_job *);

/* On the loop, if IO_LOCAL is set.  True: the job has its result.  False: a thread has to do it,
 * from the start. */
bool io_open_at_once(struct io_job *);

#endif
