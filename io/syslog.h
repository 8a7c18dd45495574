/* io/syslog.h -- the system's log, for programs whose standard error is lost.
 *
 * Each line is one datagram to /dev/log, sent without waiting.  A line that the daemon does not
 * take at once is lost.  The socket is made once, before a sandbox; a daemon that makes a new
 * /dev/log (rsyslog without systemd) is not found again.
 *
 * Thread   syslog_open() the first one, syslog_line() any.
 */
#ifndef IO_SYSLOG_H
#define IO_SYSLOG_H

#include "base/text.h"

/* name is that of the program, a constant.  0 or -errno: no daemon, lines are lost. */
int syslog_open(const char *name);
/* A sink of base/log.h.  level= of the line is the severity, else it is an error. */
void syslog_line(void *unused, struct text line);

#endif
