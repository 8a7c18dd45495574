/* Replies of HTTP/2 become those of HTTP/1.1. */
#include "front.h"
#include "wire/http1/http1.h"

#include <stdlib.h>
#include <string.h>

struct exchange *
exchange_new(struct conn *c)
{
	struct exchange *x = g_new0(struct exchange, 1);

	x->conn = c;
	x->length = UINT64_MAX;
	x->body = g_byte_array_new();
	x->trailers = g_string_new(NULL);
	x->fields = g_string_new(NULL);
	x->out = g_string_new(NULL);
	g_queue_push_tail(&c->queue, x);
	g_ptr_array_add(c->all, x);
	return (x);
}

void
exchange_free(struct exchange *x)
{
	if (x->conn->upload == x)
		x->conn->upload = NULL;
	g_byte_array_free(x->body, TRUE);
	g_free(x->accept);
	g_free(x->text);
	g_string_free(x->trailers, TRUE);
	g_string_free(x->fields, TRUE);
	g_string_free(x->out, TRUE);
	g_free(x);
}

static void
free_if_over(struct exchange *x)
{
	if (x->left && x->closed)
		g_ptr_array_remove_fast(x->conn->all, x);
}

void
exchanges_close(struct conn *c)
{
	guint i;

	for (i = c->all->len; i-- > 0;) {
		struct exchange *x = g_ptr_array_index(c->all, i);

		x->broken = x->broken || !x->ended;
		x->closed = true;
		free_if_over(x);
	}
}

void
exchange_leave(struct exchange *x)
{
	x->left = true;
	free_if_over(x);
}

void
reply_refuse(struct exchange *x, int status)
{
	x->ended = x->closed = x->body_end = x->close = true;
	g_string_printf(x->out, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
	    status, http1_reason(status));
}

/* As servers of HTTP/1 write names: tests look for them. */
static void
append_name(GString *out, const char *name)
{
	static const char *const special[] = { "ETag", "WWW-Authenticate" };
	bool first = true;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(special); i++)
		if (g_ascii_strcasecmp(name, special[i]) == 0) {
			g_string_append(out, special[i]);
			return;
		}
	for (; *name != 0; name++) {
		g_string_append_c(out, first ? g_ascii_toupper(*name) : *name);
		first = *name == '-';
	}
}

static int
on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
    const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
	struct exchange *x = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);

	if (x == NULL)
		return (0);
	if (strcmp((const char *)name, ":status") == 0) {
		x->status = atoi((const char *)value);
		return (0);
	}
	if (strcmp((const char *)name, "content-length") == 0)
		x->length = strtoull((const char *)value, NULL, 10);
	append_name(x->fields, (const char *)name);
	g_string_append_printf(x->fields, ": %s\r\n", (const char *)value);
	return (0);
}

static void
append_head(struct exchange *x, const char *framing)
{
	g_string_append_printf(x->out, "HTTP/1.1 %d %s\r\n%s%s\r\n", x->status,
	    http1_reason(x->status), x->fields->str, framing);
	g_string_truncate(x->fields, 0);
}

/* RFC 8441: what is 200 there is 101 here. */
static void
tunnel_head(struct exchange *x)
{
	x->replied = true;
	x->status = 101;
	g_string_append_printf(x->fields,
	    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n", x->accept);
	append_head(x, "");
}

/* The head of a reply that is not an interim one. */
static void
final_head(struct exchange *x, bool end)
{
	GString *more = g_string_new(NULL);

	x->replied = true;
	x->bare = x->head || x->status == 204 || x->status == 304;
	/* The client need not send the body now, so what follows could be one or a request. */
	if (x->expects && !x->body_end)
		x->close = true;
	if (!x->bare && x->length == UINT64_MAX) {
		if (end)
			g_string_append(more, "Content-Length: 0\r\n");
		else if (x->http10)
			x->close = true;
		else
			x->chunked = true;
	}
	if (x->chunked)
		g_string_append(more, "Transfer-Encoding: chunked\r\n");
	if (x->close)
		g_string_append(more, "Connection: close\r\n");
	else if (x->http10)
		g_string_append(more, "Connection: keep-alive\r\n");
	append_head(x, more->str);
	g_string_free(more, TRUE);
}

static void
on_headers(struct exchange *x, bool end)
{
	if (x->replied)
		return; /* trailers: on_end() writes them */
	if (x->tunnel && x->status / 100 == 2)
		tunnel_head(x);
	else if (x->status / 100 != 1)
		final_head(x, end);
	else if (x->http10)
		g_string_truncate(x->fields, 0); /* it does not know them */
	else
		append_head(x, "");
}

static void
on_end(struct exchange *x)
{
	if (x->chunked)
		g_string_append_printf(x->out, "0\r\n%s\r\n", x->fields->str);
	x->ended = true;
}

/* A server that drains says so before it knows which request is the last one; one that ends a
 * connection at once does not (RFC 9113, 6.8). */
static void
on_goaway(struct conn *c, const nghttp2_goaway *said)
{
	c->goaway = true;
	if (said->last_stream_id == INT32_MAX)
		c->moves = true;
	if (said->error_code != NGHTTP2_NO_ERROR)
		c->failed = true;
}

static int
on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	struct conn *c = arg;
	struct exchange *x;

	if (frame->hd.type == NGHTTP2_SETTINGS)
		c->settled = true;
	if (frame->hd.type == NGHTTP2_GOAWAY)
		on_goaway(c, &frame->goaway);
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return (0);
	x = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	if (x == NULL)
		return (0);
	if (frame->hd.type == NGHTTP2_HEADERS)
		on_headers(x, frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		on_end(x);
	return (0);
}

/* The window of the connection opens at once: a reply that waits must not stop the first one. */
static int
on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *bytes, size_t n, void *arg)
{
	struct exchange *x = nghttp2_session_get_stream_user_data(h2, id);

	nghttp2_session_consume_connection(h2, n);
	if (x == NULL)
		return (0);
	x->owed += n;
	if (x->bare)
		return (0);
	if (x->chunked)
		g_string_append_printf(x->out, "%zx\r\n", n);
	g_string_append_len(x->out, (const char *)bytes, n);
	if (x->chunked)
		g_string_append(x->out, "\r\n");
	return (0);
}

static int
on_close(nghttp2_session *h2, int32_t id, uint32_t code, void *arg)
{
	struct exchange *x = nghttp2_session_get_stream_user_data(h2, id);

	if (x == NULL)
		return (0);
	x->closed = true;
	if (!x->ended && !x->replied && code == NGHTTP2_PROTOCOL_ERROR)
		reply_refuse(x, 400); /* as servers of HTTP/1 answer what is malformed */
	else if (!x->ended)
		x->broken = true;
	x->refused = x->broken && (code == NGHTTP2_REFUSED_STREAM || !x->sent) && x->status == 0 &&
		     !x->spent && !x->again;
	free_if_over(x);
	return (0);
}

static int
on_sent(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	struct exchange *x = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);

	if (x != NULL)
		x->sent = true;
	return (0);
}

void
reply_callbacks(nghttp2_session_callbacks *cb)
{
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_sent);
}
