/* accel-load/conn.c -- see conn.h */
#include <errno.h>
#include <stdlib.h>
#include "accel-load/conn_impl.h"
#include "accel-load/streams.h"

#define REST_NS (10 * NS_PER_MS) /* after an error: no busy loop against a server that is down */
#define FULL_NS NS_PER_MS        /* the backlog of a unix socket is full */
#define IN_MAX  (128u << 10)     /* an unfinished head, and the bytes of one receive */
#define OUT_MAX (1u << 20)

bool
conn_init(struct conn *c, struct thread *t)
{
	c->thread = t;
	c->asked = calloc(t->conf->pipeline, sizeof(*c->asked));
	io_sock_init(&c->sock, -1);
	list_init(&c->link);
	list_init(&c->due);
	buf_init(&c->in, IN_MAX);
	buf_init(&c->out, OUT_MAX);
	op_init(&c->rd, IO_RECV, conn_received);
	c->rd.sock = &c->sock;
	list_add_tail(&t->idle, &c->link);
	return (c->asked != NULL && (!t->conf->http2 || streams_new(c) != NULL));
}

void
conn_free(struct conn *c)
{
	if (c->answer.protocol != NULL && c->answer.protocol->free != NULL)
		c->answer.protocol->free(&c->answer);
	verify_free(&c->reading.verify);
	streams_free(c->streams);
	buf_free(&c->in);
	buf_free(&c->out);
	free(c->asked);
}

struct request *
conn_asked(struct conn *c, unsigned i)
{
	return (&c->asked[(c->first + i) % c->thread->conf->pipeline]);
}

/* ---------------------------------------------------------------- the end of a connection */

/* Ready for the next request; a closed loop starts it at once. */
void
conn_next(struct conn *c)
{
	struct thread *t = c->thread;

	if (t->stopping)
		return;
	if (t->conf->hold && c->sock.fd >= 0) {
		c->held = true;
		__atomic_store_n(&t->held, t->held + 1, __ATOMIC_RELAXED);
	} else if (t->conf->rate > 0 || t->conf->hold || !thread_may_start(t))
		list_add_tail(&t->idle, &c->link); /* the oldest first: each one has its turn */
	else
		conn_ask(c, t->now);
}

static void
conn_closed(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, wr);

	c->wr_busy = c->closing = c->last = c->reading.begun = false;
	c->in.n = 0;
	if (c->streams != NULL) {
		c->out.n = c->sent = 0;
		streams_down(c);
	}
	io_sock_init(&c->sock, -1);
	if (c->thread->stopping)
		return;
	c->thread->now = clock_mono_ns();
	if (c->rests)
		list_add_tail(&c->thread->resting, &c->link);
	else if (c->n > 0)
		conn_connect(c);
	else
		conn_next(c);
}

void
conn_close_when_idle(struct conn *c)
{
	if (c->rd_busy || c->wr_busy)
		return;
	op_init(&c->wr, IO_CLOSE, conn_closed);
	c->wr.sock = &c->sock;
	c->wr_busy = true;
	op_submit(c->thread->io, &c->wr);
}

static void
unhold(struct conn *c)
{
	if (c->held)
		__atomic_store_n(&c->thread->held, c->thread->held - 1, __ATOMIC_RELAXED);
	c->held = false;
}

void
conn_release(struct conn *c)
{
	if (c->held)
		list_add_tail(&c->thread->idle, &c->link);
	unhold(c);
}

void
conn_hang_up(struct conn *c)
{
	struct thread *t = c->thread;

	unhold(c);
	list_del(&c->link);
	if (c->n == 0)
		list_del(&c->due);
	if (c->closing)
		return;
	c->closing = true;
	if (c->rd_busy)
		op_cancel(t->io, &c->rd);
	if (c->wr_busy)
		op_cancel(t->io, &c->wr);
	conn_close_when_idle(c);
}

