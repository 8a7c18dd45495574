/* server/process/process.h -- the process: sockets, logs, threads, signals.  Only this part of the
 * server may block.
 *
 *   signal    TERM        stop now (at most 2 s)
 *             INT, QUIT   stop after the running replies, and before that wait for
 *                         server.drain-delay; a second one goes to the next of these steps
 *             HUP         reopen the logs
 *             USR1        read the configuration again without dropping a connection
 *             USR2        execute the program file anew, which takes over (upgrade.c)
 */
#ifndef SERVER_PROCESS_PROCESS_H
#define SERVER_PROCESS_PROCESS_H

#include "server/config/config.h"
#include "server/options.h"

struct helper;

/* Signals of a running server wait until process_run() takes them. */
void process_block_signals(void);
/* Takes the configuration and serves until a signal ends it.  Returns the exit status (sysexits).
 * helper: NULL with -1 only. */
int process_run(const struct options *, struct config *, struct helper *);

/* -t: does what a start does with the configuration, except that nothing is made, opened for good
 * or listened on.  Prints all faults.  0, or the exit status that the start would have. */
int process_check(const struct config *);

#endif
