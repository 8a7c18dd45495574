/* io/disk/hot.h -- files that the kernel has in memory, answered without a thread.
 *
 * "In memory" is only believed of local disk file systems.  On NFS, FUSE, Ceph, 9p and SMB a name
 * can be cached and open() still sleeps (measured: 12-14 ms through RESOLVE_CACHED).
 *
 * Units    bytes.
 * Thread   the loop's; never waits.
 */
#ifndef IO_DISK_HOT_H
#define IO_DISK_HOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include "wire/http1/range.h"

struct io_hot {
	int root; /* directory of the path, as in IO_OPEN */
	const char *path;
	uint64_t resolve;
	bool look; /* see only_stat of IO_OPEN: the file need not be readable */
	/* Bytes of a regular file that must also be in memory; NULL: none. */
	const struct range_set *want;
	/* at most this many of the first of these bytes; more than IO_HOT_MAX: -EAGAIN */
	uint64_t bytes;
};

#define IO_HOT_MAX (16u << 20)

/* Only for roots on a local file system (io_fd_is_local() in io/file.h).  0: *stx is filled, no
 * descriptor stays open.  -EAGAIN: ask a thread.  Other -errno: a thread would get the same. */
int io_open_hot(const struct io_hot *, struct statx *);

/* Reading this file writes its access time, which may wait for the journal, so a thread reads the
 * file.  The facts have STATX_ATIME. */
bool io_read_marks(const struct statx *);
/* For a file on a local file system: reads the bytes from 0 to n.  n, or -EAGAIN unless all of them
 * can be had without waiting. */
int64_t io_read_hot(int fd, char *to, uint32_t n);
/* The first and the last of these bytes are in memory. */
bool io_ends_hot(int fd, uint32_t n);

#endif
