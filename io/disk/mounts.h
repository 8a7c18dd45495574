/* io/disk/mounts.h -- inside io/ only: the device of a path, from the table of mounts, without
 * touching the path.
 *
 * Thread   any; takes a lock, and reads /proc/self/mountinfo after the kernel has reported a
 * change.
 */
#ifndef IO_DISK_MOUNTS_H
#define IO_DISK_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOUNTS_UNKNOWN UINT64_MAX

void mounts_open(void); /* Opens the table now, because a sandbox closes /proc later. */

/* st_dev of the deepest mount on the way to path, below (not at) the directory `root`;
 * MOUNTS_UNKNOWN:
 * there is none, so the path leads through a symbolic link.  Both are absolute, and without
 * symbolic links as far as known. */
uint64_t mounts_dev_below(const char *root, const char *path);
/* True if the mount with this number (stx_mnt_id) is a file system of a local disk or of memory:
 * its files open without waiting if their names are cached. */
bool mounts_local(uint64_t id);
/* False if no read of its files writes an access time to a disk (noatime, ro, tmpfs). */
bool mounts_marks(uint64_t id);
/* The mount point to name a device by, cut to size; "" if it has none.  If several mount points
 * show its whole file system, it is the shortest of these; otherwise the shortest of those that
 * show a directory of it. */
void mounts_point(uint64_t dev, char *point, size_t size);
/* Decodes the escapes of a table of mounts in place: "\040" is a space. */
void mounts_unescape(char *);

#endif
