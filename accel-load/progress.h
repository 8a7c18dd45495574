/* accel-load/progress.h -- the line of progress.  Pure. */
#ifndef ACCEL_LOAD_PROGRESS_H
#define ACCEL_LOAD_PROGRESS_H

#include "accel-load/count.h"
#include "base/buf.h"

/* "  12 s  1234567 requests  98765/s  123.4 MB/s  0 errors"; per second since last, which was
 * interval seconds before. */
void progress_line(struct buf *, double seconds, const struct count_progress *now,
    const struct count_progress *last, double interval);

#endif
