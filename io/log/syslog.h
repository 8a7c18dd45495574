/* io/log/syslog.h -- the system's log.
 *
 * Each line is one datagram to /dev/log, sent without waiting.  A line that the daemon does not
 * take at once is lost.  The socket is made once, before a sandbox; a daemon that makes a new
 * /dev/log (rsyslog without systemd) is not found again.
 *
 * Thread   syslog_open() the first one, syslog_line() any.
 */
#ifndef IO_SYSLOG_H
#define IO_SYSLOG_H

#include <sys/types.h>
#include "base/text.h"

/* Where lines of a log go, as text: "24,6,/dev/log", facility, severity, socket; severity e: the
 * level of each line decides. */
struct syslog_target {
	unsigned facility;
	int severity; /* -1: e */
	const char *socket;
};
#define SYSLOG_LINE_MAX 8192u /* a longer line is cut, as daemons do */

bool syslog_target_parse(const char *, struct syslog_target *);
int syslog_connect(const char *socket); /* a descriptor that never waits, or -errno */
/* Sends a line, with or without its newline, as one datagram.  Returns its length or -errno. */
ssize_t syslog_send(int fd, const char *target, struct text line);

/* name is that of the program, a constant.  Returns 0, or -errno if no daemon listens: lines are
 * lost then. */
int syslog_open(const char *name);
/* A sink of base/log.h.  The level of the line is its severity. */
void syslog_line(void *unused, struct text line);
void syslog_message(struct text line); /* of a program that cannot go on: an error */

/* Of RFC 5424, 0 to 7, for a line of base/log.h in either form.  Without a level (stage times): 6,
 * information. */
unsigned syslog_severity(struct text line);

#endif
