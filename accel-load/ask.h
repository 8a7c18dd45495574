/* accel-load/ask.h -- may these hosts be loaded? */
#ifndef ACCEL_LOAD_ASK_H
#define ACCEL_LOAD_ASK_H

#include "accel-load/load.h"
#include "accel-load/urls.h"

/* Asks on the terminal for each address that is not of this host; without a terminal the answer is
 * no.  0, or the exit status. */
int ask_targets(const struct load_conf *, const struct urls *);

#endif
