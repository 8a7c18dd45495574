/* accel-load/input.h -- whole files of the user: reports, lists of hashes.  Blocks: at start. */
#ifndef ACCEL_LOAD_INPUT_H
#define ACCEL_LOAD_INPUT_H

#include "base/buf.h"

/* Appends the bytes of the file; "-" is standard input.  0 or -errno; -EFBIG: over out->max. */
int input_read(const char *name, struct buf *out);

#endif
