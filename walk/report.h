/* walk/report.h -- output for people and programs: failures, progress, the summary.
 *
 * The summary is the program's result and goes to standard output, everything else to standard
 * error.  On a terminal the last line shows the progress; messages scroll above it.
 *
 * Thread   any.
 */
#ifndef WALK_REPORT_H
#define WALK_REPORT_H

#include <glib.h>

#include "walk/dir.h"
#include "walk/counters.h"

/* The name of the program, before its first thread starts; it is not copied. */
void walk_report_as(const char *program);
/* "PROGRAM: ..." */
void walk_message(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* "PROGRAM: PATH: why"; after WALK_FAILURES_SHOWN messages only the summary counts them. */
void walk_report_failure(const struct walk_dir *, const char *name, const char *why);
#define WALK_FAILURES_SHOWN 20

/* Shows the line, which has no line break; NULL: removes it.  On a terminal only. */
void walk_status_line(const char *text);

#endif
