/* io/http2/session.c -- a connection: its life, what it receives, the end.
 *
 *   http2_receive() --> nghttp2 --> callbacks.c --> requests, perhaps with their replies
 *                   --> http2_flush() of send.c
 */
#include "io/http2/impl.h"

#include <errno.h>
#include <stdlib.h>

/* Bytes of bodies that a client may send before the server has used them. */
#define WINDOW_ALL (1 << 20)
#define TABLE_SIZE 4096u
/* Batches, 0.9 MB in all, that follow a receive at once.  With IO_FOLLOWS, 100 connections with 100
 * streams for 10 kB took 11.8 us a request in place of 5.0: when a reply had its turn, its memory
 * had left the processor's cache. */
#define FOLLOWS 8
/* By the estimate of nghttp2, which leaves a reply out if its fields have more. */
#define REPLY_FIELDS_MAX (2 * HTTP2_REPLY_MAX)

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

void
http2_ended(struct http2 *h, int err)
{
	h->stopped = true;
	if (err != 0) {
		h->over = true;
		break_streams(h);
	}
	h->calls->ended(h, err); /* may free *h */
}

/* The library has told the client that it goes on no more, because of its frames, or for want of
 * memory.  (Without streams it is as ready to end after a GOAWAY of either side.) */
bool
http2_is_terminated(const struct http2 *h)
{
	return (!h->over && nghttp2_session_want_read(h->ng) == 0 &&
		(h->nstreams != 0 || (h->draining == 0 && !h->leaving)));
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
	h->io->follows = FOLLOWS;
	err = !h->soon_due && !h->ending ? http2_flush(h) : 0;
	if (err == -ETIMEDOUT)
		http2_fail(h, NGHTTP2_ENHANCE_YOUR_CALM, "windows that open too slowly");
	if (err == -ENOMEM || n == NGHTTP2_ERR_NOMEM)
		return (no_memory(h));
	if (http2_is_terminated(h)) {
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

bool
http2_is_ending(const struct http2 *h)
{
	return (h->ending);
}

bool
http2_has_ended(const struct http2 *h)
{
	return (h->stopped);
}

/* A client that asks at this moment learns that its request was not taken. */
void
http2_say_end(struct http2 *h)
{
	if (h->over || h->stopped || h->sending || h->in_receive || h->nstreams != 0)
		return;
	(void)nghttp2_session_terminate_session(h->ng, NGHTTP2_NO_ERROR);
	(void)http2_flush(h);
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
	http2_batch_init(&h->batch, sock->transport != NULL ? HTTP2_BATCH_TLS : HTTP2_BATCH);
	http2_frames_init(&h->frames);
	list_init(&h->streams);
	http2_request_init(&h->head, conf->max_head);
	http2_limits_init(h);
	http2_send_init(h);
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
	http2_batch_free(&h->batch, h->io);
	free(h);
}
