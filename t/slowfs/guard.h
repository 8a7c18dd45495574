/* guard.h -- a process that clears the mount away at the end of slowfs, even when that was killed.
 *
 * Most often its end is enough: the device is closed, and each waiting request gets an error.  But
 * a thread that makes the kernel forget waits for locks of waiting requests, holds the device open,
 * and never ends.  Another process must cut the connection then.
 */
#ifndef SLOWFS_GUARD_H
#define SLOWFS_GUARD_H

int guard_start(void);                    /* before there are threads and a mount; 0 or -errno */
void guard_mount(const char *mountpoint); /* it is mounted: this is what to guard */
void guard_clear(void);                   /* now; waits until it is done */

#endif
