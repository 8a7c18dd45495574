/* io/http2/session.c -- a connection: its life, its sends, the end.
 *
 *   http2_receive()      --> nghttp2 --> callbacks.c --> requests, perhaps with their replies
 *   a stream has bytes   --> http2_want_turn() --> once for all that happen in this round
 *                        --> flush(): a batch of frames, in the turns that nghttp2 gives
 *                        --> IO_SEND --> sent() --> the next batch
 *
 * A batch is what waits for the socket.  Everything else waits for its turn, so that a small reply
 * that is ready overtakes large ones, and nothing of a client that does not read is copied.
 */
#include "io/http2/impl.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rate.h"
#include "wire/http2/reply.h"

/* Bytes of bodies that a client may send before the server has used them. */
#define WINDOW_ALL (1 << 20)
#define TABLE_SIZE 4096u
/* By the estimate of nghttp2, which leaves a reply out if its fields have more. */
#define REPLY_FIELDS_MAX (2 * HTTP2_REPLY_MAX)

static int flush(struct http2 *);

/* ---- the end */

void
http2_fail(struct http2 *h, uint32_t code, const char *why)
{
	if (h->over)
		return;
	h->over = true;
	h->why = why;
	(void)nghttp2_session_terminate_session(h->ng, code);
	http2_want_turn(h);
}

void
http2_check(struct http2 *h, int rc)
{
	if (!nghttp2_is_fatal(rc))
		return;
	h->over = h->lost = true;
	h->why = "no memory";
	http2_want_turn(h);
}

static void
break_streams(struct http2 *h)
{
	struct http2_stream *st;

	list_each(st, &h->streams, link)
		http2_stream_broken(st);
}

static void
ended(struct http2 *h, int err)
{
	h->stopped = true;
	if (err != 0) {
		h->over = true;
		break_streams(h);
	}
	h->calls->ended(h, err); /* may free *h */
}

/* Nothing is left to be sent. */
static bool
is_quiet(const struct http2 *h)
{
	return (!h->sending && !h->soon_due && h->left == 0);
}

/* ---- a batch */

bool
http2_has_room(const struct http2 *h)
{
	return (h->left < h->batch && h->niov < HTTP2_PIECES - 4);
}

static void
add_piece(struct http2 *h, const char *p, size_t n)
{
	struct iovec *last = h->iov + h->niov - 1;

	h->left += n;
	if (h->niov > 0 && (const char *)last->iov_base + last->iov_len == p) {
		last->iov_len += n;
		return;
	}
	must(h->niov < HTTP2_PIECES);
	h->iov[h->niov++] = (struct iovec){ (void *)(uintptr_t)p, n };
}

void
http2_put(struct http2 *h, const void *p, size_t n)
{
	must(h->out != NULL && h->out_n + n <= h->out_size);
	memcpy(h->out + h->out_n, p, n);
	add_piece(h, h->out + h->out_n, n);
	h->out_n += n;
}

void
http2_put_in_place(struct http2 *h, const void *p, size_t n)
{
	if (n < HTTP2_IN_PLACE || h->niov >= HTTP2_PIECES - 2)
		http2_put(h, p, n);
	else
		add_piece(h, p, n);
}

static void
out_free(struct http2 *h)
{
	if (h->out_owned)
		free(h->out);
	else
		io_give_back(h->io, h->out);
	h->out = NULL;
	h->out_owned = false;
	h->out_n = h->left = 0;
	h->niov = 0;
}

static void
skip(struct http2 *h, size_t n)
{
	int i = 0;

	h->left -= n;
	h->bytes_sent += n;
	while (i < h->niov && n >= h->iov[i].iov_len)
		n -= h->iov[i++].iov_len;
	h->niov -= i;
	memmove(h->iov, h->iov + i, (size_t)h->niov * sizeof(*h->iov));
	if (n != 0)
		h->iov[0] = (struct iovec){ (char *)h->iov[0].iov_base + n, h->iov[0].iov_len - n };
}

/* The socket may be full for minutes: what is left moves to memory of its size, and bodies are
 * their owners' again.  False: no memory. */
