/* server/conn/input.c -- input of a client: buffers and request bodies.
 *
 * Input is read where it was received, as a slice of the loop's lent buffer.  Only the rest is
 * copied when the connection has to wait (conn_settle()).  So a hot request copies nothing, and an
 * idle connection owns no buffer.
 */
#include <errno.h>

#include "base/rate.h"
#include "server/conn/impl.h"
#include "server/request/request.h"

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

bool
conn_receive(struct conn *c, uint32_t deadline_ms, void (*done)(struct io_op *))
{
	if (!conn_settle(c))
		return (false);
	if (c->watching) {
		conn_bug(c,
		    "a receive was started while the wait for the client's end was still on");
		return (false);
	}
	c->receiving = true;
	c->in_err = 0;
	c->op.kind = IO_RECV;
	c->op.only_hangup = false;
	c->op.done = done;
	c->op.sock = &c->sock;
	c->op.deadline_ms = deadline_ms;
	op_submit(c->w->base.io, &c->op);
	return (true);
}

const struct conn_state *
conn_want_bytes(struct conn *c, uint32_t deadline_ms)
{
	return (conn_receive(c, deadline_ms, received) || c->closing ? WAIT : &st_close);
}

void
conn_take_bytes(struct conn *c, struct io_op *op)
{
	debt_note(&c->debt_ns, io_now(c->w->base.io) - op->at.submit, op->res, BODY_RATE);
	if (op->res <= 0) {
		c->in_err = op->res == 0 ? -ECONNRESET : (int)op->res;
	} else if (c->in.n == 0) {
		c->in = (struct text){ op->buf, (size_t)op->res };
	} else {
		buf_drop(&c->own, (size_t)(c->in.p - c->own.p));
		buf_add(&c->own, op->buf, (size_t)op->res);
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
	conn_take_bytes(c, op);
	conn_run(c);
}

static void
client_is_gone(struct conn *c)
{
	count(c->w->base.counts.conn, client_gone);
	conn_stop(c);
}

/* The client sends no more, and nobody can tell whether it still reads. */
static void
client_ended(struct conn *c)
{
	c->ended = true;
	count(c->w->base.counts.conn, client_ended);
	if (proxy_ends_with_client(c->r)) {
		client_is_gone(c);
		return;
	}
	if (c->r->in.streams)
		conn_stream_on(c); /* room for its body may have come meanwhile */
	else
		conn_watch(c);
	conn_phase_show(c);
}

static bool
is_waiting(const struct conn *c)
{
	return (!c->op_wanted && !c->sending && (c->state == &st_handle || c->state == &st_probe));
}

static void
watched(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, op);

	c->watching = false;
	if (conn_ended_while_waiting(c))
		return;
	if (op->res == 0)
		client_is_gone(c);
	else if (op->res > 0 && is_waiting(c))
		client_ended(c);
	else if (c->op_wanted || c->r->in.streams)
		conn_stream_on(c);
	else
		conn_watch_on(c);
}

/* A client that sends no more may still read: `printf ... | nc`, a health check.  One that has
 * closed its socket looks the same, and sends no reset before it is sent something.  So the end of
 * its bytes makes a request the first to give way (proxy-core/yield.h, eviction.h); only a reset
 * ends it.  A tunnel has an end for each direction. */
void
conn_watch(struct conn *c)
{
	if (conn_in_flight(c) || c->closing || (c->r->in.left != 0 && !c->r->in.streams))
		return;
	c->watching = true;
	c->op.kind = IO_RECV;
	c->op.only_hangup = true;
	c->op.or_end = !c->tunnel && !c->ended;
	c->op.done = watched;
	c->op.sock = &c->sock;
	c->op.deadline_ms = 0;
	op_submit(c->w->base.io, &c->op);
}

/* After a send: a 1xx was sent, or a part of a reply, and the application still thinks.  A stream
 * that is reset in the middle of a reply makes room for another one.
 *
 * The watch that the send has cancelled may still be on its way; then this is called once more when
 * it has come. */
void
conn_watch_on(struct conn *c)
{
	if (is_waiting(c) && (c->state == &st_probe || c->r->status == 0 || c->handler->watches ||
				 c->parent != NULL))
		conn_watch(c);
}

void
conn_watch_end(struct conn *c)
{
	if (c->watching)
		op_cancel(c->w->base.io, &c->op);
}
