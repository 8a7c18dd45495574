/* fcgi-stat-accel/conn_impl.h -- inside conn*.c only: a connection, and what it has under way. */
#ifndef FCGI_STAT_ACCEL_CONN_IMPL_H
#define FCGI_STAT_ACCEL_CONN_IMPL_H

#include "base/clock.h"
#include "fcgi-stat-accel/conn.h"

/* While a file is looked up or bytes are on their way.  A quiet connection has none. */
struct turn {
	struct conn *conn;
	GString	    *request;		/* waits for its file, to be read again then; NULL: none does */
	struct warm_wait wait;
	uint64_t     began_ns;		/* when it was whole */
	GString	    *sending, *next;	/* the engine's; what follows it */
	size_t	     sent;
	struct iovec iov;
	struct io_op send;
	GString	    *rest;		/* received behind the request: its turn comes after the answer */
};

struct conn {
	struct conns *all;
	struct list   link;		/* quiet or busy */
	struct turn  *turn;		/* NULL: none */
	uint64_t      since_ns;		/* it is there; owed: since when */
	uint32_t      id, requests;
	bool	      receiving : 1;	/* op is in flight */
	bool	      owed : 1;		/* the rest of a request, or the end of the connection */
	bool	      last : 1;		/* no more requests: FIN after what is being sent */
	bool	      heard_all : 1;	/* and the peer sends no more */
	bool	      lingering : 1;	/* FIN is sent */
	bool	      closing : 1;
	struct record record;
	struct io_sock sock;
	struct io_op  op;		/* RECV; at the end CLOSE */
};

struct turn *conn_turn(struct conn *);	/* its own, made if need be */
void conn_move(struct conn *, struct list *where);
bool conn_waits(const struct conn *);	/* for a file */
void conn_put(struct conn *);		/* what is in all->out goes out, behind what is on its way already */
void conn_go_on(struct conn *);		/* to whatever is next; may close it */
void conn_close(struct conn *);		/* what is under way is dropped */

/* conn_request.c */
bool conn_take_request(struct conn *);	/* answered in all->out, or waits for its file; false: the connection cannot go on */
void conn_abort_request(struct conn *);	/* its web server has said so */
void conn_forget_request(struct conn *);	/* nobody waits for its file any more */

#endif
