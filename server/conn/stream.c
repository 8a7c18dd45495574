/* server/conn/stream.c -- a request body that the handler takes while it arrives, and the bytes of
 * a tunnel.
 *
 *   client --> c->in --take()--> handler      nothing is received while the handler has no room
 *
 * This goes on beside the reply, which may be complete first.  Then the rest is dropped: up to
 * SKIP_MAX bytes while the reply is sent and after it (st_rest), to keep the connection.
 */
#include <errno.h>

#include "base/log.h"
#include "server/conn/impl.h"
#include "server/request/request.h"
#include "wire/http1/http1.h"

static void came(struct io_op *);

static const struct body_taker *
taker(const struct conn *c)
{
	return (c->handler->taker);
}

bool
conn_streams(const struct conn *c)
{
	return (c->r->in.left != 0 && taker(c) != NULL && taker(c)->wants(c->r));
}

/* ---- what came */

/* The next run of body bytes, at most room of them. */
static enum parse
next_piece(struct conn *c, size_t room, struct text *piece)
{
	struct request *r = c->r;
	struct text in = { c->in.p, c->in.n < room ? c->in.n : room }, rest = in;
	enum parse s = PARSE_MORE;

	if (r->in.left < 0) {
		s = http1_chunked(&r->in.chunked, &rest, piece);
		r->in.left = s == PARSE_DONE ? 0 : -1;
	} else {
		*piece = text_take(&rest, (size_t)r->in.left);
		r->in.left -= (int64_t)piece->n;
	}
	text_take(&c->in, in.n - rest.n);
	return (s);
}

static void
stream_failed(struct conn *c, int status, const char *why)
{
	struct request *r = c->r;

	count(c->w->base.counts.conn, bad_requests);
	conn_tell_refused(r, status, why);
	r->in.streams = false; /* no more of the body is read */
	c->close_after = true;
	taker(c)->failed(r, status);
}

/* No more bytes come from the client. */
static void
stream_lost(struct conn *c)
{
	if (c->in_err == -ETIMEDOUT) {
		stream_failed(c, 408, "the request body came too slowly");
		return;
	}
	count(c->w->base.counts.conn, client_gone);
	conn_stop(c);
}

static bool
is_too_long(const struct conn *c)
{
	uint64_t max = conn_stream_max(c->r);

	return (!c->tunnel && max != 0 && c->r->in.streamed > max);
}

/* False: the body has failed, or the connection is closing. */
static bool
give(struct conn *c, size_t room)
{
	struct request *r = c->r;
	struct text piece;

	if (next_piece(c, room, &piece) == PARSE_BAD) {
		stream_failed(c, 400, "malformed chunked body");
		return (false);
	}
	r->in.streamed += piece.n;
	r->in.received += piece.n;
	if (room == SIZE_MAX)
		c->dropped += (uint32_t)piece.n;
	if (is_too_long(c)) {
		stream_failed(c, 413, "body longer than server.max-request-size");
		return (false);
	}
	if (piece.n != 0)
		taker(c)->take(r, piece);
	if (r->in.left == 0 && !c->closing)
		taker(c)->end(r);
	return (!c->closing);
}

/* ---- receiving */

static void
receive(struct conn *c)
{
	if (c->receiving)
		return;
	if (c->watching)
		conn_watch_end(c); /* conn_stream_on() goes on */
	else if (!conn_receive(c, c->tunnel ? 0 : conn_body_ms(c), came))
		conn_stop(c);
}

void
conn_stream(struct conn *c)
{
	struct request *r = c->r;
	size_t room;

	if (c->closing)
		return;
	while (r->in.streams && r->in.left != 0) {
		room = taker(c)->room(r);
		if (room == 0 || (room == SIZE_MAX && c->dropped > SKIP_MAX))
			break;
		if (c->in.n == 0 && c->in_err != 0)
			break;
		if (c->in.n == 0) {
			receive(c);
			return;
		}
		if (!give(c, room))
			return;
	}
	if (!conn_settle(c))
		conn_stop(c);
	else
		conn_watch(c);
}

void
conn_stream_on(struct conn *c)
{
	if (c->op_wanted) {
		c->op_wanted = false;
		conn_run(c);
	} else if (c->r != NULL && c->r->in.streams) {
		conn_stream(c);
	}
}

/* The client sends no more, and may still read. */
static void
tunnel_end(struct conn *c)
{
	c->r->in.left = 0;
	taker(c)->end(c->r);
}

static void
came(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, op);

	c->receiving = false;
	if (conn_ended_while_waiting(c))
		return;
	if (c->tunnel && op->res == 0)
		tunnel_end(c);
	else if (op->res != -ECANCELED)
		conn_take_bytes(c, op);
	if (c->in_err != 0 && c->r->in.streams && c->r->in.left != 0 && c->state == &st_handle)
		stream_lost(c);
	else
		conn_stream_on(c);
}

bool
conn_stream_ends(struct conn *c)
{
	if (c->tunnel)
		c->r->in.left = 0;
	return (conn_input_ends(c));
}

/* ---- for handlers */

bool
conn_request_body_room(struct request *r)
{
	if (r->in.streams && r->in.left != 0 && !r->conn->closing)
		conn_stream(r->conn);
	return (!r->conn->closing);
}

void
conn_request_early_reply(struct request *r)
{
	if (r->in.streams && !r->conn->tunnel && r->in.left > SKIP_MAX)
		r->conn->close_after = true;
}

void
conn_request_tunnel(struct request *r)
{
	struct conn *c = r->conn;

	if (r->in.left != 0) {
		conn_bug(c, "a tunnel begins in the middle of a body");
		return;
	}
	c->tunnel = r->in.streams = c->close_after = true;
	r->in.left = INT64_MAX;
	conn_stream(c);
}

void
conn_request_tunnel_half(struct request *r)
{
	io_sock_shutdown(&r->conn->sock);
}
