/* io/log/logfile.h -- logs written by their own threads, so that a full or hung disk blocks nobody
 * else.
 *
 * The name of a log is a path, "|COMMAND", or LOGFILE_SYSLOG and a target of io/log/syslog.h.  A
 * command reads the lines on its standard input.  It is started again when it has ended, after
 * pauses of up to a minute.  It sees the end of its input when the log is closed.
 *
 * Bounds   LOGFILE_PENDING bytes wait; further lines are dropped and counted.  The error log gets
 *          the count when the disk takes lines again (tried once a second).  Lines are whole or
 *          absent.
 * Thread   logfile_line() and logfile_reopen() any; open and close the main thread.
 */
#ifndef IO_LOGFILE_H
#define IO_LOGFILE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/text.h"

#define LOGFILE_PENDING (1u << 20)

#define LOGFILE_SYSLOG '\x01' /* no path begins with it */

struct logfile;

/* Opens the path, at once and at each reopening: a descriptor or -errno.  It may block. */
typedef int logfile_opener(void *arg, const char *path);
/* path NULL: stderr, or the journal (io/log/journal.h) if that reads it; opener NULL:
 * logfile_open_fd().  0 or -errno */
int logfile_open(const char *path, logfile_opener *, void *arg, struct logfile **);
const char *logfile_path(const struct logfile *); /* as it was opened; NULL: stderr */
/* what the system's opener does: a descriptor, or -errno; -EOPNOTSUPP: a command */
int logfile_open_fd(const char *path);
/* 0 if logfile_open_fd() could open it now, or -errno; makes nothing.  Programs and syslog: 0. */
int logfile_check(const char *path);
/* '\n' included; never waits; a sink of base/log.h, whose argument is the struct logfile */
void logfile_line(void *logfile, struct text line);
/* After a rotation (HUP): the thread opens the path again and writes to the new file from then
 * on. If that fails, the old file stays in use, and the thread calls failed(path, -errno). */
void logfile_reopen(struct logfile *, void (*failed)(const char *path, int err));
/* False: the thread has not reopened it yet.  *err: 0 or -errno of the last reopening. */
bool logfile_reopened(struct logfile *, int *err);
/* lines that were dropped by any log since the start of the process */
uint64_t logfile_dropped(void);
/* Begins to close: of several logs on a disk that hangs, all get the same second. */
void logfile_stop(struct logfile *);
/* Writes the waiting lines, within a second from logfile_stop(), which need not be called. */
void logfile_close(struct logfile *);

#endif
