/* fcgi-stat-accel/log.h -- the log: a file or stderr, written by a thread of its own; or syslog.
 *
 * Thread   the loop's; lines come from any.
 */
#ifndef FCGI_STAT_ACCEL_LOG_H
#define FCGI_STAT_ACCEL_LOG_H

/* Call it first.  If standard error is /dev/null (spawn-fcgi without -n), messages go to syslog
 * from now on, and to the terminal on which spawn-fcgi was started. */
void accel_log_begin(const char *program);
/* The program has started: nothing is written to that terminal from now on. */
void accel_log_started(void);
/* NULL: stderr, or syslog if stderr is /dev/null.  0 or -errno; after an error lines go to stderr
 * as before. */
int accel_log_open(const char *path);
/* After a rotation (HUP); its thread reopens the file.  After an error the old file stays in
 * use, which is logged. */
void accel_log_reopen(void);
/* Writes the waiting lines, within a second; no effect if no log is open. */
void accel_log_close(void);

#endif
