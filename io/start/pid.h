/* io/start/pid.h -- another process of this machine, by its number.
 *
 * The number may belong to another process a moment later, so a signal goes through a descriptor of
 * the process.
 *
 * Owner    the caller closes the descriptor; poll(2) says POLLIN when the process has ended.
 * Thread   any; never waits.
 */
#ifndef IO_PID_H
#define IO_PID_H

#include <sys/types.h>

/* A descriptor of the process, if it runs this program; -ESRCH: it does not, or there is no such
 * process; or another -errno. */
int pid_open(pid_t, const char *program);
int pid_signal(int pidfd, int sig); /* 0 or -errno */

#endif
