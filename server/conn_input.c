/* server/conn_input.c -- what a client sends: buffers, and request bodies.
 *
 * Input is looked at where it was received: a slice of the loop's lent buffer.  Only what is left over
 * when the connection has to wait is copied (conn_settle()), so a hot request copies nothing and an idle
 * connection owns nothing.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/must.h"
#include "server/conn_impl.h"

#define BODY_RATE 1024 /* bytes a second */

static void received(struct io_op *);

/* ---- receiving */

bool
conn_settle(struct conn *c)
{
	struct buf old = c->own;
	bool is_own = c->own.p != NULL && c->in.p >= c->own.p && c->in.p <= c->own.p + c->own.n;

	if (c->r != NULL && !request_keep(c->r))
		return (false);
	if (c->in.n == 0) {
		buf_free(&c->own);
		c->in = TEXT_NONE;
		return (true);
	}
	if (is_own)
		return (true);
	buf_init(&c->own, 0);
	buf_text(&c->own, c->in);
	buf_free(&old);
	c->in = buf_as_text(&c->own);
	return (!c->own.failed);
}

const struct conn_state *
conn_want_bytes(struct conn *c, uint32_t deadline_ms)
{
	if (!conn_settle(c))
		return (&st_close);
	must(!c->watching);
	c->receiving = true;
	c->in_err = 0;
	c->op.kind = IO_RECV;
	c->op.done = received;
	c->op.sock = &c->sock;
	c->op.deadline_ms = deadline_ms;
	io_submit(c->w->io, &c->op);
	return (WAIT);
}

static void
take_bytes(struct conn *c, struct io_op *op)
{
	c->waited_ns += io_now(c->w->io) - op->at.submit;
	if (op->res > 0)
		c->got_bytes += (uint64_t)op->res;
	if (op->res <= 0) {
		c->in_err = op->res == 0 ? -ECONNRESET : (int)op->res;
	} else if (c->in.n == 0) {
		c->in = (struct text){op->recv.buf, (size_t)op->res};
	} else {
		buf_drop(&c->own, (size_t)(c->in.p - c->own.p));
		buf_add(&c->own, op->recv.buf, (size_t)op->res);
		c->in = buf_as_text(&c->own);
		c->in_err = c->own.failed ? -ENOMEM : 0;
	}
}

static void
received(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, op);
	void (*got)(struct request *, int) = c->got;

	c->receiving = false;
	c->got = NULL;
	if (conn_ended_while_waiting(c))
		return;
	take_bytes(c, op);
	if (got == NULL) {
		conn_run(c);
		return;
	}
	got(c->r, c->in_err);
	/* The handler took what it could; the rest must outlive the lent buffer. */
	if (!c->closing && c->r != NULL && c->in.n != 0 && !conn_settle(c))
		conn_stop(c);
}

/* A client may pause for server.max-read-idle, but not after every byte: a body that keeps us waiting has to
 * come at BODY_RATE in the long run. */
static uint32_t
body_ms(const struct conn *c)
{
	uint64_t idle = 1000 * c->r->conf->read_idle, limit = idle + c->got_bytes * 1000 / BODY_RATE;
	uint64_t spent = c->waited_ns / NS_PER_MS;

	if (spent >= limit)
		return (1); /* over: the next receive ends at once */
	return ((uint32_t)(limit - spent < idle ? limit - spent : idle));
}

/* ---- bodies that are not streamed */

/* Takes body bytes from the input; true when the body is complete.  *bad: it is malformed. */
static bool
eat_body(struct conn *c, struct buf *into, bool *bad)
{
	struct request *r = c->r;
	struct text data;
	size_t n;

	*bad = false;
	if (r->body_left >= 0) {
		n = c->in.n < (uint64_t)r->body_left ? c->in.n : (size_t)r->body_left;
		c->in.p += n;
		c->in.n -= n;
		r->body_left -= (int64_t)n;
		return (r->body_left == 0);
	}
	for (;;) {
		size_t before = c->in.n;

		switch (http1_chunked(&r->chunked, &c->in, &data)) {
		case PARSE_DONE:
			if (into != NULL)
				buf_text(into, data);
			return (true);
		case PARSE_BAD:
			*bad = true;
			return (false);
		case PARSE_MORE:
			break;
		}
		if (into != NULL)
			buf_text(into, data);
		c->dropped += (uint32_t)data.n;
		if (c->in.n == 0 || (c->in.n == before && data.n == 0))
			return (false);
	}
}

