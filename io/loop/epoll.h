/* io/loop/epoll.h -- the two halves of the loop: epoll.c has the round, epoll_ops.c the ops in
 * it. */
#ifndef IO_LOOP_EPOLL_H
#define IO_LOOP_EPOLL_H

#include <sys/epoll.h>
#include "io/engine.h"
#include "io/loop/by_ref.h"
#include "io/loop/slots.h"
#include "io/transport.h"

#define EVENTS 512

struct epoll_loop {
	struct io io;
	int epfd, wakefd;
	struct io_watch wake;
	unsigned accepts;      /* left in this round */
	bool rest;             /* the last round left callbacks for this one */
	bool newcomer;         /* a connection accepted in such a round is handled next */
	struct list listening; /* parked accepts */
	struct slots slots;
	struct by_ref by_ref;
	struct list bulk; /* long sends that wait for the next round */
	struct epoll_event ev[EVENTS];
};

static inline struct epoll_loop *
loop_of(struct io *io)
{
	return (container_of(io, struct epoll_loop, io));
}

/* Begins an op: sets its result, parks it, or makes it ready to be tried. */
void epoll_start(struct io *, struct io_op *);
bool epoll_try(struct io *, struct io_op *);  /* one attempt; true: it has its result */
void epoll_park(struct io *, struct io_op *); /* waits for its socket */
int64_t epoll_unpark(struct io *, struct io_op *, int64_t res);
void epoll_ignore(struct io *, struct io_sock *);
void sock_unregister(struct epoll_loop *, struct io_sock *);

#endif
