/* walk/run.h -- a whole walk: starts the threads and the list, waits, prints the summary.
 *
 * 	roots or list --> queue <--> threads     this thread: signals, hung threads, state file,
 * 	                                         progress bar
 *
 * The threads may hang in the kernel.  This thread uses only the state file and the terminal, so a
 * signal always ends it.
 */
#ifndef WALK_RUN_H
#define WALK_RUN_H

#include "walk/conf.h"

/* Returns the exit status of the program; after a signal the program ends here. */
int walk_run(struct walk_conf *);

#endif
