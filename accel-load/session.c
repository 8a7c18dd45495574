/* accel-load/session.c -- frames of HTTP/2, by libnghttp2.
 *
 *	streams_received() --> libnghttp2 --> on_*() --> stream_*() of streams.c
 *	session_ask() --> libnghttp2 --> streams_put() --> c->out: one write for all that is due
 *
 * libnghttp2 knows a stream by its number; its user data is the place, which may meanwhile have
 * another request.
 */
#include "accel-load/streams_impl.h"
#include "wire/http1/reply.h"

/* The client takes bytes as they come, so no window ever holds the server. */
#define STREAM_WINDOW     (16u << 20)
#define CONNECTION_WINDOW (1u << 30)
#define PUT_MAX           (64u << 10) /* bytes for one write */
#define STATUS_MIN        100
#define STATUS_DIGITS     3

/* NULL: its request has ended. */
static struct stream *
find(nghttp2_session *session, int32_t id)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, id);

	return (s != NULL && s->id == id ? s : NULL);
}

/* ---------------------------------------------------------------- heads */

static int
on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct conn *c = arg;
	struct stream *s = find(session, frame->hd.stream_id);

	c->streams->heads = s != NULL && !s->reading.begun ? s : NULL;
	if (c->streams->heads == NULL)
		return (0); /* trailers */
	s->head = (struct reading_head){ .total = -1 };
	s->length = -1;
	return (0);
}

/* libnghttp2 has checked that it is three digits. */
static int
status_of(struct text v)
{
	uint64_t status;

	return (v.n == STATUS_DIGITS && text_u64(v, &status) == 0 && status >= STATUS_MIN
		    ? (int)status
		    : 0);
}

static void
content_range(struct stream *s, struct text v)
{
	int64_t first = -1, total = -1;

	http1_content_range(v, &first, &total);
	s->head.first = first > 0 ? (uint64_t)first : 0;
	s->head.total = total;
}

static void
content_length(struct stream *s, struct text v)
{
	uint64_t n;

	if (text_u64(v, &n) == 0 && n <= INT64_MAX)
		s->length = (int64_t)n;
}

/* Compares the length of a name first: most fields cost no more than that. */
static int
on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t n,
    const uint8_t *value, size_t length, uint8_t flags, void *arg)
{
	struct stream *s = ((struct conn *)arg)->streams->heads;
	struct text key = { (const char *)name, n }, v = { (const char *)value, length };

	if (s == NULL)
		return (0);
	if (n == sizeof(":status") - 1 && text_eq(key, TEXT(":status")))
		s->head.status = status_of(v);
	else if (n == sizeof("content-length") - 1 && text_eq(key, TEXT("content-length")))
		content_length(s, v);
	else if (n == sizeof("content-range") - 1 && text_eq(key, TEXT("content-range")))
		content_range(s, v);
	return (0);
}

static void
headers_end(struct conn *c)
{
	struct stream *s = c->streams->heads;

	c->streams->heads = NULL;
	if (s == NULL || s->head.status < 200)
		return; /* 100, 103: another head follows */
	if (s->head.status != 206)
		s->head.total = s->length;
	stream_has_head(s);
}

/* ---------------------------------------------------------------- other frames */

static int
on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *arg)
{
	struct stream *s = hd->type == NGHTTP2_DATA ? find(session, hd->stream_id) : NULL;

	if (s != NULL)
		s->coming = hd->length;
	return (0);
}

static int
on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct stream *s;

	switch (frame->hd.type) {
	case NGHTTP2_HEADERS: headers_end(arg); break;
	case NGHTTP2_RST_STREAM:
		if ((s = find(session, frame->hd.stream_id)) != NULL)
			s->reset = true;
		break;
	case NGHTTP2_GOAWAY:
		streams_goaway(arg, frame->goaway.last_stream_id,
		    frame->goaway.error_code != NGHTTP2_NO_ERROR);
		break;
	default: break;
	}
	return (0);
}

static int
on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *arg)
{
	struct stream *s = find(session, id);

	if (s == NULL)
		return (0);
	s->coming -= n;
	if (n > 0)
		stream_brings(s, (const char *)p, n);
	return (0);
}

/* libnghttp2 ends a stream whose body does not have its length, and hands out no byte beyond it. */
static enum load_error
kind_of(const struct stream *s, uint32_t code)
{
	uint64_t length = (uint64_t)s->length;

	if (s->reset)
		return (code == NGHTTP2_REFUSED_STREAM ? LOAD_REFUSED_STREAM : LOAD_STREAM);
	if (!s->reading.begun || s->length < 0)
		return (LOAD_MALFORMED);
	if (s->reading.received + s->coming > length)
		return (LOAD_LONG);
	return (s->reading.received < length ? LOAD_SHORT : LOAD_MALFORMED);
}

static int
on_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
	struct stream *s = find(session, id);

	if (s == NULL)
		return (0);
	if (code == NGHTTP2_NO_ERROR && s->reading.begun && !s->reset)
		stream_answered(s);
	else
		stream_fails(s, kind_of(s, code));
	return (0);
}

void
session_set_callbacks(nghttp2_session_callbacks *cb)
{
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
}

/* ---------------------------------------------------------------- to the server */

bool
session_up(struct conn *c)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
	};
	nghttp2_session **at = &c->streams->session;

	return (nghttp2_session_client_new(at, c->thread->asks->callbacks, c) == 0 &&
		nghttp2_submit_settings(*at, NGHTTP2_FLAG_NONE, settings, NELEM(settings)) == 0 &&
		nghttp2_session_set_local_window_size(*at, NGHTTP2_FLAG_NONE, 0,
		    CONNECTION_WINDOW) == 0);
}

bool
session_ask(struct stream *s)
{
	struct asks *asks = s->conn->thread->asks;
	size_t n = asks_fields(asks, s, stream_url(s));
	int32_t id;

	id = nghttp2_submit_request(s->conn->streams->session, NULL, asks->fields, n, NULL, s);
	if (id < 0)
		return (false);
	s->id = id;
	s->reset = false;
	s->coming = 0;
	s->length = -1;
	return (true);
}

/* Without memory the stream stays, and its bytes are dropped. */
void
session_reset(struct stream *s)
{
	nghttp2_submit_rst_stream(s->conn->streams->session, NGHTTP2_FLAG_NONE, s->id,
	    NGHTTP2_CANCEL);
}

bool
streams_put(struct conn *c)
{
	struct streams *h = c->streams;
	const uint8_t *p;
	ssize_t n = 0;

	if (h->session == NULL || c->closing)
		return (false);
	while (c->out.n < PUT_MAX && (n = nghttp2_session_mem_send(h->session, &p)) > 0)
		buf_add(&c->out, p, (size_t)n);
	if (n < 0 || c->out.failed)
		conn_fail(c, LOAD_CONNECT); /* no memory */
	else if (nghttp2_session_want_read(h->session) == 0 && (h->open > 0 || !h->last))
		conn_fail(c, LOAD_MALFORMED); /* libnghttp2 has said GOAWAY */
	return (!c->closing && c->out.n > 0);
}
