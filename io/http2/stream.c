/* io/http2/stream.c -- a stream: the transport of a request's socket.
 *
 *   nghttp2 --http2_stream_take()--> in --receive()--> the owner      the window opens as it reads
 *   the owner --send()--> reply.c
 *
 * It ends when both sides have let go of it: the owner by IO_CLOSE, nghttp2 by on_stream_close().
 */
#include "io/http2/impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/loop/virtual.h"

/* Bytes of a body that nobody wants. */
#define DROP_MAX (256u << 10)
/* Around the bytes of a chunk: its size, three line ends, and the last chunk. */
#define CHUNK_FRAME 32u

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
	blocks_give(&st->h2->io->streams, st);
}

static void
wake(struct http2_stream *st, uint8_t hints)
{
	if (st->sock != NULL)
		io_sock_event(st->h2->io, st->sock, hints);
}

/* ---- the client's bytes */

/* The reply is complete, and nobody wants the rest of the request's body: RFC 9113 8.1.  A reset at
 * once makes some clients, curl 7.88 among them, forget the reply that they have not read yet. */
static void
drop(struct http2_stream *st, size_t n)
{
	st->dropped += n;
	if (st->dropped > DROP_MAX)
		http2_stream_reset(st, NGHTTP2_NO_ERROR);
	else
		http2_check(st->h2, nghttp2_session_consume(st->h2->ng, st->id, n));
}

bool
http2_stream_take(struct http2_stream *st, struct text t)
{
	if (!st->owned) {
		drop(st, t.n);
		return (true);
	}
	if (st->in_at >= st->in.n / 2) { /* else a slow reader's body would never be short */
		buf_drop(&st->in, st->in_at);
		st->in_at = 0;
	}
	buf_text(&st->in, t);
	if (st->in.failed) {
		http2_check(st->h2, nghttp2_session_consume(st->h2->ng, st->id, t.n));
		return (false);
	}
	wake(st, SOCK_READABLE);
	return (true);
}

void
http2_stream_ended(struct http2_stream *st)
{
	st->ended = true;
	wake(st, SOCK_READABLE);
}

static size_t
waiting(const struct http2_stream *st)
{
	return (st->in.n - st->in_at);
}

static bool
has_last_chunk(const struct http2_stream *st)
{
	return (st->chunked && st->ended && !st->last_chunk);
}

static void
give_window(struct http2_stream *st, size_t n)
{
	if (n == 0)
		return;
	if (st->closed)
		http2_check(st->h2, nghttp2_session_consume_connection(st->h2->ng, n));
	else
		http2_check(st->h2, nghttp2_session_consume(st->h2->ng, st->id, n));
	http2_want_turn(st->h2);
}

/* n bytes of what waits: as much of the windows is free again. */
static void
take_out(struct http2_stream *st, char *to, size_t n)
{
	if (n != 0)
		memcpy(to, st->in.p + st->in_at, n);
	st->in_at += n;
	if (waiting(st) == 0) {
		buf_free(&st->in);
		st->in_at = 0;
	}
	give_window(st, n);
}

/* Chunks are made when they are read: one for each frame that came could be six times as long as
 * the window. */
static size_t
take_chunk(struct http2_stream *st, char *to, size_t most)
{
	size_t n = waiting(st) < most - CHUNK_FRAME ? waiting(st) : most - CHUNK_FRAME, k = 0;

	if (n != 0) {
		k = (size_t)snprintf(to, CHUNK_FRAME, "%zx\r\n", n);
		take_out(st, to + k, n);
		k += n;
		memcpy(to + k, "\r\n", 2);
		k += 2;
	}
	if (waiting(st) == 0 && has_last_chunk(st)) {
		memcpy(to + k, "0\r\n\r\n", 5);
		k += 5;
		st->last_chunk = true;
	}
	return (k);
}

static size_t
take_some(struct http2_stream *st, char *to, size_t most)
{
	size_t n = waiting(st) < most ? waiting(st) : most;

	if (st->chunked)
		return (take_chunk(st, to, most));
	take_out(st, to, n);
	return (n);
}

static int64_t
stream_receive(struct io *io, struct io_sock *s, char *buf, size_t most)
{
	struct http2_stream *st = stream_of(s);

	if (waiting(st) != 0 || has_last_chunk(st))
		return ((int64_t)take_some(st, buf, most));
	if (st->broken)
		return (-ECONNRESET);
	if (st->tunnel && st->ended)
		return (0);
	s->hints &= (uint8_t)~SOCK_READABLE;
	return (-EAGAIN);
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
			wake(st, SOCK_WRITABLE);
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
	wake(st, SOCK_BROKEN | SOCK_READABLE | SOCK_WRITABLE);
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
	give_window(st, waiting(st));
	if (st->closed) {
		http2_stream_free(st);
		return;
	}
	buf_free(&st->in);
	st->in_at = 0;
	if (st->out != OUT_DONE && !st->eof)
		http2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
}

static bool
stream_has_bytes(const struct io_sock *s)
{
	return (waiting(stream_of(s)) != 0 || has_last_chunk(stream_of(s)));
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
	.receive = stream_receive,
	.send = stream_send,
	.has_bytes = stream_has_bytes,
	.say_end = stream_say_end,
	.may_move = stream_may_move,
	.moved = stream_moved,
	.excuses = stream_excuses,
	.free = stream_let_go,
};
