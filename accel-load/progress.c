/* accel-load/progress.c -- see progress.h */
#include <inttypes.h>
#include "accel-load/progress.h"

void
progress_line(struct buf *out, double seconds, const struct count_progress *now,
    const struct count_progress *last, double interval)
{
	double answered = (double)(now->answered - last->answered);
	double bytes = (double)(now->body_bytes - last->body_bytes);

	buf_printf(out,
	    "%4.0f s  %" PRIu64 " answered  %.0f/s  %.1f MB/s  %" PRIu64 " waiting  %" PRIu64
	    " errors",
	    seconds, now->answered, interval > 0 ? answered / interval : 0,
	    interval > 0 ? bytes / interval / 1e6 : 0,
	    now->requests > now->answered + now->errors
		? now->requests - now->answered - now->errors
		: 0,
	    now->errors);
}
