/* io/loop/virtual.c -- see virtual.h */
#include "io/loop/virtual.h"

#include <errno.h>

#define RECV_SIZE   (64u << 10)
#define RECV_LITTLE (4u << 10)

static uint8_t
wants(const struct io_op *op)
{
	return (op->kind == IO_RECV ? recv_wants(op) : send_wants(op));
}

static struct io_op **
place(struct io_op *op)
{
	return (op->kind == IO_RECV ? &op->sock->rd : &op->sock->wr);
}

void
virtual_park(struct io *io, struct io_op *op)
{
	must(*place(op) == NULL);
	*place(op) = op;
	op->state = OP_PARKED;
	io_arm(op);
}

int64_t
virtual_unpark(struct io_op *op, int64_t res)
{
	if (*place(op) == op)
		*place(op) = NULL;
	list_del(&op->link);
	return (res);
}

static bool
done_with(struct io_op *op, int64_t res)
{
	op->res = res;
	return (true);
}

static bool
parked(struct io *io, struct io_op *op)
{
	virtual_park(io, op);
	return (false);
}

static bool
try_recv(struct io *io, struct io_op *op)
{
	struct io_sock *s = op->sock;
	char *buf;
	int64_t n;

	if (op->only_hangup)
		return (done_with(op, (s->hints & SOCK_BROKEN) != 0 ? 0 : 1));
	buf = io_window_get(io);
	if (buf == NULL)
		return (done_with(op, -ENOMEM));
	n = s->transport->calls->receive(io, s, buf, op->little ? RECV_LITTLE : RECV_SIZE);
	io_received(io, op, buf, n);
	return (n == -EAGAIN ? parked(io, op) : done_with(op, n));
}

static bool
try_send(struct io *io, struct io_op *op)
{
	struct io_sock *s = op->sock;
	int64_t n = s->transport->calls->send(s, op->send.iov, op->send.n, op->more);

	if (n == -EAGAIN && !(op->pages && (s->hints & SOCK_WRITABLE) == 0))
		return (parked(io, op));
	return (done_with(op, n));
}

bool
virtual_try(struct io *io, struct io_op *op)
{
	switch ((int)op->kind) {
	case IO_RECV: return (try_recv(io, op));
	case IO_SEND: return (try_send(io, op));
	default: return (done_with(op, 0)); /* IO_WRITABLE, IO_PAUSE */
	}
}

static void
start_close(struct io_op *op)
{
	struct io_sock *s = op->sock;

	must(s->rd == NULL && s->wr == NULL);
	if (!op->cuts)
		s->transport->calls->say_end(s);
	io_transport_free(io_sock_unplug(s));
	s->hints = 0;
	io_complete_first(op, 0);
}

void
virtual_start(struct io *io, struct io_op *op)
{
	if (op->kind == IO_CLOSE)
		start_close(op);
	else if ((op->sock->hints & wants(op)) == 0)
		virtual_park(io, op);
	else if (op->kind == IO_RECV)
		io_ready(io, op, OP_TRY);
	else if (virtual_try(io, op))
		io_complete_first(op, op->res);
}

void
io_sock_event(struct io *io, struct io_sock *s, uint8_t hints)
{
	struct io_op *op;

	s->hints |= hints;
	if (s->rd != NULL && (s->hints & wants(s->rd)) != 0) {
		op = s->rd;
		s->rd = NULL;
		io_ready(io, op, OP_TRY);
	}
	if (s->wr != NULL && (s->hints & wants(s->wr)) != 0) {
		op = s->wr;
		s->wr = NULL;
		io_ready(io, op, OP_TRY);
	}
}
