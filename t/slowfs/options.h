/* options.h -- the command line of slowfs. */
#ifndef SLOWFS_OPTIONS_H
#define SLOWFS_OPTIONS_H

#include "base/option.h"

/* Fills opt.  OPTIONS_RUN, or the exit status. */
int options_read(char **argv, const char **source, const char **mountpoint);

#endif
