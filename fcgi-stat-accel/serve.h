/* fcgi-stat-accel/serve.h -- the loop: connections of web servers in, whole requests to the
 * threads.
 *
 * A kept connection costs a descriptor and a few hundred bytes until a whole request lies here;
 * a thread is taken only then.  So 200 kept connections live on 3 threads, and half a request
 * holds nobody.
 */
#ifndef FCGI_STAT_ACCEL_SERVE_H
#define FCGI_STAT_ACCEL_SERVE_H

#include "fcgi-stat-accel/listen.h"
#include "fcgi-stat-accel/work.h"

struct serve_conf {
	unsigned threads;		/* as told to GET_VALUES */
	unsigned max_conns;		/* beyond it the one that is silent for longest is closed */
	int	 signal_fd;		/* signalfd(2): the first one drains, the second one ends */
};

/* Takes the listener (NULL afterwards: new connections are for others).  Returns after a drain:
 * 0 when every request that was running has been answered, -EBUSY when some thread still has
 * one; or -errno when it could not begin. */
int serve_run(const struct serve_conf *, struct listener **, struct work *);

#endif
