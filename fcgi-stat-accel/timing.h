/* fcgi-stat-accel/timing.h -- one line about each request: the one of accel-server (base/timing.h), so that accel-graph
 * and what was written for the lines of 2007 read both.
 *
 *   network_fcgi_stat_accel.c.78: (trace) write-start: ... id=c17.3 status=200 bytes=102400 hot=0 stat-queue-us=...
 *
 * stat is opening, read the bytes read before the answer, total from the whole request to its answer; bytes is the size
 * of the file, and write is 0: the web server sends it.
 *
 * Units    nanoseconds in.
 * Thread   any.
 */
#ifndef FCGI_STAT_ACCEL_TIMING_H
#define FCGI_STAT_ACCEL_TIMING_H

#include <glib.h>
#include "fcgi-stat-accel/warm/warm.h"

enum timing_format { TIMING_OFF, TIMING_LINE, TIMING_JSON };

struct timing_request {
	const char *id;			/* "c17.3": connection, request */
	const char *path;
	const struct warm_found *found;
	const GString *reply;		/* its Status */
	uint64_t    total_ns;
};

/* Writes the line to the log; nothing when the format is TIMING_OFF. */
void timing_note(enum timing_format, const struct timing_request *);

#endif
