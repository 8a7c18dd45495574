/* server/conn/input.c -- what a client sends: buffers, and request bodies.
 *
 * Input is looked at where it was received: a slice of the loop's lent buffer.  Only what is left over
 * when the connection has to wait is copied (conn_settle()), so a hot request copies nothing and an idle
 * connection owns nothing.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/must.h"
#include "server/conn/impl.h"

static void received(struct io_op *);

/* ---- receiving */

bool
conn_settle(struct conn *c)
{
	struct buf old = c->own;
	bool is_own = c->own.p != NULL && c->in.p >= c->own.p && c->in.p <= c->own.p + c->own.n;

	if (c->r != NULL && !request_keep(c->r))
		return (false);
	if (c->in.n == 0) {
		buf_free(&c->own);
		c->in = TEXT_NONE;
		return (true);
	}
	if (is_own)
		return (true);
	buf_init(&c->own, 0);
	buf_text(&c->own, c->in);
	buf_free(&old);
	c->in = buf_as_text(&c->own);
	return (!c->own.failed);
}

const struct conn_state *
conn_want_bytes(struct conn *c, uint32_t deadline_ms)
{
	if (!conn_settle(c))
		return (&st_close);
	must(!c->watching);
	c->receiving = true;
	c->in_err = 0;
	c->op.kind = IO_RECV;
	c->op.done = received;
	c->op.sock = &c->sock;
	c->op.deadline_ms = deadline_ms;
	op_submit(c->w->io, &c->op);
	return (WAIT);
}

static void
take_bytes(struct conn *c, struct io_op *op)
{
	uint64_t paid = op->res > 0 ? (uint64_t)op->res * NS_PER_S / BODY_RATE : 0;

	c->debt_ns += io_now(c->w->io) - op->at.submit;
	c->debt_ns = c->debt_ns > paid ? c->debt_ns - paid : 0;
	if (op->res <= 0) {
		c->in_err = op->res == 0 ? -ECONNRESET : (int)op->res;
	} else if (c->in.n == 0) {
		c->in = (struct text){op->recv.buf, (size_t)op->res};
	} else {
		buf_drop(&c->own, (size_t)(c->in.p - c->own.p));
		buf_add(&c->own, op->recv.buf, (size_t)op->res);
		c->in = buf_as_text(&c->own);
		c->in_err = c->own.failed ? -ENOMEM : 0;
	}
}

static void
received(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, op);

	c->receiving = false;
	if (conn_ended_while_waiting(c))
		return;
	take_bytes(c, op);
	conn_run(c);
}

static void
reset(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, op);

	c->watching = false;
	if (conn_ended_while_waiting(c) || op->res != 0)
		return;
	count(&c->w->tally->counters, client_gone);
	conn_stop(c);
}

/* Half a close is none: such a client may still read. */
void
conn_watch(struct conn *c)
{
	if (conn_in_flight(c) || c->closing || c->r->body_left != 0)
		return;
	c->watching = true;
	c->op.kind = IO_HANGUP;
	c->op.done = reset;
	c->op.sock = &c->sock;
	c->op.deadline_ms = 0;
	op_submit(c->w->io, &c->op);
}

void
conn_watch_end(struct conn *c)
{
	if (c->watching)
		op_cancel(c->w->io, &c->op);
}
