/* accel-load/conn.c -- see conn.h */
#include <errno.h>
#include <stdlib.h>
#include "accel-load/conn.h"

#define REST_NS (10 * NS_PER_MS) /* after an error: no busy loop against a server that is down */
#define FULL_NS NS_PER_MS        /* the backlog of a unix socket is full */
#define IN_MAX  (128u << 10)     /* an unfinished head, and the bytes of one receive */
#define OUT_MAX (1u << 20)

static void recv_start(struct conn *);
static void conn_send(struct conn *);
static void conn_receive(struct io_op *);

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
	op_init(&c->rd, IO_RECV, conn_receive);
	c->rd.sock = &c->sock;
	list_add_tail(&t->idle, &c->link);
	return (c->asked != NULL);
}

void
conn_free(struct conn *c)
{
	if (c->answer.protocol != NULL && c->answer.protocol->free != NULL)
		c->answer.protocol->free(&c->answer);
	verify_free(&c->verify);
	buf_free(&c->in);
	buf_free(&c->out);
	free(c->asked);
}

static struct request *
asked_at(struct conn *c, unsigned i)
{
	return (&c->asked[(c->first + i) % c->thread->conf->pipeline]);
}

/* ---------------------------------------------------------------- the end of a connection */

/* Ready for the next request, in the closed loop with it. */
static void
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

static void conn_connect(struct conn *);

static void
conn_closed(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, wr);

	c->wr_busy = c->closing = c->last = c->begun = false;
	c->in.n = 0;
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

static void
close_when_idle(struct conn *c)
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

static void
conn_close(struct conn *c)
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
	close_when_idle(c);
}

static void
forget_requests(struct conn *c)
{
	c->thread->outstanding -= c->n;
	c->n = 0;
	c->out.n = c->sent = 0;
}

void
conn_fail(struct conn *c, enum load_error kind)
{
	struct thread *t = c->thread;

	if (c->n > 0)
		count_error(t->counts, kind, c->n);
	else
		count_fault(t->counts, kind);
	/* Open loop: a failed request counts with its age. */
	for (unsigned i = 0; t->conf->rate > 0 && i < c->n; i++)
		count_failed_latency(t->counts,
		    clock_between(asked_at(c, i)->scheduled_ns, t->now));
	forget_requests(c);
	c->rests = true;
	c->rest_ns = t->now + REST_NS;
	conn_close(c);
}

void
conn_rested(struct conn *c)
{
	c->rests = false;
	list_del(&c->link);
	if (c->n > 0)
		conn_connect(c);
	else
		conn_next(c);
}

void
conn_end(struct conn *c)
{
	c->n = 0;
	conn_close(c);
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
conn_connected(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, wr);
	struct thread *t = c->thread;

	c->wr_busy = false;
	if (c->closing) {
		close_when_idle(c);
		return;
	}
	t->now = clock_mono_ns();
	if (op->res == -EAGAIN) {
		c->rests = true;
		c->rest_ns = t->now + FULL_NS;
		conn_close(c);
	} else if (op->res < 0)
		conn_fail(c, connect_error(c, (int)-op->res));
	else {
		count_connect(t->counts, clock_between(c->connect_ns, t->now));
		conn_send(c);
		recv_start(c);
	}
}

static void
conn_connect(struct conn *c)
{
	struct thread *t = c->thread;

	c->target = t->run->urls->url[asked_at(c, 0)->url].target;
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
		close_when_idle(c);
		return;
	}
	if (op->res < 0) {
		c->out.n = c->sent = 0; /* the receive tells why, after the bytes that came */
		return;
	}
	c->sent += (size_t)op->res;
	conn_send(c);
}

