/* accel-load/run.h -- a run: its threads, the line of progress, signals, the report. */
#ifndef ACCEL_LOAD_RUN_H
#define ACCEL_LOAD_RUN_H

#include "accel-load/load.h"
#include "accel-load/urls.h"

/* The exit status: 0, 1 after errors of requests, or of sysexits(3) after a message. */
int run_load(const struct load_conf *, struct urls *, struct urls *beside);

#endif
