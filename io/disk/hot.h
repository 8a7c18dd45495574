/* io/disk/hot.h -- files that the kernel has in memory, answered without a thread.
 *
 * "In memory" is believed of local disk file systems only.  On NFS, FUSE, Ceph, 9p and SMB a name can be cached and open() still
 * sleep (measured: 12-14 ms through RESOLVE_CACHED).
 *
 * Units    bytes.
 * Thread   the loop's; never waits.
 */
#ifndef IO_DISK_HOT_H
#define IO_DISK_HOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include "wire/range.h"

struct io_hot {
	int root;             /* beneath which path is looked up, as in IO_OPEN */
	const char *path;
	uint64_t resolve;
	bool look;            /* as IO_STAT: it need not be readable */
	const struct range_set *want; /* of a regular file: to be in memory too; NULL: nothing of it */
	uint64_t bytes;       /* the first of these; if they are more than IO_HOT_MAX: -EAGAIN */
};

#define IO_HOT_MAX (16u << 20)

/* What is in this directory may be looked up here, and what is mounted below it if that is a local file system too. */
bool io_hot_root(int root);
/* 0 with *stx filled, nothing stays open; an error that a thread would find too (-ENOENT); -EAGAIN: ask a thread. */
int io_open_hot(const struct io_hot *, struct statx *);

#endif
