/* fcgi-stat-accel/walk/options.h -- the command line of accel-warm. */
#ifndef FCGI_STAT_ACCEL_WALK_OPTIONS_H
#define FCGI_STAT_ACCEL_WALK_OPTIONS_H

#include "fcgi-stat-accel/walk/conf.h"

#define WALK_OPTIONS_RUN (-1)

/* WALK_OPTIONS_RUN, or the exit status: after --help, --version and --manual, or a mistake, which has been told.  What is in
 * *conf lives until walk_options_free(). */
int  walk_options_read(char **argv, struct walk_conf *conf);
void walk_options_free(void);

#endif
