/* io/http2/send.c -- the sends of a connection, one after the other.
 *
 *   a stream has bytes   --> http2_want_turn() --> once for all that happen in this round
 *                        --> http2_flush(): a batch of frames, in the turns that nghttp2 gives
 *                        --> IO_SEND --> sent() --> the next batch
 *
 * A batch is what waits for the socket.  Everything else waits for its turn, so that a small reply
 * that is ready overtakes large ones, and nothing of a client that does not read is copied.
 */
#include "io/http2/impl.h"

#include <errno.h>

#include "base/rate.h"

/* A client that reads makes room sooner.  To give the pages of 10 streams back and to ask for them
 * again takes as long as to send 20 kB. */
#define HOLD_MS 50u

/* ---- a batch goes out */

static void
submit(struct http2 *h, enum io_kind kind, uint32_t most_ms)
{
	uint32_t ms = debt_patience_ms(h->debt_ns, h->conf.send_ms);

	h->send.kind = kind;
	h->send.send.iov = h->batch.iov;
	h->send.send.n = h->send.send.first = h->batch.niov;
	h->send.deadline_ms = ms < most_ms ? ms : most_ms;
	h->asked_ns = io_now(h->io);
	h->sending = true;
	op_submit(h->io, &h->send);
}

static void
wait_up_to(struct http2 *h, uint32_t most_ms)
{
	submit(h, h->batch.left != 0 ? IO_SEND : IO_WRITABLE, most_ms);
}

/* The socket is full: streams wait, for a moment with what they have. */
static void
wait_for_room(struct http2 *h)
{
	h->stuck = h->holding = true;
	http2_batch_shrink(&h->batch);
	if (h->batch.left == 0)
		http2_batch_free(&h->batch, h->io); /* its window is for others, too */
	wait_up_to(h, HOLD_MS);
}

/* ... then without, since others may need it. */
static void
wait_longer(struct http2 *h)
{
	http2_streams_stuck(h);
	wait_up_to(h, UINT32_MAX);
}

/* The socket took n bytes. */
static void
took(struct http2 *h, size_t n)
{
	h->bytes_sent += n;
	http2_batch_skip(&h->batch, n);
}

/* What the socket took is known when the call returns, and the rest may not stay where it lies. */
static void
send_batch(struct http2 *h)
{
	struct http2_batch *b = &h->batch;
	struct io_op *op = &h->send;

	submit(h, IO_SEND, UINT32_MAX);
	h->skipped = op->state == OP_READY && op->res > 0;
	if (h->skipped)
		took(h, (size_t)op->res);
	if (b->left == 0)
		http2_batch_grow(b);
	else if (http2_batch_keep_rest(b, h->io))
		op->send.n = op->send.first = b->niov;
	else if (op->state == OP_READY)
		op->res = -ENOMEM;
	else
		op_cancel(h->io, op);
}

/* ---- the next batch */

/* 0, or -ENOMEM: the library cannot go on. */
static int
collect(struct http2 *h)
{
	if (h->lost || !http2_batch_open(&h->batch, h->io))
		return (-ENOMEM);
	if (nghttp2_session_send(h->ng) != 0)
		return (-ENOMEM);
	if (nghttp2_session_get_remote_window_size(h->ng) <= 0)
		http2_streams_stuck(h);
	return (0);
}

/* Nothing is left to be sent. */
static bool
is_quiet(const struct http2 *h)
{
	return (!h->sending && !h->soon_due && h->batch.left == 0);
}

static int
end_of_flush(struct http2 *h)
{
	http2_batch_free(&h->batch, h->io);
	if (http2_is_terminated(h))
		return (-EPROTO);
	if (h->ending && is_quiet(h))
		http2_ended(h, 0);
	return (0);
}

static bool
must_wait(const struct http2 *h)
{
	return (h->batch.left != 0 ||
		((h->sock->hints & SOCK_WRITABLE) == 0 && nghttp2_session_want_write(h->ng) != 0));
}

static void
unblock(struct http2 *h)
{
	if (!h->stuck)
		return;
	h->stuck = false;
	http2_streams_unblock(h);
}

int
http2_flush(struct http2 *h)
{
	int err;

	if (h->sending || h->stopped)
		return (0);
	if (must_wait(h)) {
		wait_for_room(h);
		return (0);
	}
	unblock(h);
	err = collect(h);
	if (err == 0 && h->late)
		err = -ETIMEDOUT;
	if (err != 0)
		return (err);
	if (h->batch.left == 0)
		return (end_of_flush(h));
	send_batch(h);
	return (0);
}

/* ---- turns */

static void
flush_or_end(struct http2 *h)
{
	bool ending = h->ending;
	int err = http2_flush(h); /* it may free *h at the end, and is 0 then */

	if (err != 0)
		http2_ended(h, err);
	else if (!ending && is_quiet(h))
		h->calls->quiet(h);
}

static void
sent(struct io_op *op)
{
	struct http2 *h = container_of(op, struct http2, send);
	int64_t res = op->res;
	bool held = h->holding;

	h->sending = h->holding = false;
	if (h->conf.send_rate != 0)
		debt_note(&h->debt_ns, io_now(h->io) - h->asked_ns, res, h->conf.send_rate);
	if (res > 0 && !h->skipped)
		took(h, (size_t)res);
	h->skipped = false;
	if (h->stopped)
		http2_ended(h, -ECANCELED);
	else if (res == -ETIMEDOUT && held)
		wait_longer(h);
	else if (res < 0 || (res == 0 && op->kind == IO_SEND))
		http2_ended(h, res < 0 ? (int)res : -EPIPE);
	else
		flush_or_end(h);
}

static void
turn(struct io_op *op)
{
	struct http2 *h = container_of(op, struct http2, soon);

	h->soon_due = false;
	if (h->stopped)
		http2_ended(h, -ECANCELED);
	else if (!h->sending) /* else sent() goes on */
		flush_or_end(h);
}

void
http2_want_turn(struct http2 *h)
{
	if (h->soon_due || h->in_receive || h->sending || h->stopped)
		return;
	h->soon_due = true;
	op_soon(h->io, &h->soon, turn);
}

void
http2_send_init(struct http2 *h)
{
	op_init(&h->send, IO_SEND, sent);
	h->send.sock = h->sock;
}
