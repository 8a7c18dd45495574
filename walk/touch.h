/* walk/touch.h -- the calls that make one name warm, relative to an open directory.
 *
 * Errors are -errno.  No call reads an access time, or changes one where the system allows it.
 * Thread   any; every call may sleep as long as the disk takes.
 */
#ifndef WALK_TOUCH_H
#define WALK_TOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Brings the inode into memory; *type is DT_REG and others of readdir(3). */
int walk_touch_stat(int dir, const char *name, bool follow, uint8_t *type);
/* beneath: links lead at most to other names below dir; -EXDEV, or -ENOSYS before Linux 5.6. */
int walk_touch_open(int dir, const char *name, bool follow, bool beneath);
ssize_t walk_touch_read(int fd, void *buf, size_t n, off_t at);

/* -EXDEV, only with stay: another file system is mounted there, and was not touched. */
int walk_touch_dir(int dir, const char *name, bool follow, bool stay);
/* device and inode; does not ask the disk */
int walk_touch_identity(int fd, dev_t *dev, ino_t *ino);
bool walk_touch_can_stay(void); /* the kernel has openat2(2) */

#endif
