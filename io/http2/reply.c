/* io/http2/reply.c -- the reply of a stream, as HEADERS and DATA.
 *
 *   send(): [head of HTTP/1][body...]    the head is taken at once: HEADERS wait for their turn
 *           parked with the body         read_data() in the stream's turn: how many bytes
 *                                        send_data(): sent from where they lie
 *
 * A send ends when all its bytes went out.  Until then `taken` counts those that did.
 */
#include <errno.h>

#include "io/http2/impl.h"
#include "io/loop/virtual.h"

/* ---- the head */

static nghttp2_nv
nv_of(struct text name, struct text value)
{
	return ((nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name.p,
	    .namelen = name.n,
	    .value = (uint8_t *)(uintptr_t)value.p,
	    .valuelen = value.n });
}

static size_t
put_fields(const struct http2_reply *r, char status[4], nghttp2_nv *nv)
{
	size_t n = 0;
	unsigned i;

	status[0] = (char)('0' + r->status / 100 % 10);
	status[1] = (char)('0' + r->status / 10 % 10);
	status[2] = (char)('0' + r->status % 10);
	nv[n++] = nv_of(TEXT(":status"), (struct text){ status, 3 });
	for (i = 0; i < r->n; i++)
		nv[n++] = nv_of(r->field[i].name, r->field[i].value);
	return (n);
}

static bool
has_no_body(const struct http2_stream *st, const struct http2_reply *r)
{
	return (st->no_body || r->status == 204 || r->status == 304 || r->length == 0);
}

static int
submit_final(struct http2_stream *st, const struct http2_reply *r, const nghttp2_nv *nv, size_t n)
{
	nghttp2_data_provider data = { .source.ptr = st, .read_callback = http2_reply_read_data };
	bool none = has_no_body(st, r);

	st->out = none ? OUT_DONE : OUT_BODY;
	st->left = r->length;
	return (nghttp2_submit_response(st->h2->ng, st->id, nv, n, none ? NULL : &data));
}

/* The client would take any 2xx for its tunnel (RFC 8441 5): the page that came instead is 501. */
static void
refuse_tunnel(struct http2_stream *st, struct http2_reply *r)
{
	st->tunnel = false;
	if (r->status < 300)
		r->status = 501;
}

/* 101 is the 200 of a tunnel; other 1xx come before the reply. */
static int
submit(struct http2_stream *st, struct http2_reply *r)
{
	nghttp2_nv nv[HTTP2_REPLY_FIELDS + 1];
	char status[4];
	size_t n;

	if (r->status == 101 && !st->tunnel)
		return (-EPROTO);
	if (st->tunnel && r->status >= 200)
		refuse_tunnel(st, r);
	if (r->status == 101) {
		r->status = 200;
		r->length = -1;
	}
	n = put_fields(r, status, nv);
	if (r->status < 200)
		return (nghttp2_submit_headers(st->h2->ng, NGHTTP2_FLAG_NONE, st->id, NULL, nv, n,
		    NULL));
	return (submit_final(st, r, nv, n));
}

/* Bytes of the head, which begins at p and has been submitted; 0: it goes on.  -EPROTO. */
static int64_t
take_head(struct http2_stream *st, char *p, size_t n)
{
	struct http2_reply r;
	size_t used;

	switch (http2_reply_read(p, n, &r, &used)) {
	case PARSE_MORE: return (0);
	case PARSE_BAD: return (-EPROTO);
	case PARSE_DONE: break;
	}
	if (submit(st, &r) != 0)
		return (-EPROTO);
	http2_want_turn(st->h2);
	return ((int64_t)used);
}

/* A head of the server is in one piece, which is its own memory: other replies may use the same. */
static int64_t
take_copy(struct http2_stream *st, const char *p, size_t n)
{
	char head[4096];

	n = n < sizeof(head) ? n : sizeof(head);
	memcpy(head, p, n);
	return (take_head(st, head, n));
}

/* Bytes of the piece that belong to the head; it may go on in the next one.  -EPROTO. */
static int64_t
collect_head(struct http2_stream *st, const char *p, size_t n)
{
	size_t had = st->reply.n;
	int64_t k;

	buf_add(&st->reply, p, n);
	if (st->reply.failed || st->reply.n > HTTP2_REPLY_MAX)
		return (-EPROTO);
	k = take_head(st, st->reply.p, st->reply.n);
	if (k == 0)
		return ((int64_t)n);
	buf_free(&st->reply);
	return (k > 0 ? k - (int64_t)had : k);
}

static int64_t
next_head(struct http2_stream *st, const char *p, size_t n)
{
	int64_t k = st->reply.n == 0 ? take_copy(st, p, n) : 0;

	return (k != 0 ? k : collect_head(st, p, n));
}

/* ---- the sends */

struct offer {
	const struct iovec *iov;
	int n;
	size_t at; /* in the first one */
};

/* The pieces after the first k bytes. */
static struct offer
offer_after(const struct iovec *iov, int n, size_t k)
{
	struct offer p = { iov, n, k };

	while (p.n > 0 && p.at >= p.iov->iov_len) {
		p.at -= p.iov->iov_len;
		p.iov++;
		p.n--;
	}
	return (p);
}

/* Heads at the front of what is left: one, or interim ones before it. */
static int
take_heads(struct http2_stream *st, const struct iovec *iov, int n, size_t all)
{
	struct offer p;
	int64_t k;

	while (st->out == OUT_HEAD && st->taken < all) {
		p = offer_after(iov, n, st->taken);
		k = next_head(st, (const char *)p.iov->iov_base + p.at, p.iov->iov_len - p.at);
		if (k <= 0)
			return (-EPROTO);
		st->taken += (size_t)k;
	}
	return (0);
}

