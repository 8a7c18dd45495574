/* accel-warm/options.h -- the command line of accel-warm. */
#ifndef ACCEL_WARM_OPTIONS_H
#define ACCEL_WARM_OPTIONS_H

#include "walk/conf.h"
#include "base/option.h"

extern const struct command walk_command;
void walk_manual(struct manpage *);

/* OPTIONS_RUN, or the exit status after --help, --version, --manual or a mistake, which has been
 * reported. */
int walk_options_read(char **argv, struct walk_conf *conf);

#endif
