/* control.h -- a unix socket that takes one order a line and answers one line, "ok" or "error:
 * why".
 *
 * Each client has a thread: `forget` may have to wait for requests that are being served, and the
 * next client's `go` must not have to wait for it.
 */
#ifndef SLOWFS_CONTROL_H
#define SLOWFS_CONTROL_H

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <stdbool.h>

int control_open(const char *path); /* 0 or -errno; mode 0600  */
/* 0 or -errno; nothing to do without control_open() */
int control_start(struct fuse_session *);
void control_close(void);
bool control_forgetting(void); /* a forget order to the kernel is in progress; any thread */

#endif
