/* accel-warm/report.h -- output for people and programs: trouble as it comes, how far it is, the summary.
 *
 * Everything goes to standard error but the summary, which is the program's result.  On a terminal the last line shows
 * how far it is; what is said meanwhile stands above it.
 *
 * Thread   any.
 */
#ifndef ACCEL_WARM_REPORT_H
#define ACCEL_WARM_REPORT_H

#include <glib.h>
#include <stdbool.h>

#include "base/buf.h"
#include "accel-warm/dir.h"
#include "accel-warm/tally.h"

/* "accel-warm: ..." */
void walk_say(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* "accel-warm: PATH: why"; after WALK_TOLD_MAX of them only the summary counts. */
void walk_trouble(const struct walk_dir *, const char *name, const char *why);
#define WALK_TOLD_MAX 20

/* Without line breaks; NULL: none any more.  A terminal only. */
void walk_status_line(const char *text);

/* A path for people: control bytes, quotes and what is not UTF-8 as \xHH. */
void walk_quote(const char *path, struct buf *);

#endif
