/* io/mounts.h -- the file systems that a directory has, from the table of mounts, without touching
 * them.
 *
 * Thread   any; takes a lock, and may read /proc/self/mountinfo.
 */
#ifndef IO_MOUNTS_H
#define IO_MOUNTS_H

#include <stddef.h>

/* type: the kernel's name, "ext4", "nfs4", "fuse.sshfs".  It must not ask for mounts itself. */
typedef void io_mount_seen(void *arg, const char *point, const char *type);

/* Calls seen() for the mount that dir is on, then for each one below dir, in the order of the
 * table.  dir is absolute, without symbolic links and without a slash at its end; "" is "/". */
void io_mounts_of(const char *dir, io_mount_seen *seen, void *arg);

/* The mount point of the file `name` below the open directory root, cut to size; "": not known.
 * Links in the name are not followed. */
void io_mount_of(int root, const char *name, char *point, size_t size);

#endif
