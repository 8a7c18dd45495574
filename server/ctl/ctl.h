/* server/ctl/ctl.h -- accel-server ctl: tells a running server what to do, and waits for the
 * outcome.  Runs instead of a server.
 */
#ifndef SERVER_CTL_CTL_H
#define SERVER_CTL_CTL_H

#include "base/option.h"

extern const struct command ctl_command;

/* argv from "ctl" on.  Returns the exit status (sysexits). */
int ctl_main(char **argv);
void ctl_manual(struct manpage *); /* a section of accel-server(8) */

#endif
