/* io/disk/mounts.h -- inside io/ only: on which device a path lies, by the table of mounts, without touching the path.
 *
 * Thread   any; takes a lock, reads /proc/self/mountinfo when the kernel says that it has changed.
 */
#ifndef IO_DISK_MOUNTS_H
#define IO_DISK_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#define MOUNTS_UNKNOWN UINT64_MAX

void mounts_open(void); /* now, because a sandbox closes /proc later */

/* st_dev of what is mounted deepest on the way to path, below (not at) the directory `root`; MOUNTS_UNKNOWN: nothing
 * is, so the way leads through a symbolic link.  Both absolute and without symbolic links as far as known. */
uint64_t mounts_dev_below(const char *root, const char *path);
/* The mount with this number (stx_mnt_id) is a file system of a local disk, or of memory: its files can be opened without
 * waiting when their names are cached. */
bool mounts_local(uint64_t id);

#endif
