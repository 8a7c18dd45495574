/* fcgi-stat-accel/conn.h -- the connections of web servers, each with at most one request under way.
 *
 *   quiet --bytes--> collecting --whole request--> [looked up] --> answered --> sent --> quiet
 *                       |                             |                           `--> FIN, then closed by the peer
 *                       `- 10 s: closed               `- aborted, or the peer went: nobody waits any more
 *
 * A quiet connection is a descriptor and one struct conn: no buffer, no thread, nothing of libfcgi.
 *
 * Thread   the loop's.
 */
#ifndef FCGI_STAT_ACCEL_CONN_H
#define FCGI_STAT_ACCEL_CONN_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "fcgi-stat-accel/accel.h"
#include "wire/fcgi_record.h"
#include "fcgi-stat-accel/request.h"
#include "fcgi-stat-accel/stats.h"
#include "fcgi-stat-accel/status.h"
#include "fcgi-stat-accel/timing.h"
#include "fcgi-stat-accel/warm/warm.h"
#include "io/io.h"

/* What they share.  serve.c makes it. */
struct conns {
	struct io   *io;
	struct warm *warm;
	struct stats *stats;
	const struct accel_conf *accel;
	const struct status *status;
	enum timing_format timing;
	struct request_reader	*reader;
	struct record_conf	 record;
	void  (*gone)(struct conns *);	/* one has been closed: its descriptor is free again */

	GString	   *path, *reply, *out;	/* of the request that is being answered; kept between requests */
	struct list quiet, busy;	/* quiet: the one that is silent for longest is first */
	uint32_t    ids;
	uint64_t    events;		/* grows with each receive: what is left to do, see serve.c */
	bool	    draining;		/* each answer is the last one on its connection */
	bool	    leaving;		/* and nobody may be quiet */
};

void conns_init(struct conns *);	/* the lower half */
void conns_free(struct conns *);	/* all are closed */

/* The descriptor is the connection's from now on; closed at once when its peer is not welcome. */
void conn_open(struct conns *, int fd, bool welcome);

bool conns_make_room(struct conns *);	/* closes the first quiet one that is not new; false: none is */
void conns_leave(struct conns *);	/* closes all quiet ones, and who gets quiet from now on */
unsigned conns_give_up(struct conns *);	/* answers all that wait for a file: it took too long; returns how many */
void conns_close(struct conns *);	/* all */

#endif
