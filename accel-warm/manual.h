/* accel-warm/manual.h -- the manual page of accel-warm, from the table of options that the parser reads. */
#ifndef ACCEL_WARM_MANUAL_H
#define ACCEL_WARM_MANUAL_H

#include <glib.h>

#include "base/buf.h"

/* page: "text" or "roff".  0, or -EINVAL for any other. */
int walk_manual_print(const char *page, const GOptionEntry *options, struct buf *out);

#endif
