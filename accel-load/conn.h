/* accel-load/conn.h -- one connection: connect, send, receive, close; and whose requests are on it.
 *
 * At most one op of each kind is in flight: wr connects, sends or closes; rd receives, as long as
 * the connection is open, so that an idle one notices the end.
 */
#ifndef ACCEL_LOAD_CONN_H
#define ACCEL_LOAD_CONN_H

#include "accel-load/reading.h"
#include "accel-load/thread.h"

struct streams;

struct conn {
	struct thread *thread;
	const struct target *target; /* of the connection, or of the one to be made */
	struct io_sock sock;
	struct io_op rd, wr;
	struct list link; /* idle or resting */
	struct list due;  /* running or ending */
	bool rd_busy, wr_busy, closing, held;
	bool last;  /* the server closes after this answer */
	bool rests; /* after the close, until rest_ns */
	uint64_t rest_ns, end_ns;
	uint64_t connect_ns; /* when its connect began, then its handshake */
	uint64_t heard_ns;   /* the last bytes, or the request after which they are awaited */
	bool used;           /* it had a request */
	uint64_t answers;    /* whole ones, with or without errors */
	/* the answer that is being read */
	struct answer answer;
	struct reading reading;
	bool beyond;    /* a byte after the body was dropped */
	struct buf in;  /* an unfinished head or line */
	struct buf out; /* requests */
	size_t sent;
	struct iovec iov;
	/* requests without an answer, a ring */
	unsigned first, n; /* n: in HTTP/2, too */
	struct request *asked;
	struct streams *streams; /* HTTP/2: has them instead; NULL: another protocol */
};

bool conn_init(struct conn *, struct thread *); /* false: no memory */
void conn_free(struct conn *);
/* Starts requests on an idle connection; their latency counts from at. */
void conn_ask(struct conn *, uint64_t at);
/* All its requests end with this error; the connection is closed. */
void conn_fail(struct conn *, enum load_error);
void conn_release(struct conn *); /* --hold: a held one is idle again */
void conn_rested(struct conn *);  /* rest_ns is over */
void conn_end(struct conn *);     /* the run is over: closes it */

#endif
