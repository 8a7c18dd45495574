/* io/safe_open.h -- opens a file to write to on behalf of root: logs and pid files.  May block.
 *
 * Root must not be led elsewhere by a user who may write to one of the directories on the way.  A directory is trusted
 * when it belongs to root, nobody else may write to it, and the same holds for those above it, which may also be sticky.
 *
 *   symbolic link    followed when root made it and its directory is trusted, as /dev/stdout is; otherwise -ELOOP
 *   last directory   -EPERM when everybody may write to it, unless it is sticky; then an existing file must be root's
 *   hard link        -EMLINK when the file has another name, unless its directory is trusted
 *   kind             regular file, fifo or character device; otherwise -EINVAL
 *
 * Of these rules only the last holds for other users: what they open is their own risk.
 */
#ifndef IO_SAFE_OPEN_H
#define IO_SAFE_OPEN_H

#include <sys/types.h>

int safe_open(const char *path, int flags, mode_t mode); /* descriptor (O_CLOEXEC, O_NOCTTY) or -errno */
int safe_unlink(const char *path);                        /* the same walk; 0 or -errno */

#endif
