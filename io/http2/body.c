/* io/http2/body.c -- the body of a request, on its way to the owner of the stream.
 *
 *   nghttp2 --take()--> in --receive()--> the owner      the window opens as it reads
 */
#include "io/http2/impl.h"

#include <errno.h>
#include <stdio.h>

/* Bytes of a body that nobody wants. */
#define DROP_MAX (256u << 10)
/* Around the bytes of a chunk: its size, three line ends, and the last chunk. */
#define CHUNK_FRAME 32u

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
http2_body_take(struct http2_stream *st, struct text t)
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
	http2_stream_wake(st, SOCK_READABLE);
	return (true);
}

void
http2_body_ended(struct http2_stream *st)
{
	st->ended = true;
	http2_stream_wake(st, SOCK_READABLE);
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

int64_t
http2_body_receive(struct io *io, struct io_sock *s, char *buf, size_t most)
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

bool
http2_body_has_bytes(const struct io_sock *s)
{
	return (waiting(stream_of(s)) != 0 || has_last_chunk(stream_of(s)));
}

void
http2_body_free(struct http2_stream *st)
{
	give_window(st, waiting(st));
	buf_free(&st->in);
	st->in_at = 0;
}
