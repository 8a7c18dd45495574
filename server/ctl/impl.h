/* server/ctl/impl.h -- shared by the files of server/ctl/; no other file includes it.
 *
 *   ctl.c      the command line, and which way leads to the server
 *   ask.c      the control socket (server/process/control.c)
 *   signals.c  a server without one: signals by its number
 */
#ifndef SERVER_CTL_IMPL_H
#define SERVER_CTL_IMPL_H

#include "server/ctl/ctl.h"

enum ctl_verb {
	CTL_RELOAD,
	CTL_UPGRADE,
	CTL_REOPEN,
	CTL_DRAIN,
	CTL_UNDRAIN,
	CTL_STOP,
	CTL_QUIT,
	CTL_STATUS,
	CTL_VERBS
};

#define CTL_NO_SOCKET (-2)

/* name: "unix:PATH"; request: the verb with its arguments.  The exit status; CTL_NO_SOCKET:  nobody
 * listens there. */
int ctl_ask(const char *name, enum ctl_verb, const char *request);
/* The exit status. */
int ctl_signal(unsigned pid, enum ctl_verb);
/* 0 and *pid, or the exit status; reported. */
int ctl_read_pid(const char *pid_file, unsigned *pid);

#endif
