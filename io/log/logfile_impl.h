/* io/log/logfile_impl.h -- shared by the files of io/log/logfile.h.
 *
 *   logfile.c       callers, buffers, the thread
 *   logfile_out.c   where the lines go: a file, a program, the system's log
 */
#ifndef IO_LOGFILE_IMPL_H
#define IO_LOGFILE_IMPL_H

#include <pthread.h>
#include <stdint.h>
#include "io/log/logfile.h"

struct logfile {
	pthread_mutex_t lock;
	pthread_cond_t more, ended;
	pthread_t thread;
	char *path;           /* NULL: stderr */
	logfile_opener *open; /* NULL: open(2) */
	void *open_arg;
	char *pending; /* LOGFILE_PENDING bytes, filled by callers */
	size_t npending;
	char *out;              /* of the thread */
	int fd;                 /* of the thread; -1: the system's log is not there yet */
	bool reopen, reopening; /* a reopening is wanted; it is under way in the thread */
	int reopen_err;         /* of the last reopening: 0 or -errno */
	void (*failed)(const char *, int); /* of the last reopen */
	uint64_t dropped, told;            /* lines; how many of them have been logged */
	bool stop, done;
	uint64_t end_ns;    /* set by stop: the thread is waited for until then */
	uint64_t opened_ns; /* of the thread: when a program was started last */
	unsigned pause_s;   /* of the thread: before the next start */
};

int log_open(const struct logfile *); /* a descriptor or -errno */
/* Releases the lock meanwhile: a directory may hang, too.  True: the log is another file now. */
bool log_reopen_locked(struct logfile *);
/* In the thread: waits for the disk, the program or the daemon; ends when the log is closed. */
void log_write(struct logfile *, const char *p, size_t n);

#endif
