/* server/conn/handover.h -- connections move to the worker that has fewest: idle ones of an old
 * generation, and those of a worker that has more than its share.
 *
 *   giver: handover_give() --> row of a taker --> the taker wakes: handover_take()
 *
 * So a reload closes no idle connection: the new configuration answers its next request.
 * server/conn/spread.h says when a worker gives.
 *
 * Bounds   only client connections move, so their limits apply.
 * Owner    the process.  A struct moved belongs to the handover from give to take, with its
 *          descriptor and its place in the count of its address.
 * Thread   open, close, free: the main thread.  The others: any.  One lock, taken only while
 *          connections move, or when a worker looks at its share.
 */
#ifndef SERVER_CONN_HANDOVER_H
#define SERVER_CONN_HANDOVER_H

#include "base/client_addr.h"
#include "io/io.h"

struct clients;
struct io_transport;
union io_addr;
struct listener;
struct worker;
struct handover;

struct moved {
	struct list link;
	int fd;
	struct io_transport *transport; /* of io_sock_unplug() */
	uint32_t nreq;                  /* requests on it so far */
	struct client_addr from;
	union io_addr peer; /* as the PROXY protocol gave it */
	bool proxied;       /* the header of the PROXY protocol was read */
	bool tls;
	bool secure;            /* its socket spoke TLS when it was accepted */
	struct client *counted; /* NULL: not counted */
	/* Before take the name of its listener; afterwards the same name in the takers' list. */
	const char *listener;
};

struct handover *handover_new(struct clients *); /* closed; NULL: no memory */
void handover_free(struct handover *);           /* NULL is allowed */

/* Connections that came in by one of these listeners go to these n workers from now on.  So do
 * those that earlier takers left.  All arguments stay valid until the next call or
 * handover_close().  Without memory the handover is closed. */
void handover_open(struct handover *, struct worker *const *takers, unsigned n,
    const struct listener *, size_t nlisteners);
/* NULL is allowed; closes the connections that no loop has taken */
void handover_close(struct handover *);
/* Another process accepts: connections stay where they are, and those that wait are taken.  They
 * close after their next reply, or when they have been idle too long; handover_close() ends that.
 */
void handover_retire(struct handover *);
/* The worker and all others of its generation have ended, and are about to be freed.  NULL is
 * allowed. */
void handover_forget(struct handover *, const struct worker *);
bool handover_is_retired(const struct handover *); /* NULL is allowed: false */

bool handover_is_open(const struct handover *); /* NULL is allowed: false */
/* True: takes fd and counted.  False: no taker has this listener, the giver is a taker and has no
 * more connections than the others, or no memory; everything is still yours. */
bool handover_give(struct handover *, const struct worker *giver, const struct moved *);
/* The oldest connection that waits for this worker, yours to free(); NULL: none. */
struct moved *handover_take(struct handover *, const struct worker *taker);

/* The connections that a worker may have before it gives some away: an eighth more than the mean of
 * the takers, and a few.  UINT_MAX: it is the only taker.  0: it is not a taker. */
unsigned handover_share(struct handover *, const struct worker *);
/* If the taker with most connections has more than its share, it is asked to give some away.  The
 * connections that wait for a worker whose loop stands still go to the others.  True: connections
 * wait, so look again in some 100 ms.  now: io_now(). */
bool handover_look(struct handover *, uint64_t now);

#endif
