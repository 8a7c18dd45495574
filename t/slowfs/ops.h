/* ops.h -- what the kernel may ask of this file system. */
#ifndef SLOWFS_OPS_H
#define SLOWFS_OPS_H

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <stdbool.h>

extern const struct fuse_lowlevel_ops ops;

/* open with O_DIRECT gives EINVAL from now on.  Any thread. */
void ops_refuse_direct(bool);

#endif
