/* fcgi-stat-accel/serve.h -- takes connections and signals; runs the loop until a signal ends it.
 *
 * A kept connection costs a descriptor and a few hundred bytes, a request no thread: ten thousand of them live on one
 * loop, and the threads that may sleep are those that open files (warm.h).
 */
#ifndef FCGI_STAT_ACCEL_SERVE_H
#define FCGI_STAT_ACCEL_SERVE_H

#include "fcgi-stat-accel/accel.h"
#include "fcgi-stat-accel/listener.h"
#include "fcgi-stat-accel/stats.h"
#include "fcgi-stat-accel/status.h"
#include "fcgi-stat-accel/timing.h"
#include "fcgi-stat-accel/warm/warm.h"

struct serve_conf {
	struct io   *io;
	struct warm *warm;
	struct stats *stats;
	const struct accel_conf *accel;
	const struct status *status;	/* answered like a file; to the log on USR2 */
	enum timing_format timing;
	unsigned max_conns;		/* beyond it the one that is silent for longest is closed */
	int	 signal_fd;		/* signals_open() */
};

/* Takes the listener (NULL afterwards: new connections are for others).  Returns after a drain: 0 when every request has
 * been answered from its file, -EBUSY when the answer to some was that it took too long; or -errno when it could not begin.
 * Nothing of this file is in flight then. */
int serve_run(const struct serve_conf *, struct listener **);

#endif
