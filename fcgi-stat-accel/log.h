/* fcgi-stat-accel/log.h -- where lines of base/log.h go: a file, or stderr, written by a thread of its own.
 *
 * Thread   the one that runs the loop; lines come from any.
 */
#ifndef FCGI_STAT_ACCEL_LOG_H
#define FCGI_STAT_ACCEL_LOG_H

int  accel_log_open(const char *path);	/* NULL: stderr.  0 or -errno, then lines go to stderr as before */
void accel_log_reopen(void);		/* after rotation (HUP), by its thread; if it fails the old file goes on, with a line */
void accel_log_close(void);		/* writes what waits, at most a second; nothing when none is open */

#endif
