/* accel-load/limits.h -- what this host allows: open files, ports. */
#ifndef ACCEL_LOAD_LIMITS_H
#define ACCEL_LOAD_LIMITS_H

#include "accel-load/load.h"
#include "accel-load/urls.h"

/* Raises the limit of open files.  0, or the exit status after a message that says what is short
 * and how to get more. */
int limits_raise(const struct load_conf *, const struct urls *);

/* Says what to do about an error of connect(2) whose cause is on this side; 0: no message. */
void limits_explain(int err);

#endif
