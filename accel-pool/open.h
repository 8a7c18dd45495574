/* accel-pool/open.h -- opens a pool that exists, and says on standard error why it cannot. */
#ifndef ACCEL_POOL_OPEN_H
#define ACCEL_POOL_OPEN_H

#include "accel-pool/marker.h"

/* change: no other run may change it until *dirp is closed.  0, or the exit status. */
int pool_dir_open(const char *name, bool change, int *dirp, struct marker *);
/* Says "DIR": text; returns code. */
int pool_say(const char *dir, int code, const char *text);

#endif