static bool
keep_rest(struct http2 *h)
{
	size_t n = h->left, at = 0;
	char *p;
	int i;

	if (h->out_owned || n == 0)
		return (true);
	p = malloc(n);
	if (p == NULL)
		return (false);
	for (i = 0; i < h->niov; at += h->iov[i++].iov_len)
		memcpy(p + at, h->iov[i].iov_base, h->iov[i].iov_len);
	out_free(h);
	h->out = p;
	h->out_owned = true;
	h->left = n;
	h->iov[h->niov++] = (struct iovec){ p, n };
	h->send.send.n = h->send.send.first = h->niov;
	return (true);
}

/* 0, or -ENOMEM: the library cannot go on. */
static int
collect(struct http2 *h)
{
	if (h->out_owned)
		out_free(h);
	if (h->lost || (h->out == NULL && (h->out = io_window_get(h->io)) == NULL))
		return (-ENOMEM);
	h->out_size = h->io->window;
	h->out_n = 0;
	if (nghttp2_session_send(h->ng) != 0)
		return (-ENOMEM);
	if (nghttp2_session_get_remote_window_size(h->ng) <= 0)
		http2_streams_stuck(h);
	return (0);
}

/* ---- sending */

static void
submit(struct http2 *h, enum io_kind kind)
{
	h->send.kind = kind;
	h->send.send.iov = h->iov;
	h->send.send.n = h->send.send.first = h->niov;
	h->send.deadline_ms = debt_patience_ms(h->debt_ns, h->conf.send_ms);
	h->asked_ns = io_now(h->io);
	h->sending = true;
	op_submit(h->io, &h->send);
}

/* The socket is full: streams wait, and hold nothing that others need. */
static void
wait_for_room(struct http2 *h)
{
	h->stuck = true;
	h->batch = HTTP2_BATCH_MIN;
	http2_streams_stuck(h);
	submit(h, h->left != 0 ? IO_SEND : IO_WRITABLE);
}

/* What the socket took is known when the call returns, and the rest may not stay where it lies. */
static void
send_batch(struct http2 *h)
{
	struct io_op *op = &h->send;

	submit(h, IO_SEND);
	h->skipped = op->state == OP_READY && op->res > 0;
	if (h->skipped)
		skip(h, (size_t)op->res);
	if (h->left == 0)
		h->batch = 2 * h->batch < HTTP2_BATCH ? 2 * h->batch : HTTP2_BATCH;
	else if (!keep_rest(h) && op->state == OP_READY)
		op->res = -ENOMEM;
	else if (h->left != 0 && !h->out_owned)
		op_cancel(h->io, op);
}

/* The library has told the client that it goes on no more, because of its frames, or for want of
 * memory.  (Without streams it is as ready to end after a GOAWAY of either side.) */
static bool
is_terminated(const struct http2 *h)
{
	return (!h->over && nghttp2_session_want_read(h->ng) == 0 &&
		(h->nstreams != 0 || (h->draining == 0 && !h->leaving)));
}

static int
end_of_flush(struct http2 *h)
{
	out_free(h);
	if (is_terminated(h))
		return (-EPROTO);
	if (h->ending && is_quiet(h))
		ended(h, 0);
	return (0);
}

/* 0, or -errno: the connection cannot go on. */
static int
flush(struct http2 *h)
{
	int err;

	if (h->sending || h->stopped)
		return (0);
	if (h->left != 0 ||
	    ((h->sock->hints & SOCK_WRITABLE) == 0 && nghttp2_session_want_write(h->ng) != 0)) {
		wait_for_room(h);
		return (0);
	}
	if (h->stuck) {
		h->stuck = false;
		http2_streams_unblock(h);
	}
	err = collect(h);
	if (err == 0 && h->late)
		err = -ETIMEDOUT;
	if (err == 0 && h->left != 0)
		send_batch(h);
	else if (err == 0)
		err = end_of_flush(h);
	return (err);
}

static void
flush_or_end(struct http2 *h)
{
	bool ending = h->ending;
	int err = flush(h); /* it may free *h at the end, and is 0 then */

	if (err != 0)
		ended(h, err);
	else if (!ending && is_quiet(h))
		h->calls->quiet(h);
}

