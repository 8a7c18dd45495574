/* fcgi-stat-accel/log.h -- the log: a file or stderr, written by a thread of its own.
 *
 * Thread   the loop's; lines come from any.
 */
#ifndef FCGI_STAT_ACCEL_LOG_H
#define FCGI_STAT_ACCEL_LOG_H

/* NULL: stderr.  0 or -errno; after an error lines go to stderr as before. */
int accel_log_open(const char *path);
/* After a rotation (HUP); its thread reopens the file.  After an error the old file stays in
 * use, which is logged. */
void accel_log_reopen(void);
/* Writes the waiting lines, within a second; no effect if no log is open. */
void accel_log_close(void);

#endif
