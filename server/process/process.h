/* server/process/process.h -- the process: sockets, logs, threads, signals.  The only part of the server that may block.
 *
 *   signal    TERM   stop now (at most 2 s)          INT, QUIT  stop after the running replies; again: now
 *             HUP    reopen the logs                 USR1       read the configuration again; nobody is dropped
 */
#ifndef SERVER_PROCESS_PROCESS_H
#define SERVER_PROCESS_PROCESS_H

#include "server/config/config.h"
#include "server/options.h"

struct helper;

/* Serves until a signal ends it; takes the configuration.  Returns the exit status (sysexits).  helper: NULL with -1 only. */
int process_run(const struct options *, struct config *, struct helper *);

#endif
