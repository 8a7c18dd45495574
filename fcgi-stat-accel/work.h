/* fcgi-stat-accel/work.h -- the threads that touch files.
 *
 * A thread sees a job, never a connection: bytes of a whole, checked request go in, bytes of the
 * answer come out.  In between libfcgi reads and writes them through a pair of sockets that
 * belongs to the thread, so it neither waits for a peer nor meets a record that record.c did not
 * write.
 */
#ifndef FCGI_STAT_ACCEL_WORK_H
#define FCGI_STAT_ACCEL_WORK_H

#include <glib.h>

#include "fcgi-stat-accel/accel.h"
#include "fcgi-stat-accel/touch.h"

struct work;

struct job {
	struct job *next;
	GString	   *bytes;		/* request, then answer; empty when there is none to give */
};

struct work_conf {
	unsigned	   threads;
	const struct accel_conf *accel;
	const struct touch *touch;
	struct stats	  *stats;
};

/* Exactly conf->threads threads, or none and -errno.  *conf must outlive them. */
int  work_start(const struct work_conf *conf, struct work **wp);

/* First come, first served.  The job is the pool's until work_done() hands it back.  Any thread. */
void work_submit(struct work *, struct job *);

/* Becomes readable when jobs are done. */
int  work_fd(const struct work *);

/* All jobs that are done, oldest first, as a list; NULL when there are none.  One thread. */
struct job *work_done(struct work *);

/* Waits for the threads: every job must have come back. */
void work_stop(struct work **);

#endif
