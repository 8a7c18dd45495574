/* fcgi-stat-accel/touch.h -- make a file warm: open it, ask what it is, read its first bytes.
 *
 * This is what may sleep on a disk, so it runs in the threads of work.c and nowhere else.
 */
#ifndef FCGI_STAT_ACCEL_TOUCH_H
#define FCGI_STAT_ACCEL_TOUCH_H

#include <stddef.h>

struct touch;

/* *tp is set on success only.  readahead in bytes, 0 for none. */
int  touch_new(size_t readahead, struct touch **tp);
void touch_free(struct touch **);

/* Files must lie below one of the roots; without any, all files are allowed.  Call before threads
 * start.  -errno, -ENOSYS when this kernel has no openat2(2). */
int  touch_add_root(struct touch *, const char *dir);

/* 0 when the server may open path and will not sleep; -errno otherwise, -EISDIR and -EPERM for
 * what is no regular file.  Any thread. */
int  touch_file(const struct touch *, const char *path);

#endif
