/* accel-load/options.h -- the command line of accel-load. */
#ifndef ACCEL_LOAD_OPTIONS_H
#define ACCEL_LOAD_OPTIONS_H

#include "accel-load/load.h"
#include "base/option.h"

extern const struct command load_command;

/* OPTIONS_RUN, or the exit status: something was printed, or the command line is wrong. */
int load_options_read(char **argv, struct load_conf *);
void load_manual(struct manpage *);

#endif
