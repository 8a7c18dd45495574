/* fcgi-stat-accel/serve.h -- accepts connections and signals; runs the loop until a signal ends it.
 *
 * A kept connection costs a descriptor and a few hundred bytes, a request costs no thread.  Ten
 * thousand connections live on one loop.  The threads that may sleep are those that open files
 * (files/warm/warm.h).
 */
#ifndef FCGI_STAT_ACCEL_SERVE_H
#define FCGI_STAT_ACCEL_SERVE_H

#include "fcgi-stat-accel/conn.h"
#include "fcgi-stat-accel/listener.h"

struct serve_conf {
	struct conns conns; /* its upper half */
	unsigned max_conns; /* beyond it the longest silent one is closed */
	int signal_fd;      /* each signal is one byte, its number */
	/* USR1, as FastCGI has it: another process serves now, so running requests get this
	 * time. */
	unsigned patience_ms;
};

/* Takes the listener (NULL afterwards, so that another process can accept).  Returns after a
 * drain: 0 if every request was answered from its file, -EBUSY if some were answered as late; or
 * -errno if it could not start.  No op of this file is in flight then. */
int serve_run(const struct serve_conf *, struct listener **);

#endif
