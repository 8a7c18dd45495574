/* accel-warm/touch.h -- the calls that make one name warm, relative to an open directory.
 *
 * Errors are -errno.  Nothing here asks for an access time or changes one, where that may be had.
 * Thread   any; every call may sleep as long as the disk wants.
 */
#ifndef ACCEL_WARM_TOUCH_H
#define ACCEL_WARM_TOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The inode comes into memory; *type is what it is, as DT_REG and others of readdir(3). */
int walk_touch_stat(int dir, const char *name, bool follow, uint8_t *type);
int walk_touch_open(int dir, const char *name, bool follow);
ssize_t walk_touch_read(int fd, void *buf, size_t n, off_t at);

/* -EXDEV: something else is mounted there, which has not been touched; only with stay. */
int walk_touch_dir(int dir, const char *name, bool follow, bool stay);
/* What it is; asks no disk. */
int walk_touch_identity(int fd, dev_t *dev, ino_t *ino);
bool walk_touch_can_stay(void);		/* the kernel has openat2(2) */

#endif