void
conn_forget_requests(struct conn *c)
{
	c->thread->outstanding -= c->n;
	c->n = 0;
	c->out.n = c->sent = 0;
}

void
conn_pause(struct conn *c)
{
	c->rests = true;
	c->rest_ns = c->thread->now + REST_NS;
}

static void
fail_requests(struct conn *c, enum load_error kind)
{
	struct thread *t = c->thread;

	if (c->n > 0)
		count_error(t->counts, kind, c->n);
	else
		count_fault(t->counts, kind);
	/* Open loop: a failed request counts with its age. */
	for (unsigned i = 0; t->conf->rate > 0 && i < c->n; i++)
		count_failed_latency(t->counts,
		    clock_between(conn_asked(c, i)->scheduled_ns, t->now));
	conn_forget_requests(c);
}

void
conn_fail(struct conn *c, enum load_error kind)
{
	if (c->streams != NULL)
		streams_fail(c, kind);
	else
		fail_requests(c, kind);
	conn_pause(c);
	conn_hang_up(c);
}

void
conn_rested(struct conn *c)
{
	c->rests = false;
	list_del(&c->link);
	if (c->streams != NULL && c->sock.fd >= 0)
		streams_rested(c);
	else if (c->n > 0)
		conn_connect(c);
	else
		conn_next(c);
}

void
conn_end(struct conn *c)
{
	c->n = 0;
	conn_hang_up(c);
}

/* ---------------------------------------------------------------- connect and send */

static enum load_error
connect_error(struct conn *c, int err)
{
	if (err == ECONNREFUSED)
		return (LOAD_REFUSED);
	if (err == ECONNRESET)
		return (LOAD_RESET);
	if (err == EADDRNOTAVAIL || err == EMFILE || err == ENFILE || err == ENOBUFS)
		__atomic_store_n(&c->thread->trouble, err, __ATOMIC_RELAXED);
	return (LOAD_CONNECT);
}

static void
conn_ready(struct conn *c)
{
	if (c->streams == NULL)
		conn_flush(c);
	else if (!streams_up(c))
		conn_fail(c, LOAD_CONNECT); /* no memory */
	if (!c->closing)
		conn_recv_start(c);
}

/* False: the connection closes. */
static bool
step_ended(struct conn *c)
{
	c->wr_busy = false;
	if (c->closing)
		conn_close_when_idle(c);
	else
		c->thread->now = clock_mono_ns();
	return (!c->closing);
}

static void
conn_shook(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, wr);
	struct thread *t = c->thread;

	if (!step_ended(c))
		return;
	if (op->res == -EPROTO) {
		__atomic_store_n(&t->tls_trouble, op->handshake.why, __ATOMIC_RELAXED);
		conn_fail(c, LOAD_TLS);
	} else if (op->res < 0)
		conn_fail(c, connect_error(c, (int)-op->res));
	else {
		count_handshake(t->counts, op->handshake.resumed,
		    clock_between(c->connect_ns, t->now));
		conn_ready(c);
	}
}

static void
conn_shake(struct conn *c)
{
	struct thread *t = c->thread;

	c->connect_ns = t->now;
	op_init(&c->wr, IO_HANDSHAKE, conn_shook);
	c->wr.sock = &c->sock;
	c->wr.handshake.with = t->secure[c->target->nr];
	c->wr.handshake.choose = NULL;
	c->wr.handshake.early = TEXT_NONE;
	c->wr_busy = true;
	op_submit(t->io, &c->wr);
}

static void
conn_connected(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, wr);
	struct thread *t = c->thread;

	if (!step_ended(c))
		return;
	if (op->res == -EAGAIN) {
		c->rests = true;
		c->rest_ns = t->now + FULL_NS;
		conn_hang_up(c);
	} else if (op->res < 0)
		conn_fail(c, connect_error(c, (int)-op->res));
	else {
		count_connect(t->counts, clock_between(c->connect_ns, t->now));
		if (c->target->host != NULL)
			conn_shake(c);
		else
			conn_ready(c);
	}
}

