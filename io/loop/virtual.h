/* io/loop/virtual.h -- inside io/ only: ops of a socket that has no descriptor, only a transport
 * that makes its events: a stream of a connection that carries many (io/http2/).
 *
 *   op_submit() --> virtual_start() --> transport->calls->receive(), send() --> done, or parked
 *   io_sock_event() --> the hints; the parked op is tried again, in its turn
 *
 * The rules are those of io/loop/epoll_ops.c, and both loops use them.
 * Thread   the loop's.
 */
#ifndef IO_LOOP_VIRTUAL_H
#define IO_LOOP_VIRTUAL_H

#include "io/engine.h"
#include "io/transport.h"

static inline bool
io_sock_is_virtual(const struct io_sock *s)
{
	return (s != NULL && s->fd < 0 && s->transport != NULL);
}

void virtual_start(struct io *, struct io_op *);
bool virtual_try(struct io *, struct io_op *); /* as struct io_calls */
void virtual_park(struct io *, struct io_op *);
int64_t virtual_unpark(struct io_op *, int64_t res);

/* The transport has bytes or room, or has broken. */
void io_sock_event(struct io *, struct io_sock *, uint8_t hints);

#endif
