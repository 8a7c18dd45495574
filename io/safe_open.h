/* io/safe_open.h -- opens a file for writing as root: logs and pid files.  May block.
 *
 * A user who can write to a directory of the path must not redirect root.  A directory is trusted
 * if it belongs to root and nobody else can write to it, and the same is true of those above it,
 * which may also be sticky.
 *
 *   symbolic link    followed if root made it and its directory is trusted, as /dev/stdout is;
 *                    otherwise -ELOOP
 *   last directory   -EPERM if everybody can write to it, unless it is sticky; then an existing
 *                    file must belong to root
 *   hard link        -EMLINK if the file has another name, unless its directory is trusted
 *   kind             regular file, fifo or character device; otherwise -EINVAL
 *
 * For users other than root only the last rule applies.
 */
#ifndef IO_SAFE_OPEN_H
#define IO_SAFE_OPEN_H

#include <sys/types.h>

/* descriptor (O_CLOEXEC, O_NOCTTY) or -errno */
int safe_open(const char *path, int flags, mode_t mode);
/* 0 if safe_open() could open the file for writing now, or make it; -errno.  Makes nothing. */
int safe_open_check(const char *path);
/* What to do about -errno of this file. */
const char *safe_open_help(int err);
/* Room for the text of -errno and what to do. */
#define SAFE_OPEN_FAULT 256
const char *safe_open_fault(int err, char text[SAFE_OPEN_FAULT]);
int safe_unlink(const char *path); /* with the same walk; 0 or -errno */

#endif