static void
sent(struct io_op *op)
{
	struct http2 *h = container_of(op, struct http2, send);
	int64_t res = op->res;

	h->sending = false;
	if (h->conf.send_rate != 0)
		debt_note(&h->debt_ns, io_now(h->io) - h->asked_ns, res, h->conf.send_rate);
	if (res > 0 && !h->skipped)
		skip(h, (size_t)res);
	h->skipped = false;
	if (h->stopped)
		ended(h, -ECANCELED);
	else if (res < 0 || (res == 0 && op->kind == IO_SEND))
		ended(h, res < 0 ? (int)res : -EPIPE);
	else
		flush_or_end(h);
}

static void
turn(struct io_op *op)
{
	struct http2 *h = container_of(op, struct http2, soon);

	h->soon_due = false;
	if (h->stopped)
		ended(h, -ECANCELED);
	else if (h->sending)
		return; /* sent() goes on */
	else
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

/* ---- receiving */

static void
look(struct http2 *h, struct text bytes)
{
	const char *why;

	switch (http2_frames_look(&h->frames, bytes, &why)) {
	case HTTP2_RIGHT: break;
	case HTTP2_WRONG: http2_fail(h, NGHTTP2_PROTOCOL_ERROR, why); break;
	case HTTP2_WRONG_STATE: http2_fail(h, NGHTTP2_STREAM_CLOSED, why); break;
	}
	if (h->frames.unknown != 0)
		(void)http2_limit(h, FLOOD_EMPTY, h->frames.unknown);
	h->frames.unknown = 0;
}

/* What the library does not tell the client itself: a flood, no preface, no memory. */
static void
broken(struct http2 *h, int err)
{
	switch (err) {
	case NGHTTP2_ERR_TOO_MANY_CONTINUATIONS: http2_limit_over(h, FLOOD_HEADS); break;
	case NGHTTP2_ERR_FLOODED: http2_limit_over(h, FLOOD_CONTROL); break;
	case NGHTTP2_ERR_BAD_CLIENT_MAGIC:
		http2_fail(h, NGHTTP2_PROTOCOL_ERROR, nghttp2_strerror(err));
		break;
	default: http2_fail(h, NGHTTP2_INTERNAL_ERROR, nghttp2_strerror(err));
	}
}

static int
no_memory(struct http2 *h)
{
	h->over = true;
	h->why = "no memory";
	return (-ENOMEM);
}

int
http2_receive(struct http2 *h, struct text bytes)
{
	ssize_t n;
	int err;

	if (h->over)
		return (-EPROTO);
	look(h, bytes);
	h->in_receive = true;
	n = nghttp2_session_mem_recv(h->ng, (const uint8_t *)bytes.p, bytes.n);
	h->in_receive = false;
	if (n < 0)
		broken(h, (int)n);
	/* replies to these requests go before the next connection has its turn */
	err = !h->soon_due && !h->ending ? flush(h) : 0;
	if (err == -ETIMEDOUT)
		http2_fail(h, NGHTTP2_ENHANCE_YOUR_CALM, "windows that open too slowly");
	if (err == -ENOMEM || n == NGHTTP2_ERR_NOMEM)
		return (no_memory(h));
	if (is_terminated(h)) {
		h->over = true;
		h->why = "a frame against the rules";
	}
	return (h->over || (h->leaving && h->nstreams == 0) ? -EPROTO : 0);
}

uint64_t
http2_head_since(const struct http2 *h)
{
	return (h->head_ns);
}

size_t
http2_head_bytes(const struct http2 *h)
{
	return (h->head_ns != 0 ? h->head.head.cap + h->head.values.cap + h->head.cookies.cap : 0);
}

bool
http2_is_flood(const struct http2 *h)
{
	return (h->is_flood);
}

const char *
http2_why(const struct http2 *h)
{
	return (h->why);
}

unsigned
http2_streams(const struct http2 *h)
{
	return (h->nstreams);
}

uint64_t
http2_sent(const struct http2 *h)
{
	return (h->bytes_sent);
}

bool
http2_waits(const struct http2 *h)
{
	return (h->stuck || http2_streams_wait(h));
}

bool
http2_is_busy(const struct http2 *h)
{
	return (h->sending || h->soon_due);
}

void *
http2_owner(const struct http2 *h)
{
	return (h->owner);
}

/* ---- no further streams */

void
http2_last_stream(struct http2 *h)
{
	if (h->draining != 1)
		return;
	h->draining = 2;
	http2_check(h,
	    nghttp2_submit_goaway(h->ng, NGHTTP2_FLAG_NONE,
		nghttp2_session_get_last_proc_stream_id(h->ng), NGHTTP2_NO_ERROR, NULL, 0));
	http2_want_turn(h);
}

/* Requests may be on their way: the answer to a PING comes after them (RFC 9113 6.8). */
void
http2_drain(struct http2 *h)
{
	if (h->draining == 1 && io_now(h->io) - h->drain_ns >= HTTP2_DRAIN_MS * NS_PER_MS)
		http2_last_stream(h);
	if (h->draining != 0 || h->over)
		return;
	h->draining = 1;
	h->drain_ns = io_now(h->io);
	http2_check(h, nghttp2_submit_shutdown_notice(h->ng));
	http2_check(h, nghttp2_submit_ping(h->ng, NGHTTP2_FLAG_NONE, NULL));
	http2_want_turn(h);
}

bool
http2_is_draining(const struct http2 *h)
{
	return (h->draining == 1);
}

bool
http2_is_drained(const struct http2 *h)
{
	return (h->draining == 2 && h->nstreams == 0);
}

void
http2_end(struct http2 *h)
{
	h->ending = true;
	if (!h->over)
		http2_fail(h, NGHTTP2_NO_ERROR, NULL);
	h->over = true;
	http2_want_turn(h);
}

/* A client that asks at this moment learns that its request was not taken. */
void
http2_say_end(struct http2 *h)
{
	if (h->over || h->stopped || h->sending || h->in_receive || h->nstreams != 0)
		return;
	(void)nghttp2_session_terminate_session(h->ng, NGHTTP2_NO_ERROR);
	(void)flush(h);
}

void
http2_stop(struct http2 *h)
{
	break_streams(h);
	h->stopped = h->over = true;
	if (h->sending)
		op_cancel(h->io, &h->send);
	if (h->soon_due)
		op_cancel(h->io, &h->soon);
}

/* ---- life */

static int
tell_settings(struct http2 *h)
{
	const nghttp2_settings_entry set[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, h->conf.max_streams },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)h->conf.max_head },
		{ NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1 },
		{ NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
	};

	return (nghttp2_submit_settings(h->ng, NGHTTP2_FLAG_NONE, set, NELEM(set)));
}

