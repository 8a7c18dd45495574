/* io/logfile.h -- log files written by a thread of their own, so that a full or hung disk stops nobody.
 *
 * Bounds   LOGFILE_PENDING bytes wait; more lines are dropped and counted, and the count is logged when the
 *          disk takes lines again (tried once a second).  Lines are whole or absent.
 * Thread   logfile_line() and logfile_reopen() any; open and close the main thread.
 */
#ifndef IO_LOGFILE_H
#define IO_LOGFILE_H

#include "base/text.h"

#define LOGFILE_PENDING (1u << 20)

struct logfile;

int logfile_open(const char *path, struct logfile **); /* NULL path: stderr.  0 or -errno */
/* The same with a function that opens the path, at once and at each reopening: a descriptor or -errno.  It may block. */
typedef int logfile_opener(void *arg, const char *path);
int logfile_open_by(const char *path, logfile_opener *, void *arg, struct logfile **);
int logfile_open_fd(const char *path); /* what the system's opener does: a descriptor that appends, or -errno */
void logfile_line(struct logfile *, struct text line); /* '\n' included; never waits */
/* After rotation (HUP): its thread opens the path again, and writes to the new file from then on.  If it cannot, the old one
 * goes on, and failed(path, -errno) is called by that thread. */
void logfile_reopen(struct logfile *, void (*failed)(const char *path, int err));
void logfile_close(struct logfile *);                  /* writes what waits, at most a second */
uint64_t logfile_dropped(const struct logfile *);

#endif
