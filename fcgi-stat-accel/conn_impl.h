/* fcgi-stat-accel/conn_impl.h -- shared by the conn*.c files: a connection and its current
 * request. */
#ifndef FCGI_STAT_ACCEL_CONN_IMPL_H
#define FCGI_STAT_ACCEL_CONN_IMPL_H

#include "base/clock.h"
#include "fcgi-stat-accel/conn.h"
#include "fcgi-stat-accel/path_info.h"

/* Bytes to send, and the descriptor that goes with the first of them. */
struct parcel {
	struct list link;
	GString *bytes;
	int fd; /* -1: none, or sent */
};

/* Exists during a look-up and while bytes are in flight.  A quiet connection has none. */
struct turn {
	struct conn *conn;
	/* waits for its file and is then read again; NULL: none */
	GString *request;
	struct warm_wait wait;
	struct path_info info; /* path info of the name that `wait` looks up */
	/* the client wants a descriptor: it is being opened; NULL: it is not */
	struct warm_open *opening;
	int fd;              /* for the next parcel; -1: none */
	int open_err;        /* the client gets this error instead; 0: none */
	uint64_t began_ns;   /* when it was complete */
	struct list parcels; /* the first one is in flight */
	size_t sent;         /* of its bytes */
	struct iovec iov;
	struct io_op send;
	/* Bytes received after the request: they are read after its answer. */
	GString *rest;
};

struct conn {
	struct conns *all;
	struct list link;  /* quiet or busy */
	struct turn *turn; /* NULL: none */
	/* since when it is in its state; owed: since the first byte of what the peer owes */
	uint64_t since_ns;
	uint32_t id, requests;
	bool receiving : 1; /* op is in flight */
	bool owed : 1;      /* waiting for the rest of a request, or for the peer to close */
	bool last : 1;      /* no more requests: FIN after the bytes in flight */
	bool heard_all : 1; /* the peer sends no more */
	bool lingering : 1; /* FIN was sent */
	bool closing : 1;
	bool peer_known : 1; /* own_user and own_groups are valid */
	bool own_user : 1;   /* it may have descriptors */
	bool own_groups : 1; /* what is forbidden here is forbidden to it */
	struct record record;
	struct io_sock sock;
	struct io_op op; /* RECV; at the end CLOSE */
};

struct turn *conn_turn(struct conn *); /* its struct turn, made if necessary */
void conn_move(struct conn *, struct list *where);
bool conn_waits(const struct conn *); /* for a file */
/* Sends all->out, after the bytes in flight. */
void conn_put(struct conn *);
void conn_drop_fd(struct conn *, int *fd); /* -1 is allowed, and left */
void conn_go_on(struct conn *); /* goes on with the next step; may close the connection */
void conn_drop(struct conn *);  /* drops everything in progress */

/* conn_request.c */
/* The answer is in all->out, or the request waits for its file; false: the connection must be
 * closed. */
bool conn_take_request(struct conn *);
void conn_abort_request(struct conn *);  /* the web server aborted its request */
void conn_forget_request(struct conn *); /* the request does not need its file any more */
/* c->turn has all that the request waited for. */
void conn_answer_waiting(struct conn *);

/* conn_give.c */
/* The client may have the descriptor that it asks for. */
bool conn_wants_fd(struct conn *, char **params);
/* The look-up has ended, and all->path is its name.  True: the file is being opened, and the
 * request waits for conn_answer_waiting(). */
bool conn_open_file(struct conn *, char **params);

#endif
