/* accel-load/conn_impl.h -- shared by conn.c (connect, send, close) and conn_receive.c. */
#ifndef ACCEL_LOAD_CONN_IMPL_H
#define ACCEL_LOAD_CONN_IMPL_H

#include "accel-load/conn.h"

struct request *conn_asked(struct conn *, unsigned i); /* the i-th one without an answer */
void conn_forget_requests(struct conn *);
/* The next request, for which it is now this late. */
void conn_choose(struct thread *, struct request *, uint64_t at);
void conn_connect(struct conn *); /* it is closed */
/* Sends what is due, unless a send is under way. */
void conn_flush(struct conn *);
void conn_pause(struct conn *); /* it waits a moment before anything new */
/* Ready for the next request; a closed loop starts it at once. */
void conn_next(struct conn *);
void conn_hang_up(struct conn *);
/* Goes on with a close, after the last op in flight. */
void conn_close_when_idle(struct conn *);

void conn_recv_start(struct conn *);
void conn_received(struct io_op *); /* done() of rd */

#endif
