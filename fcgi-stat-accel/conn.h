/* fcgi-stat-accel/conn.h -- the connections of web servers, each with at most one request in
 * progress.
 *
 *   quiet --bytes--> collecting --whole request--> [looked up] --> answered --> sent --> quiet
 *                       |                             |                          |
 *                       |                             |                          `--> FIN, then the
 *                       `- 10 s: closed               |                               peer closes
 *                                                     `- aborted, or the peer left: dropped
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
#include "fcgi-stat-accel/advice.h"
#include "wire/codec/fcgi_record.h"
#include "fcgi-stat-accel/request.h"
#include "fcgi-stat-accel/status.h"
#include "fcgi-stat-accel/timing.h"
#include "files/warm/warm.h"
#include "io/io.h"

/* Shared by all connections.  serve.c makes it. */
struct conns {
	struct io *io;
	struct warm *warm;
	struct accel_counters *counters;
	const struct accel_conf *accel;
	struct advice *advice;
	const struct status *status;
	enum timing_format timing;
	struct request_reader *reader;
	struct record_conf record;
	void (*gone)(struct conns *); /* a connection was closed: its descriptor is free */

	/* buffers of the current request; kept between requests */
	GString *path, *reply, *out;
	struct list quiet, busy; /* quiet: the longest silent one first */
	uint32_t ids;
	/* Grows with each receive; serve.c compares it while draining. */
	uint64_t events;
	bool draining; /* each answer is the last one on its connection */
	bool leaving;  /* no connection may become quiet any more */
	bool told;     /* the log says why a client gets no descriptors */
};

void conns_init(struct conns *); /* initializes the second half of struct conns */
void conns_free(struct conns *); /* all connections must be closed */

/* Takes the descriptor; closes it at once if the peer is not welcome. */
void conn_open(struct conns *, int fd, bool welcome);

/* closes the first quiet one that is not new; false: none */
bool conns_make_room(struct conns *);
/* Closes all quiet ones that are not new, and each that becomes quiet from now on.  False: new ones
 * are left, which have not sent their request yet. */
bool conns_leave(struct conns *);
void conns_close_quiet(struct conns *); /* closes these, too */
/* Answers all requests that wait for a file as late; returns their number. */
unsigned conns_give_up(struct conns *);
void conns_close(struct conns *); /* closes all */

#endif
