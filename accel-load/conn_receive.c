/* accel-load/conn_receive.c -- what comes on a connection: bytes, answers, its end. */
#include <errno.h>
#include "accel-load/conn_impl.h"
#include "accel-load/streams.h"

/* ---------------------------------------------------------------- answers */

/* The server closes; requests after this answer are asked again. */
static void
await_end(struct conn *c)
{
	struct thread *t = c->thread;

	if (c->n > 0) {
		count_withdrawn(t->counts, c->n);
		t->started -= c->n;
		conn_forget_requests(c);
	}
	list_del(&c->due);
	c->end_ns = t->now + t->conf->timeout_ns;
	list_add_tail(&t->ending, &c->due);
}

/* With --expect: the field has the path as its value. */
static bool
field_is_right(const struct conn *c, const struct url *u)
{
	const char *name = c->thread->conf->expect;
	const struct answer *a = &c->answer;

	return (name == NULL || a->status != 200 ||
		text_eq(a->protocol->field(a, text_of(name)), text_of(u->path)));
}

static void
answer_head(struct conn *c)
{
	struct thread *t = c->thread;
	const struct answer *a = &c->answer;
	struct request *r = conn_asked(c, 0);
	struct url *u = &t->run->urls->url[r->url];

	c->last |= !a->keep || t->conf->close;
	c->beyond = false;
	reading_begin(&c->reading, t, r, u,
	    &(struct reading_head){ a->status, a->first, a->total });
	c->reading.head_ok &= field_is_right(c, u);
}

static void
answer_body(struct conn *c, const char *p, size_t n)
{
	reading_body(&c->reading, c->thread, conn_asked(c, 0), p, n);
}

static void
answer_end(struct conn *c, bool too_long)
{
	struct thread *t = c->thread;

	c->last |= !c->answer.keep;
	reading_end(&c->reading, t, conn_asked(c, 0), too_long);
	c->answers++;
	t->outstanding--;
	c->first = (c->first + 1) % t->conf->pipeline;
	c->n--;
	answer_begin(&c->answer, t->run->protocol, t->conf->head);
}

static bool
aborts(struct conn *c)
{
	if (!reading_aborts(&c->reading))
		return (false);
	count_aborted(c->thread->counts, c->n);
	conn_forget_requests(c);
	conn_hang_up(c);
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
				conn_hang_up(c);
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

static bool
can_drop(const struct target *t)
{
	return (t->host == NULL && t->sa.sa_family != AF_UNIX);
}

/* Bytes of the body that the kernel may drop; 0: none. */
static uint64_t
droppable(const struct conn *c)
{
	const struct load_conf *conf = c->thread->conf;
	uint64_t n = c->answer.drop;

	if (!c->reading.begun || c->in.n > 0 || !can_drop(c->target) ||
	    (conf->checks != NULL && verify_wants_bytes(conf->checks)))
		return (0);
	if (c->reading.abort_at != NEVER && n > c->reading.abort_at - c->reading.received)
		n = c->reading.abort_at - c->reading.received;
	return (n);
}

void
conn_recv_start(struct conn *c)
{
	uint64_t drop;

	c->rd_busy = true;
	if (c->streams != NULL) {
		op_submit(c->thread->io, &c->rd);
		return;
	}
	drop = droppable(c);
	c->rd.drops = drop > 0;
	/* One byte more: it shows that the body is too long. */
	c->rd.recv.drop = drop + (c->thread->conf->pipeline == 1);
	/* Only the beginning of a long body is copied; the kernel drops the rest. */
	c->rd.little =
	    c->thread->conf->pipeline == 1 && c->target->host == NULL &&
	    (c->thread->conf->checks == NULL || !verify_wants_bytes(c->thread->conf->checks));
	op_submit(c->thread->io, &c->rd);
}

/* Appends bytes to those that are kept. */
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
	if (c->streams == NULL && c->reading.begun &&
	    c->answer.protocol->eof(&c->answer) == ANSWER_END) {
		answer_end(c, false);
		if (c->n > 0)
			await_end(c);
	}
	if (c->n == 0)
		/* the server announced the end, or the connection was idle for too long */
		conn_hang_up(c);
	else
		conn_fail(c, c->streams != NULL || c->reading.begun || c->in.n > 0 ? LOAD_SHORT
										   : LOAD_RESET);
}

/* Running connections are sorted by their deadlines. */
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

void
conn_received(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, rd);
	bool open = true;

	c->rd_busy = false;
	if (c->closing) {
		conn_close_when_idle(c);
		return;
	}
	c->thread->now = clock_mono_ns();
	if (op->res == 0)
		conn_eof(c);
	else if (op->res < 0 && c->n == 0)
		conn_hang_up(c);
	else if (op->res < 0)
		conn_fail(c, op->res == -ETIMEDOUT ? LOAD_TIMEOUT : LOAD_RESET);
	else if (c->streams != NULL)
		streams_received(c, op->buf, (size_t)op->res);
	else {
		conn_heard(c);
		open = op->buf == NULL ? take_dropped(c, (size_t)op->res)
				       : take_bytes(c, op->buf, (size_t)op->res);
		if (open)
			settle(c);
	}
	if (!c->closing)
		conn_recv_start(c);
}