void
conn_connect(struct conn *c)
{
	struct thread *t = c->thread;

	/* In HTTP/2 all URLs are of one host. */
	c->target = t->run->urls->url[c->streams != NULL ? 0 : conn_asked(c, 0)->url].target;
	c->connect_ns = t->now;
	op_init(&c->wr, IO_CONNECT, conn_connected);
	c->wr.sock = &c->sock;
	c->wr.connect.addr = &c->target->sa;
	c->wr.connect.len = c->target->len;
	c->wr.connect.from = t->run->from;
	c->wr_busy = true;
	op_submit(t->io, &c->wr);
}

static void
conn_sent(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, wr);

	c->wr_busy = false;
	if (c->closing) {
		conn_close_when_idle(c);
		return;
	}
	if (op->res < 0) {
		c->out.n = c->sent = 0; /* the receive tells why, after the bytes that came */
		return;
	}
	c->sent += (size_t)op->res;
	conn_flush(c);
}

void
conn_flush(struct conn *c)
{
	if (c->wr_busy)
		return;
	if (c->sent == c->out.n) {
		c->out.n = c->sent = 0;
		if (c->streams == NULL || !streams_put(c))
			return;
	}
	op_init(&c->wr, IO_SEND, conn_sent);
	c->wr.sock = &c->sock;
	c->iov = (struct iovec){ c->out.p + c->sent, c->out.n - c->sent };
	c->wr.send.iov = &c->iov;
	c->wr.send.n = 1;
	c->wr_busy = true;
	op_submit(c->thread->io, &c->wr);
}

/* ---------------------------------------------------------------- requests */

static void
choose_range(struct thread *t, struct request *r)
{
	const struct load_range *range = &t->conf->range;
	uint64_t size;

	r->offset = r->length = 0;
	if (range->kind == RANGE_FIXED) {
		r->offset = range->first;
		r->length = range->last == UINT64_MAX ? UINT64_MAX : range->last - range->first + 1;
	} else if (range->kind == RANGE_RANDOM) {
		/* The first request tells the size of the file. */
		size = __atomic_load_n(&t->run->urls->url[r->url].size, __ATOMIC_RELAXED);
		r->length = range->bytes;
		if (size > range->bytes)
			r->offset = turn_random(&t->turn) % (size - range->bytes + 1);
	}
}

void
conn_choose(struct thread *t, struct request *r, uint64_t at)
{
	r->url = turn_next(&t->turn, t->conf, t->run->urls->n);
	r->scheduled_ns = at;
	choose_range(t, r);
}

static unsigned
batch(const struct thread *t)
{
	uint64_t left = t->limit != 0 ? t->limit - t->started : UINT64_MAX;

	return (left < t->conf->pipeline ? (unsigned)left : t->conf->pipeline);
}

void
conn_ask(struct conn *c, uint64_t at)
{
	struct thread *t = c->thread;
	struct request *r;
	bool good = true;

	if (c->streams != NULL) {
		streams_ask(c, at);
		return;
	}
	list_del(&c->link);
	c->used = true;
	c->first = 0;
	c->n = batch(t);
	c->heard_ns = t->now;
	c->out.n = c->sent = 0;
	for (unsigned i = 0; i < c->n; i++) {
		r = &c->asked[i];
		conn_choose(t, r, at);
		good &= t->run->protocol->request(t->conf, &t->run->urls->url[r->url], r, &c->out);
	}
	t->started += c->n;
	t->outstanding += c->n;
	count_requests(t->counts, c->n);
	list_add_tail(&t->running, &c->due);
	answer_begin(&c->answer, t->run->protocol, t->conf->head);
	if (!good)
		conn_fail(c, LOAD_CONNECT); /* no memory */
	else if (c->sock.fd < 0)
		conn_connect(c);
	else if (t->run->urls->url[c->asked[0].url].target != c->target)
		conn_hang_up(c); /* then connects to the other host */
	else
		conn_flush(c);
}