static int64_t
report(struct http2_stream *st)
{
	size_t n = st->taken;

	st->taken = 0;
	return (n > 0 ? (int64_t)n : -EAGAIN);
}

/* Bytes that went out before the stream broke are reported first. */
int64_t
http2_reply_broken(struct http2_stream *st)
{
	return (st->taken > 0 ? report(st) : -EPIPE);
}

int64_t
http2_reply_send(struct http2_stream *st, const struct iovec *iov, int n)
{
	size_t all = iov_total(iov, n);

	if (take_heads(st, iov, n, all) != 0) {
		st->taken = 0;
		return (-EPROTO);
	}
	if (st->out == OUT_DONE)
		st->taken = all; /* more than the head has announced */
	if (st->taken == all)
		return (report(st));
	if (http2_stream_is_blocked(st)) {
		st->sock->hints &= (uint8_t)~SOCK_WRITABLE;
		return (report(st));
	}
	http2_stream_resume(st);
	return (-EAGAIN);
}

/* ---- its turn */

static struct io_op *
parked(const struct http2_stream *st)
{
	return (st->sock != NULL ? st->sock->wr : NULL);
}

/* Bytes of the parked send that may go out. */
static size_t
offered(const struct http2_stream *st, const struct io_op *op)
{
	size_t n;

	if (op == NULL || op->kind != IO_SEND || st->broken)
		return (0);
	n = iov_total(op->send.iov, op->send.n) - st->taken;
	return (st->left >= 0 && (uint64_t)st->left < n ? (size_t)st->left : n);
}

/* The library sends them after the DATA that ends here, and copies them. */
static ssize_t
submit_trailers(struct http2_stream *st, uint32_t *flags)
{
	nghttp2_nv nv[HTTP2_REPLY_FIELDS];
	struct http2_reply r;
	unsigned i;

	if (st->trailers.n == 0)
		return (0);
	if (!http2_trailers_read(st->trailers.p, st->trailers.n, &r))
		return (NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE);
	for (i = 0; i < r.n; i++)
		nv[i] = nv_of(r.field[i].name, r.field[i].value);
	if (nghttp2_submit_trailer(st->h2->ng, st->id, nv, r.n) != 0)
		return (NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE);
	*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	return (0);
}

static ssize_t
nothing(struct http2_stream *st, const struct io_op *op, uint32_t *flags)
{
	if (st->eof) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		st->out = OUT_DONE;
		return (submit_trailers(st, flags));
	}
	if (op != NULL && op->kind == IO_WRITABLE)
		io_sock_event(st->h2->io, st->sock, SOCK_WRITABLE);
	st->deferred = true;
	return (NGHTTP2_ERR_DEFERRED);
}

ssize_t
http2_reply_read_data(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t most, uint32_t *flags,
    nghttp2_data_source *source, void *arg)
{
	struct http2_stream *st = source->ptr;
	struct io_op *op = parked(st);
	size_t n = offered(st, op);

	if (!http2_batch_has_room(&st->h2->batch))
		return (NGHTTP2_ERR_PAUSE);
	if (n == 0)
		return (nothing(st, op, flags));
	if (n > most)
		n = most;
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if ((uint64_t)st->left == n)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return ((ssize_t)n);
}

/* The send that is parked ends with what went out. */
static void
complete(struct http2_stream *st, struct io_op *op)
{
	size_t n = st->taken;

	st->taken = 0;
	st->sock->wr = NULL;
	io_complete_first(op, (int64_t)n);
}

static void
copy_out(struct http2_stream *st, const struct io_op *op, size_t n)
{
	struct offer p = offer_after(op->send.iov, op->send.n, st->taken);
	size_t k;

	for (; n > 0; n -= k) {
		k = p.iov->iov_len - p.at < n ? p.iov->iov_len - p.at : n;
		http2_batch_put_in_place(&st->h2->batch, (const char *)p.iov->iov_base + p.at, k);
		st->taken += k;
		p.iov++;
		p.at = 0;
	}
}

/* A client may give each frame back at once, to the stream and to the connection.  A small frame is
 * the application's, unless the window made it small. */
static void
earn_windows(struct http2_stream *st, size_t n, size_t all)
{
	bool small = n < HTTP2_WINDOW_SMALL && n == all;

	http2_limit_earn(st->h2, FLOOD_WINDOWS, small ? 20 : 4);
}

/* Its time begins again: the client takes something. */
static void
go_on_parked(struct http2_stream *st, struct io_op *op, size_t n)
{
	io_arm_again(op);
	if (nghttp2_session_get_stream_remote_window_size(st->h2->ng, st->id) <= (int32_t)n)
		http2_stream_give_back(st); /* this frame has filled the window */
}

int
http2_reply_send_data(nghttp2_session *ng, nghttp2_frame *frame, const uint8_t *head, size_t n,
    nghttp2_data_source *source, void *arg)
{
	struct http2_stream *st = source->ptr;
	struct io_op *op = parked(st);
	struct http2 *h = st->h2;

	earn_windows(st, n, offered(st, op));
	http2_batch_put(&h->batch, head, 9);
	copy_out(st, op, n);
	h->moved_ns = io_now(h->io);
	io_moved(h->io, n, n);
	if (st->left >= 0)
		st->left -= (int64_t)n;
	if (st->left == 0)
		st->out = OUT_DONE;
	if (st->left == 0 || st->taken == iov_total(op->send.iov, op->send.n))
		complete(st, op);
	else
		go_on_parked(st, op, n);
	http2_windows_judge(st, n);
	return (0);
}
