/* fcgi-stat-accel/timing.h -- one timing line about each request, in the format of accel-server
 * (base/timing.h), so that accel-graph and programs for the lines of 2007 read both.
 *
 *   network_fcgi_stat_accel.c.78: (trace) write-start: ... id=c17.3 status=200 bytes=102400 ...
 *
 * stat is the time to open, read the time to read before the answer, total the time from the whole
 * request to its answer.  bytes is the size of the file.  write is 0, because the web server sends
 * the file.
 *
 * Units    nanoseconds in.
 * Thread   any.
 */
#ifndef FCGI_STAT_ACCEL_TIMING_H
#define FCGI_STAT_ACCEL_TIMING_H

#include <glib.h>
#include "base/timing.h"
#include "files/warm/warm.h"

struct timing_request {
	uint32_t conn, number; /* the id is "c17.3": connection, request */
	const char *path;
	const struct warm_found *found;
	const GString *reply; /* has the Status line */
	uint64_t total_ns;
};

/* Logs the line; nothing if the format is TIMING_OFF. */
void timing_note(enum timing_format, const struct timing_request *);

#endif