static void
conn_send(struct conn *c)
{
	if (c->sent == c->out.n) {
		c->out.n = c->sent = 0;
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

	list_del(&c->link);
	c->first = 0;
	c->n = batch(t);
	c->heard_ns = t->now;
	c->out.n = c->sent = 0;
	for (unsigned i = 0; i < c->n; i++) {
		r = &c->asked[i];
		r->url = turn_next(&t->turn, t->conf, t->run->urls->n);
		r->scheduled_ns = at;
		choose_range(t, r);
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
		conn_close(c); /* then connects to the other host */
	else
		conn_send(c);
}

/* ---------------------------------------------------------------- answers */

/* The server closes; requests behind this answer are asked again. */
static void
await_end(struct conn *c)
{
	struct thread *t = c->thread;

	if (c->n > 0) {
		count_withdrawn(t->counts, c->n);
		t->started -= c->n;
		forget_requests(c);
	}
	list_del(&c->due);
	c->end_ns = t->now + t->conf->timeout_ns;
	list_add_tail(&t->ending, &c->due);
}

static bool
status_is_right(const struct conn *c, const struct url *u)
{
	unsigned want = u->status != 0 ? u->status : c->thread->conf->status;

	return (want != 0 ? c->answer.status == (int)want : c->answer.status / 100 == 2);
}

/* A part begins where it was asked for; --expect: the field is the path. */
static bool
head_is_right(const struct conn *c, const struct request *r, const struct url *u)
{
	const char *name = c->thread->conf->expect;
	const struct answer *a = &c->answer;

	if (a->status == 206 && (r->length == 0 || a->first != r->offset))
		return (false);
	return (name == NULL || a->status != 200 ||
		text_eq(a->protocol->field(a, text_of(name)), text_of(u->path)));
}

static void
answer_head(struct conn *c)
{
	struct thread *t = c->thread;
	const struct load_conf *conf = t->conf;
	struct answer *a = &c->answer;
	struct request *r = asked_at(c, 0);
	struct url *u = &t->run->urls->url[r->url];

	c->begun = true;
	c->received = 0;
	c->abort_at = NEVER;
	c->last |= !a->keep || conf->close;
	c->status_ok = status_is_right(c, u);
	c->beyond = false;
	c->head_ok = head_is_right(c, r, u);
	if (a->total > 0 && c->status_ok && conf->range.kind == RANGE_RANDOM)
		__atomic_store_n(&u->size, (uint64_t)a->total, __ATOMIC_RELAXED);
	if (conf->checks != NULL && c->status_ok)
		verify_begin(&c->verify, conf->checks, u, a->first, a->total);
	if (conf->abort_percent > 0 &&
	    (double)(turn_random(&t->turn) % 10000) < conf->abort_percent * 100)
		c->abort_at = a->total > 0 ? turn_random(&t->turn) % (uint64_t)a->total : 0;
}

static void
answer_body(struct conn *c, const char *p, size_t n)
{
	struct thread *t = c->thread;

	if (c->received == 0)
		count_first_byte(t->counts, clock_between(asked_at(c, 0)->scheduled_ns, t->now));
	c->received += n;
	count_body(t->counts, n);
	if (t->conf->checks != NULL && c->status_ok)
		verify_bytes(&c->verify, p, n);
}

static void
answer_end(struct conn *c, bool too_long)
{
	struct thread *t = c->thread;
	enum load_error how = LOAD_OK;

	if (!c->status_ok)
		how = LOAD_STATUS;
	else if (too_long)
		how = LOAD_LONG;
	else if (!c->head_ok)
		how = LOAD_WRONG;
	else if (t->conf->checks != NULL)
		how = verify_end(&c->verify);
	c->last |= !c->answer.keep;
	count_answer(t->counts, c->answer.status, how,
	    clock_between(asked_at(c, 0)->scheduled_ns, t->now));
	c->answers++;
	t->outstanding--;
	c->first = (c->first + 1) % t->conf->pipeline;
	c->n--;
	c->begun = false;
	answer_begin(&c->answer, t->run->protocol, t->conf->head);
}

static bool
aborts(struct conn *c)
{
	if (!c->begun || c->received < c->abort_at)
		return (false);
	count_aborted(c->thread->counts, c->n);
	forget_requests(c);
	conn_close(c);
	return (true);
}

/* Works through received bytes.  False: the connection is being closed. */
static bool
take_answers(struct conn *c, struct text *in)
{
	struct text body;
	bool too_long;

	while (c->n > 0) {
		switch (c->answer.protocol->take(&c->answer, in, &body)) {
		case ANSWER_MORE: return (true);
		case ANSWER_BAD: conn_fail(c, LOAD_MALFORMED); return (false);
		case ANSWER_HEAD: answer_head(c); break;
		case ANSWER_BODY: answer_body(c, body.p, body.n); break;
		case ANSWER_END:
			too_long = c->n == 1 && (in->n > 0 || c->beyond);
			answer_end(c, too_long);
			if (too_long)
				conn_close(c);
			if (too_long)
				return (false);
			if (c->last && c->n > 0)
				await_end(c);
			break;
		}
		if (aborts(c))
			return (false);
	}
	if (in->n == 0)
		return (true);
	conn_fail(c, LOAD_LONG); /* bytes that no request asked for */
	return (false);
}

/* All requests are answered: more of them, or the end of the connection. */
static void
settle(struct conn *c)
{
	if (c->n > 0)
		return;
	if (c->last) {
		await_end(c);
		return;
	}
	list_del(&c->due);
	conn_next(c);
}

/* ---------------------------------------------------------------- receive */

/* Bytes of the body that the kernel may drop; 0: none. */
static uint64_t
droppable(const struct conn *c)
{
	const struct load_conf *conf = c->thread->conf;
	uint64_t n = c->answer.drop;

	if (!c->begun || c->in.n > 0 || c->target->sa.sa_family == AF_UNIX ||
	    (conf->checks != NULL && verify_wants_bytes(conf->checks)))
		return (0);
	if (c->abort_at != NEVER && n > c->abort_at - c->received)
		n = c->abort_at - c->received;
	return (n);
}

static void
recv_start(struct conn *c)
{
	uint64_t drop = droppable(c);

	c->rd.drops = drop > 0;
	/* One byte more: it shows that the body is too long. */
	c->rd.recv.drop = drop + (c->thread->conf->pipeline == 1);
	/* Of a long body little is copied before the kernel drops the rest. */
	c->rd.little =
	    c->thread->conf->pipeline == 1 &&
	    (c->thread->conf->checks == NULL || !verify_wants_bytes(c->thread->conf->checks));
	c->rd_busy = true;
	op_submit(c->thread->io, &c->rd);
}

/* The bytes follow those that are kept. */
static bool
take_kept(struct conn *c, const char *p, size_t n)
{
	struct text in;
	bool open;

	buf_add(&c->in, p, n);
	if (c->in.failed) {
		buf_free(&c->in);
		conn_fail(c, LOAD_MALFORMED);
		return (false);
	}
	in = buf_as_text(&c->in);
	open = take_answers(c, &in);
	if (open)
		buf_drop(&c->in, c->in.n - in.n);
	return (open);
}

static bool
take_bytes(struct conn *c, const char *p, size_t n)
{
	struct text in = { p, n };

	if (c->in.n > 0)
		return (take_kept(c, p, n));
	if (!take_answers(c, &in))
		return (false);
	buf_add(&c->in, in.p, in.n);
	return (true);
}

static bool
take_dropped(struct conn *c, size_t n)
{
	struct text none = { "", 0 };
	size_t own = n < c->answer.drop ? n : (size_t)c->answer.drop;

	c->beyond = n > own;
	c->answer.protocol->dropped(&c->answer, own);
	answer_body(c, NULL, own);
	return (!aborts(c) && take_answers(c, &none));
}

/* The server closed. */
static void
conn_eof(struct conn *c)
{
	if (c->begun && c->answer.protocol->eof(&c->answer) == ANSWER_END) {
		answer_end(c, false);
		if (c->n > 0)
			await_end(c);
	}
	if (c->n == 0)
		conn_close(c); /* announced, or idle for too long */
	else
		conn_fail(c, c->begun || c->in.n > 0 ? LOAD_SHORT : LOAD_RESET);
}

/* The order of running connections is that of their deadlines. */
static void
conn_heard(struct conn *c)
{
	struct thread *t = c->thread;

	if (!t->conf->silence || c->n == 0)
		return;
	c->heard_ns = t->now;
	list_del(&c->due);
	list_add_tail(&t->running, &c->due);
}

static void
conn_receive(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, rd);
	bool open = true;

	c->rd_busy = false;
	if (c->closing) {
		close_when_idle(c);
		return;
	}
	c->thread->now = clock_mono_ns();
	if (op->res == 0)
		conn_eof(c);
	else if (op->res < 0 && c->n == 0)
		conn_close(c);
	else if (op->res < 0)
		conn_fail(c, op->res == -ETIMEDOUT ? LOAD_TIMEOUT : LOAD_RESET);
	else {
		conn_heard(c);
		open = op->buf == NULL ? take_dropped(c, (size_t)op->res)
				       : take_bytes(c, op->buf, (size_t)op->res);
		if (open)
			settle(c);
	}
	if (!c->closing)
		recv_start(c);
}
