/* server/conn/handover.h -- idle connections move from the workers of an old generation to those of the newest.
 *
 *   old worker: handover_give() --> row of a taker --> its loop wakes --> new worker: handover_take()
 *
 * So a reload closes no idle connection: its next request is answered by the new configuration.
 *
 * Bounds   what moves is a client connection already: their limits hold.
 * Owner    the process.  A struct moved belongs to the handover from give to take; its descriptor and its place among
 *          the connections of its address go with it.
 * Thread   open, close, free: the main thread.  The others: any.  One lock, taken only while connections move.
 */
#ifndef SERVER_CONN_HANDOVER_H
#define SERVER_CONN_HANDOVER_H

#include "io/io.h"
#include "server/conn/clients.h"

struct listener;
struct handover;

struct moved {
	struct list link;
	int fd;
	uint32_t nreq;          /* requests it has made so far */
	union io_addr peer;
	struct client *counted; /* NULL: not counted */
	const char *listener;   /* given: a name; taken: the same name among the listeners of the takers */
};

struct handover *handover_new(struct clients *); /* closed; NULL: no memory */
void handover_free(struct handover *);           /* NULL is fine */

/* From now on connections go to these n loops, in turn, when they came in by one of these listeners.  What the takers before
 * have not taken goes to them, too.  All is the caller's and stays until the next call or handover_close().  -ENOMEM: closed. */
int handover_open(struct handover *, struct io *const *takers, unsigned n, const struct listener *, size_t nlisteners);
void handover_close(struct handover *); /* NULL is fine; nobody takes any more; what was not taken is closed */

bool handover_is_open(const struct handover *); /* NULL is fine: false */
/* True: fd and counted have gone.  False: nobody takes a connection of that listener, or no memory; all is still yours. */
bool handover_give(struct handover *, const struct moved *);
/* The oldest that waits for this loop, yours to free(); NULL: none. */
struct moved *handover_take(struct handover *, const struct io *taker);

#endif
