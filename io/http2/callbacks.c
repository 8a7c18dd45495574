/* io/http2/callbacks.c -- what nghttp2 says of the bytes that came, and of those that went. */
#include "io/http2/impl.h"

#include <string.h>

#define HEAD_FAR_TOO_LONG 8u /* times conf.max_head: the work of reading it is for nothing */

static struct text
text_of_bytes(const uint8_t *p, size_t n)
{
	return ((struct text){ (const char *)p, n });
}

static struct http2_stream *
find(nghttp2_session *ng, int32_t id)
{
	return (nghttp2_session_get_stream_user_data(ng, id));
}

/* ---- heads */

static int
on_begin_headers(nghttp2_session *ng, const nghttp2_frame *f, void *arg)
{
	struct http2_stream *st;
	struct http2 *h = arg;

	if (f->hd.type != NGHTTP2_HEADERS)
		return (0);
	h->head_ns = io_now(h->io);
	http2_request_begin(&h->head);
	if (f->headers.cat != NGHTTP2_HCAT_REQUEST)
		return (0); /* trailers: not passed on */
	st = http2_stream_new(h, f->hd.stream_id);
	if (st == NULL)
		return (NGHTTP2_ERR_CALLBACK_FAILURE);
	h->nstreams++;
	count(h->io->counters, http2_streams);
	nghttp2_session_set_stream_user_data(ng, f->hd.stream_id, st);
	return (0);
}

static int
malformed(nghttp2_session *ng, struct http2 *h, int32_t id)
{
	h->head_ns = 0; /* nothing more is heard of this head */
	http2_check(h,
	    nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, id, NGHTTP2_PROTOCOL_ERROR));
	return (NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE);
}

static int
on_header(nghttp2_session *ng, const nghttp2_frame *f, const uint8_t *name, size_t nname,
    const uint8_t *value, size_t nvalue, uint8_t flags, void *arg)
{
	struct text key = text_of_bytes(name, nname);
	struct http2 *h = arg;
	struct http2_stream *st = find(ng, f->hd.stream_id);

	if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST || st == NULL)
		return (0);
	if (http2_request_field(&h->head, key, text_of_bytes(value, nvalue)) != NULL)
		return (malformed(ng, arg, f->hd.stream_id));
	if (h->head.cut > HEAD_FAR_TOO_LONG * h->conf.max_head) {
		http2_limit_over(h, FLOOD_HEADS);
		return (NGHTTP2_ERR_CALLBACK_FAILURE);
	}
	if (nname == 8 && text_eq(key, TEXT("priority")))
		st->prioritised = true;
	return (0);
}

static int
on_invalid_header(nghttp2_session *ng, const nghttp2_frame *f, const uint8_t *name, size_t nname,
    const uint8_t *value, size_t nvalue, uint8_t flags, void *arg)
{
	return (malformed(ng, arg, f->hd.stream_id));
}

static bool
came_early(struct http2 *h, int32_t id)
{
	unsigned i;

	for (i = 0; i < HTTP2_EARLY; i++)
		if (h->early[i] == id)
			return (true);
	return (false);
}

/* Without a word of the client all take turns.  (The default of RFC 9218 is one after the other,
 * and then a large reply holds the small ones that come later.) */
static void
take_turns(nghttp2_session *ng, struct http2 *h, const struct http2_stream *st)
{
	nghttp2_extpri p = { .urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1 };

	if (!st->prioritised && !came_early(h, st->id))
		(void)nghttp2_session_change_extpri_stream_priority(ng, st->id, &p, 0);
}

static int
begin_request(nghttp2_session *ng, struct http2 *h, struct http2_stream *st, bool body)
{
	struct text head;

	if (http2_request_end(&h->head, body, &head) != NULL) {
		http2_stream_reset(st, NGHTTP2_PROTOCOL_ERROR);
		return (0);
	}
	st->tunnel = http2_request_is_tunnel(&h->head);
	st->no_body = http2_request_is_head(&h->head);
	st->chunked = http2_request_is_chunked(&h->head, body);
	st->ended = !body;
	take_turns(ng, h, st);
	http2_limit_earn(h, FLOOD_PRIORITY, 2);
	http2_limit_earn(h, FLOOD_EMPTY, 2);
	if (head.p == NULL || h->over || !h->calls->stream(h, &st->transport, head))
		http2_stream_reset(st, NGHTTP2_REFUSED_STREAM);
	return (0);
}

static int
came_headers(nghttp2_session *ng, struct http2 *h, const nghttp2_frame *f)
{
	struct http2_stream *st = find(ng, f->hd.stream_id);
	bool ends = (f->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

	h->head_ns = 0;
	if (st == NULL)
		return (0);
	if (f->headers.cat == NGHTTP2_HCAT_REQUEST)
		return (begin_request(ng, h, st, !ends));
	if (ends)
		http2_body_ended(st);
	return (0);
}

/* ---- bodies */

static int
on_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *arg)
{
	struct http2_stream *st = find(ng, id);

	if (st == NULL)
		http2_check(arg, nghttp2_session_consume(ng, id, n));
	else if (!http2_body_take(st, text_of_bytes(p, n)))
		http2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
	return (0);
}

static void
came_data(nghttp2_session *ng, struct http2 *h, const nghttp2_frame *f)
{
	struct http2_stream *st = find(ng, f->hd.stream_id);

	if (f->hd.flags & NGHTTP2_FLAG_END_STREAM) {
		if (st != NULL)
			http2_body_ended(st);
	} else if (f->hd.length == f->data.padlen) {
		(void)http2_limit(h, FLOOD_EMPTY, 1);
	}
}

/* ---- the other frames */

