/* accel-warm/print.h -- --print: names the files that a run would make warm. */
#ifndef ACCEL_WARM_PRINT_H
#define ACCEL_WARM_PRINT_H

#include "walk/conf.h"

/* Makes a run write the path of each file to standard output, and touch none. */
void print_instead(struct walk_conf *);

#endif
