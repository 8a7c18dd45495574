/* accel-warm/options.h -- the command line of accel-warm. */
#ifndef ACCEL_WARM_OPTIONS_H
#define ACCEL_WARM_OPTIONS_H

#include "accel-warm/conf.h"

#define WALK_OPTIONS_RUN (-1)

/* WALK_OPTIONS_RUN, or the exit status: after --help, --version and --manual, or a mistake, which has been reported.  What is in
 * *conf lives until walk_options_free(). */
int  walk_options_read(char **argv, struct walk_conf *conf);
void walk_options_free(void);

#endif
