/* accel-warm/report.h -- output for people and programs: failures, progress, the summary.
 *
 * The summary is the program's result and goes to standard output, everything else to standard
 * error.  On a terminal the last line shows the progress; messages scroll above it.
 *
 * Thread   any.
 */
#ifndef ACCEL_WARM_REPORT_H
#define ACCEL_WARM_REPORT_H

#include <glib.h>

#include "accel-warm/dir.h"
#include "accel-warm/counters.h"

/* "accel-warm: ..." */
void walk_message(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* "accel-warm: PATH: why"; after WALK_FAILURES_SHOWN messages only the summary counts them. */
void walk_report_failure(const struct walk_dir *, const char *name, const char *why);
#define WALK_FAILURES_SHOWN 20

/* Without line breaks; NULL: removes the line.  On a terminal only. */
void walk_status_line(const char *text);

#endif
