/* io/loop/epoll.h -- the two halves of the loop: epoll.c has the round, epoll_ops.c what an op does in it. */
#ifndef IO_LOOP_EPOLL_H
#define IO_LOOP_EPOLL_H

#include <sys/epoll.h>
#include "io/engine.h"
#include "io/loop/slots.h"

#define EVENTS 512

struct epoll_loop {
	struct io io;
	int epfd, wakefd;
	struct io_watch wake;
	unsigned accepts; /* left in this round */
	bool rest;        /* the round before left callbacks for this one */
	bool newcomer;    /* accepted in such a round: it is looked at next */
	struct list listening; /* accepts that are parked */
	struct slots slots;
	struct list bulk; /* long sends whose turn is in the next round */
	struct epoll_event ev[EVENTS];
};

static inline struct epoll_loop *
loop_of(struct io *io)
{
	return (container_of(io, struct epoll_loop, io));
}

void epoll_start(struct io *, struct io_op *);  /* begins an op: its result, or parked, or ready to be tried */
bool epoll_try(struct io *, struct io_op *);    /* one attempt; true: it has its result */
void epoll_park(struct io *, struct io_op *);   /* waits for its socket */
void epoll_unpark(struct io *, struct io_op *);
void epoll_ignore(struct io *, struct io_sock *);
void sock_unregister(struct epoll_loop *, struct io_sock *);

#endif
