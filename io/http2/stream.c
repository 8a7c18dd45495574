/* io/http2/stream.c -- a stream: the transport of a request's socket.
 *
 *   body.c --receive()--> the owner --send()--> reply.c
 *
 * It ends when both sides have let go of it: the owner by IO_CLOSE, nghttp2 by on_stream_close().
 */
#include "io/http2/impl.h"

#include <errno.h>

#include "io/loop/virtual.h"

static const struct io_transport_calls stream_calls;

struct http2_stream *
http2_stream_new(struct http2 *h, int32_t id)
{
	struct http2_stream *st = blocks_take(&h->io->streams, sizeof(*st));

	if (st == NULL)
		return (NULL);
	st->transport.calls = &stream_calls;
	st->transport.facts = h->sock->transport != NULL ? h->sock->transport->facts : NULL;
	st->h2 = h;
	st->id = id;
	st->left = -1;
	buf_init(&st->in, 0);
	buf_init(&st->reply, 0);
	buf_init(&st->trailers, HTTP2_REPLY_MAX);
	list_init(&st->link);
	list_add_tail(&h->streams, &st->link);
	return (st);
}

void
http2_stream_free(struct http2_stream *st)
{
	list_del(&st->link);
	buf_free(&st->in);
	buf_free(&st->reply);
	buf_free(&st->trailers);
	blocks_give(&st->h2->io->streams, st);
}

void
http2_stream_wake(struct http2_stream *st, uint8_t hints)
{
	if (st->sock != NULL)
		io_sock_event(st->h2->io, st->sock, hints);
}

/* ---- the reply */

bool
http2_stream_is_blocked(const struct http2_stream *st)
{
	const struct http2 *h = st->h2;

	return (h->stuck || nghttp2_session_get_remote_window_size(h->ng) <= 0 ||
		nghttp2_session_get_stream_remote_window_size(h->ng, st->id) <= 0);
}

void
http2_stream_resume(struct http2_stream *st)
{
	if (st->deferred)
		http2_check(st->h2, nghttp2_session_resume_data(st->h2->ng, st->id));
	st->deferred = false;
	http2_want_turn(st->h2);
}

static int64_t
stream_send(struct io_sock *s, const struct iovec *iov, int n, bool more)
{
	struct http2_stream *st = stream_of(s);

	return (st->broken ? http2_reply_broken(st) : http2_reply_send(st, iov, n));
}

bool
http2_trailers(struct io_sock *s, struct text lines)
{
	struct http2_stream *st = stream_of(s);

	buf_text(&st->trailers, lines);
	return (!st->trailers.failed);
}

static bool
sends(const struct io_op *op)
{
	return (op != NULL && (op->kind == IO_SEND || op->kind == IO_WRITABLE));
}

bool
http2_streams_wait(const struct http2 *h)
{
	const struct http2_stream *st;

	list_each(st, &h->streams, link)
		if (st->sock != NULL && ((st->sock->hints & SOCK_WRITABLE) == 0 ||
					    (sends(st->sock->wr) && http2_stream_is_blocked(st))))
			return (true);
	return (false);
}

void
http2_streams_unblock(struct http2 *h)
{
	struct http2_stream *st;

	list_each(st, &h->streams, link)
		if (st->sock != NULL && (st->sock->hints & SOCK_WRITABLE) == 0 &&
		    !http2_stream_is_blocked(st))
			http2_stream_wake(st, SOCK_WRITABLE);
}

/* A send by reference would pin its pages for as long as the client likes. */
void
http2_stream_give_back(struct http2_stream *st)
{
	struct io_op *op = st->sock != NULL ? st->sock->wr : NULL;

	if (op == NULL || op->kind != IO_SEND || !op->pages)
		return;
	st->sock->wr = NULL;
	st->sock->hints &= (uint8_t)~SOCK_WRITABLE;
	io_complete(op, st->taken > 0 ? (int64_t)st->taken : -EAGAIN);
	st->taken = 0;
}

void
http2_streams_stuck(struct http2 *h)
{
	struct http2_stream *st;

	list_each(st, &h->streams, link)
		http2_stream_give_back(st);
}

/* ---- the end */

void
http2_stream_broken(struct http2_stream *st)
{
	if (st->broken)
		return;
	st->broken = true;
	http2_stream_wake(st, SOCK_BROKEN | SOCK_READABLE | SOCK_WRITABLE);
}

void
http2_stream_reset(struct http2_stream *st, uint32_t code)
{
	if (!st->closed)
		http2_check(st->h2,
		    nghttp2_submit_rst_stream(st->h2->ng, NGHTTP2_FLAG_NONE, st->id, code));
	http2_want_turn(st->h2);
}

void
http2_stream_closed(struct http2_stream *st, uint32_t code)
{
	st->closed = true;
	st->h2->nstreams--;
	if (!st->owned)
		http2_stream_free(st);
	else if (code != NGHTTP2_NO_ERROR || st->out != OUT_DONE)
		http2_stream_broken(st);
}

static void
stream_say_end(struct io_sock *s)
{
	struct http2_stream *st = stream_of(s);

	if (st->broken || st->out != OUT_BODY || st->left > 0)
		return;
	st->eof = true;
	http2_stream_resume(st);
}

static void
stream_let_go(struct io_transport *t)
{
	struct http2_stream *st = container_of(t, struct http2_stream, transport);

	st->owned = false;
	st->sock = NULL;
	http2_body_free(st);
	if (st->closed)
		http2_stream_free(st);
	else if (st->out != OUT_DONE && !st->eof)
		http2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
}

static bool
stream_may_move(const struct io_sock *s)
{
	return (false);
}

static void
stream_moved(struct io_sock *s)
{
	struct http2_stream *st = stream_of(s);

	st->sock = s;
	st->owned = true;
}

/* The client has not made it wait: other streams have their turn, or fill the windows. */
static bool
stream_excuses(struct io_op *op)
{
	struct http2_stream *st = stream_of(op->sock);
	nghttp2_session *ng = st->h2->ng;

	if (op->kind == IO_RECV)
		return (nghttp2_session_get_effective_recv_data_length(ng) >=
			nghttp2_session_get_effective_local_window_size(ng));
	if (op->kind != IO_SEND && op->kind != IO_WRITABLE)
		return (false);
	if (st->h2->stuck || !http2_stream_is_blocked(st))
		return (true); /* a full socket has a deadline of its own */
	return (nghttp2_session_get_stream_remote_window_size(ng, st->id) > 0 &&
		st->h2->moved_ns + op->deadline_ms * NS_PER_MS > op->expires_ns);
}

static const struct io_transport_calls stream_calls = {
	.receive = http2_body_receive,
	.send = stream_send,
	.has_bytes = http2_body_has_bytes,
	.say_end = stream_say_end,
	.may_move = stream_may_move,
	.moved = stream_moved,
	.excuses = stream_excuses,
	.free = stream_let_go,
};