static int
open_session(struct http2 *h, nghttp2_session_callbacks *cb)
{
	nghttp2_option *o;
	int rc;

	if (nghttp2_option_new(&o) != 0)
		return (NGHTTP2_ERR_NOMEM);
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_max_deflate_dynamic_table_size(o, TABLE_SIZE);
	nghttp2_option_set_max_send_header_block_length(o, REPLY_FIELDS_MAX);
	nghttp2_option_set_builtin_recv_extension_type(o, NGHTTP2_PRIORITY_UPDATE);
	rc = nghttp2_session_server_new2(&h->ng, cb, h, o);
	nghttp2_option_del(o);
	return (rc);
}

struct http2 *
http2_new(struct io *io, struct io_sock *sock, const struct http2_conf *conf,
    const struct http2_calls *calls, void *owner)
{
	nghttp2_session_callbacks *cb = http2_callbacks();
	struct http2 *h = cb != NULL ? calloc(1, sizeof(*h)) : NULL;

	if (h == NULL)
		return (NULL);
	h->io = io;
	h->sock = sock;
	h->conf = *conf;
	h->calls = calls;
	h->owner = owner;
	h->batch = HTTP2_BATCH;
	http2_frames_init(&h->frames);
	list_init(&h->streams);
	http2_request_init(&h->head, conf->max_head);
	http2_limits_init(h);
	op_init(&h->send, IO_SEND, sent);
	h->send.sock = sock;
	if (open_session(h, cb) != 0 || tell_settings(h) != 0 ||
	    nghttp2_session_set_local_window_size(h->ng, NGHTTP2_FLAG_NONE, 0, WINDOW_ALL) != 0) {
		http2_free(h);
		return (NULL);
	}
	return (h);
}

void
http2_free(struct http2 *h)
{
	struct http2_stream *st;

	if (h == NULL)
		return;
	must(!http2_is_busy(h));
	nghttp2_session_del(h->ng);
	list_each(st, &h->streams, link) {
		must(!st->owned);
		http2_stream_free(st);
	}
	http2_request_free(&h->head);
	if (h->out != NULL)
		out_free(h);
	free(h);
}