static const struct conn_state *
body_failed(struct conn *c, int status, const char *why)
{
	c->dropped = 0;
	return (conn_refuse(c, status, why));
}

const struct conn_state *
conn_skip_body(struct conn *c)
{
	struct request *r = c->r;
	bool bad;

	if (r->http.expect_continue || r->body_left > SKIP_MAX || c->dropped > SKIP_MAX) {
		/* The final answer instead of 100; what comes after it is not read as a request. */
		c->close_after = true;
		c->dropped = 0;
		return (&st_handle);
	}
	if (c->in_err != 0)
		return (c->in_err == -ETIMEDOUT ? body_failed(c, 408, "no request body came") : &st_close);
	if (eat_body(c, NULL, &bad)) {
		c->dropped = 0;
		r->body_left = 0;
		return (&st_handle);
	}
	if (bad)
		return (body_failed(c, 400, "malformed chunked body"));
	return (conn_want_bytes(c, body_ms(c)));
}

const struct conn_state *
conn_upload(struct conn *c)
{
	struct request *r = c->r;
	uint64_t max = r->conf->max_request_kb != 0 ? r->conf->max_request_kb << 10 : UPLOAD_MAX;
	bool bad;

	if (c->in_err != 0)
		return (c->in_err == -ETIMEDOUT ? body_failed(c, 408, "no request body came") : &st_close);
	if (r->upload.max == 0)
		buf_init(&r->upload, max);
	if (eat_body(c, &r->upload, &bad)) {
		c->dropped = 0;
		r->body_left = 0;
		if (r->upload.failed)
			return (body_failed(c, 413, "chunked body longer than server.max-request-size"));
		return (&st_handle);
	}
	if (bad)
		return (body_failed(c, 400, "malformed chunked body"));
	if (r->upload.failed)
		return (body_failed(c, 413, "chunked body longer than server.max-request-size"));
	return (conn_want_bytes(c, body_ms(c)));
}

/* ---- for handlers that stream them */

struct text
conn_input(struct request *r)
{
	struct conn *c = r->conn;
	struct text t = c->in;

	if (r->body_left >= 0 && t.n > (uint64_t)r->body_left)
		t.n = (size_t)r->body_left;
	return (t);
}

void
conn_input_taken(struct request *r, size_t n)
{
	struct conn *c = r->conn;

	must(n <= c->in.n && (int64_t)n <= r->body_left);
	c->in.p += n;
	c->in.n -= n;
	r->body_left -= (int64_t)n;
}

void
conn_want_input(struct request *r, void (*got)(struct request *, int err))
{
	struct conn *c = r->conn;

	must(!c->receiving && c->in.n == 0);
	c->got = got;
	if (conn_want_bytes(c, body_ms(c)) != WAIT)
		conn_stop(c);
}

bool
conn_wants_input(const struct request *r)
{
	return (r->conn->receiving);
}

void
conn_stop_input(struct request *r)
{
	if (r->conn->receiving)
		io_cancel(r->conn->w->io, &r->conn->op);
}

/* ---- clients that go while they wait */

static void
reset(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, op);

	c->watching = false;
	if (conn_ended_while_waiting(c) || op->res != 0)
		return;
	count(&c->w->tally->counters, client_gone);
	conn_stop(c);
}

/* Half a close is none: such a client may still read. */
void
conn_watch(struct conn *c)
{
	if (conn_in_flight(c) || c->closing || c->r->body_left != 0)
		return;
	c->watching = true;
	c->op.kind = IO_HANGUP;
	c->op.done = reset;
	c->op.sock = &c->sock;
	c->op.deadline_ms = 0;
	io_submit(c->w->io, &c->op);
}

void
conn_watch_end(struct conn *c)
{
	if (c->watching)
		io_cancel(c->w->io, &c->op);
}
