/* io/read_whole.h -- a small file as it is now.  May block: in a thread, or at start. */
#ifndef IO_READ_WHOLE_H
#define IO_READ_WHOLE_H

#include "base/text.h"

/* Reads the regular file `name` in the directory, which io_root_open() has opened.  The bytes are
 * yours (malloc), with a NUL after them.  .p NULL: *err is -errno; -EFBIG: more than max. */
struct text io_read_whole(int dir, const char *name, size_t max, int *err);

#endif