static void
came_window(struct http2 *h, const nghttp2_frame *f)
{
	if (f->window_update.window_size_increment < (int32_t)HTTP2_WINDOW_SMALL)
		(void)http2_limit(h, FLOOD_WINDOWS, 10);
	else
		(void)http2_limit(h, FLOOD_WINDOWS, 1);
	http2_streams_unblock(h);
}

static void
came_ping(struct http2 *h, const nghttp2_frame *f)
{
	if ((f->hd.flags & NGHTTP2_FLAG_ACK) == 0)
		(void)http2_limit(h, FLOOD_CONTROL, 1);
	else if (http2_is_draining(h))
		http2_last_stream(h);
	else
		(void)http2_limit(h, FLOOD_EMPTY, 1);
}

static void
came_priority_update(struct http2 *h, const nghttp2_frame *f)
{
	const nghttp2_ext_priority_update *p = f->ext.payload;

	if (http2_limit(h, FLOOD_PRIORITY, 1))
		h->early[h->nearly++ % HTTP2_EARLY] = p->stream_id;
}

static void
came_reset(nghttp2_session *ng, struct http2 *h, const nghttp2_frame *f)
{
	struct http2_stream *st = find(ng, f->hd.stream_id);

	count(h->io->counters, http2_resets);
	if (st != NULL)
		st->reset = true;
	else
		(void)http2_limit(h, FLOOD_EMPTY, 1);
}

static int
on_frame(nghttp2_session *ng, const nghttp2_frame *f, void *arg)
{
	struct http2 *h = arg;

	switch (f->hd.type) {
	case NGHTTP2_HEADERS: return (came_headers(ng, h, f));
	case NGHTTP2_DATA: came_data(ng, h, f); break;
	case NGHTTP2_WINDOW_UPDATE: came_window(h, f); break;
	case NGHTTP2_PING: came_ping(h, f); break;
	case NGHTTP2_PRIORITY_UPDATE: came_priority_update(h, f); break;
	case NGHTTP2_SETTINGS:
		if ((f->hd.flags & NGHTTP2_FLAG_ACK) == 0)
			(void)http2_limit(h, FLOOD_CONTROL, 1);
		http2_streams_unblock(h);
		break;
	case NGHTTP2_GOAWAY: h->leaving = true; break;
	case NGHTTP2_RST_STREAM: came_reset(ng, h, f); break;
	default: break;
	}
	return (0);
}

/* What nghttp2 answers itself, such as a stream too many, is a frame that came, too. */
static int
on_invalid_frame(nghttp2_session *ng, const nghttp2_frame *f, int error, void *arg)
{
	struct http2 *h = arg;

	if (f->hd.type == NGHTTP2_HEADERS)
		h->head_ns = 0;
	(void)http2_limit(h, error == NGHTTP2_ERR_REFUSED_STREAM ? FLOOD_STREAMS : FLOOD_RESETS, 1);
	return (0);
}

static int
on_begin_frame(nghttp2_session *ng, const nghttp2_frame_hd *hd, void *arg)
{
	struct http2 *h = arg;

	if (hd->type == NGHTTP2_CONTINUATION && hd->length == 0)
		(void)http2_limit(h, FLOOD_EMPTY, 1);
	else if (hd->type == NGHTTP2_PRIORITY) /* on_frame() does not see it */
		(void)http2_limit(h, FLOOD_PRIORITY, 1);
	return (0);
}

/* ---- the end of a stream */

/* The client ended it, or made the server end it: not an application that failed. */
static bool
is_clients_doing(const struct http2_stream *st, uint32_t code)
{
	return (st->reset || (code != NGHTTP2_NO_ERROR && code != NGHTTP2_INTERNAL_ERROR &&
				 code != NGHTTP2_REFUSED_STREAM));
}

static int
on_close(nghttp2_session *ng, int32_t id, uint32_t code, void *arg)
{
	struct http2_stream *st = find(ng, id);
	struct http2 *h = arg;

	if (st == NULL)
		return (0);
	nghttp2_session_set_stream_user_data(ng, id, NULL);
	if (is_clients_doing(st, code) && !st->finished)
		(void)http2_limit(h, FLOOD_RESETS, 1);
	http2_stream_closed(st, code);
	return (0);
}

static int
on_sent(nghttp2_session *ng, const nghttp2_frame *f, void *arg)
{
	struct http2_stream *st;

	if ((f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA) ||
	    (f->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
		return (0);
	st = find(ng, f->hd.stream_id);
	if (st != NULL)
		st->finished = true;
	return (0);
}

static ssize_t
on_send(nghttp2_session *ng, const uint8_t *p, size_t n, int flags, void *arg)
{
	struct http2 *h = arg;

	if (!http2_batch_has_room(&h->batch))
		return (NGHTTP2_ERR_WOULDBLOCK);
	http2_batch_put(&h->batch, p, n);
	return ((ssize_t)n);
}

static nghttp2_session_callbacks *made;

/* They are the same for all, and never change. */
static void __attribute__((constructor)) make(void)
{
	if (nghttp2_session_callbacks_new(&made) != 0)
		return;
	nghttp2_session_callbacks_set_on_begin_headers_callback(made, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(made, on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(made, on_invalid_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(made, on_frame);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(made, on_invalid_frame);
	nghttp2_session_callbacks_set_on_begin_frame_callback(made, on_begin_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(made, on_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(made, on_sent);
	nghttp2_session_callbacks_set_send_callback(made, on_send);
	nghttp2_session_callbacks_set_send_data_callback(made, http2_reply_send_data);
}

nghttp2_session_callbacks *
http2_callbacks(void)
{
	return (made);
}
