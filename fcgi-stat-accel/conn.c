#include "fcgi-stat-accel/conn_impl.h"

#include <errno.h>

#include "io/file.h"

#define REQUEST_MS 10000u /* for a whole request, from its first byte */
#define WRITE_MS   10000u /* without progress */
/* time for the first byte before the connection may be closed to make room */
#define NEW_MS    100u
#define LINGER_MS 1000u /* for the peer to close after our FIN */
/* Bytes of answers in a row; then other connections have their turn. */
#define OUT_MAX (16u << 10)

void
conn_move(struct conn *c, struct list *where)
{
	list_del(&c->link);
	list_add_tail(where, &c->link);
}

struct turn *
conn_turn(struct conn *c)
{
	if (c->turn == NULL) {
		c->turn = g_new0(struct turn, 1);
		c->turn->conn = c;
		c->turn->fd = -1;
		list_init(&c->turn->parcels);
	}
	return (c->turn);
}

/* A file system in user space is asked at each close(2). */
void
conn_drop_fd(struct conn *c, int *fd)
{
	if (*fd < 0)
		return;
	if (io_fd_is_local(*fd))
		io_close_fd(*fd);
	else
		io_close_later(c->all->io, *fd);
	*fd = -1;
	c->all->counters->fds--;
}

static void
turn_free(struct conn *c)
{
	struct turn *t = c->turn;

	if (t == NULL)
		return;
	must(t->request == NULL && t->opening == NULL && list_empty(&t->parcels));
	conn_drop_fd(c, &t->fd);
	record_drop_string(&t->rest);
	g_free(t);
	c->turn = NULL;
}

bool
conn_waits(const struct conn *c)
{
	return (c->turn != NULL && c->turn->request != NULL);
}

static bool
is_sending(const struct conn *c)
{
	return (c->turn != NULL && !list_empty(&c->turn->parcels));
}

/* ---------------------------------------------------------------- the end of one */

static void
closed(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, op);
	struct conns *all = c->all;

	record_free(&c->record);
	g_free(c);
	all->counters->conns--;
	all->gone(all);
}

/* Frees the connection when none of its ops is in flight. */
static void
conn_reap(struct conn *c)
{
	if (c->receiving || is_sending(c))
		return;
	turn_free(c);
	op_init(&c->op, IO_CLOSE, closed);
	c->op.sock = &c->sock;
	op_submit(c->all->io, &c->op);
}

void
conn_drop(struct conn *c)
{
	must(!c->closing);
	c->closing = true;
	list_del(&c->link);
	if (conn_waits(c)) {
		conn_forget_request(c);
		count(&c->all->counters->events, aborted);
	}
	if (c->receiving)
		op_cancel(c->all->io, &c->op);
	if (is_sending(c))
		op_cancel(c->all->io, &c->turn->send);
	conn_reap(c);
}

/* ---------------------------------------------------------------- receiving */

static uint32_t
time_left(const struct conn *c, uint32_t limit_ms)
{
	uint64_t gone = (io_now(c->all->io) - c->since_ns) / NS_PER_MS;

	return (gone < limit_ms ? limit_ms - (uint32_t)gone : 1);
}

/* Milliseconds to wait for the web server; 0: no deadline.  Single bytes do not move a deadline. */
static uint32_t
patience(const struct conn *c)
{
	if (!c->owed)
		return (0);
	return (time_left(c, c->lingering ? LINGER_MS : REQUEST_MS));
}

/* A receive that began under another deadline is called back, and calls this function again. */
static void
conn_receive(struct conn *c)
{
	uint32_t ms = patience(c);

	if (!c->receiving) {
		c->op.deadline_ms = ms;
		c->receiving = true;
		op_submit(c->all->io, &c->op);
	} else if ((c->op.deadline_ms == 0) != (ms == 0))
		op_cancel(c->all->io, &c->op);
}

static void
owe(struct conn *c, bool owed)
{
	if (owed && !c->owed)
		c->since_ns = io_now(c->all->io);
	c->owed = owed;
}

/* No request is in progress: the peer owes the rest of a request, or may be silent without
 * limit. */
static void
conn_wait(struct conn *c)
{
	bool idle = record_idle(&c->record);

	if (idle && c->all->leaving) {
		conn_drop(c);
		return;
	}
	conn_move(c, idle ? &c->all->quiet : &c->all->busy);
	owe(c, !idle);
	conn_receive(c);
}

/* The peer may still be sending a body.  Closing with unread bytes sends a reset, which overtakes
 * the answer.  If the peer has sent everything, as most have, no FIN, wait and receive are needed:
 * 10.6 us of CPU for such a connection, not 14.8. */
static void
conn_finish(struct conn *c)
{
	if (c->heard_all) {
		conn_drop(c);
		return;
	}
	turn_free(c);
	io_sock_shutdown(&c->sock);
	c->lingering = true;
	c->owed = false;
	owe(c, true);
	conn_move(c, &c->all->busy);
	conn_receive(c);
}

/* ---------------------------------------------------------------- sending */

static struct parcel *
first_parcel(struct turn *t)
{
	return (list_entry(t->parcels.next, struct parcel, link));
}

static void
send_more(struct turn *t)
{
	const struct parcel *p = first_parcel(t);

	t->iov.iov_base = p->bytes->str + t->sent;
	t->iov.iov_len = p->bytes->len - t->sent;
	t->send.gives = p->fd >= 0;
	t->send.send.fd = p->fd;
	op_submit(t->conn->all->io, &t->send);
}

static void
drop_parcel(struct turn *t)
{
	struct parcel *p = first_parcel(t);

	list_del(&p->link);
	conn_drop_fd(t->conn, &p->fd);
	g_string_free(p->bytes, TRUE);
	g_free(p);
}

/* The peer has a copy of the descriptor, or cannot take any: then its answer goes without. */
static void
fd_was_sent(struct turn *t, struct io_op *op)
{
	struct parcel *p = first_parcel(t);

	if (p->fd < 0 || (op->res <= 0 && op->res != -ETOOMANYREFS))
		return;
	if (op->res > 0)
		count(&t->conn->all->counters->events, given);
	else
		op->res = 0;
	conn_drop_fd(t->conn, &p->fd);
}

static void sent(struct io_op *);

static void
start_sending(struct turn *t)
{
	t->sent = 0;
	op_init(&t->send, IO_SEND, sent);
	t->send.sock = &t->conn->sock;
	t->send.deadline_ms = WRITE_MS;
	t->send.send.iov = &t->iov;
	t->send.send.n = 1;
	send_more(t);
}

static void
sent(struct io_op *op)
{
	struct turn *t = container_of(op, struct turn, send);
	struct conn *c = t->conn;

	fd_was_sent(t, op);
	t->sent += op->res > 0 ? (size_t)op->res : 0;
	if (!c->closing && op->res >= 0 && t->sent < first_parcel(t)->bytes->len) {
		send_more(t); /* progress: the deadline starts again */
		return;
	}
	drop_parcel(t);
	if (op->res == -ETIMEDOUT)
		count(&c->all->counters->events, too_slow);
	while ((c->closing || op->res < 0) && !list_empty(&t->parcels))
		drop_parcel(t);
	if (!list_empty(&t->parcels))
		start_sending(t);
	if (c->closing)
		conn_reap(c);
	else if (op->res < 0)
		conn_drop(c);
	else
		conn_go_on(c);
}

/* Bytes wait for those in flight. */
static bool
has_next(const struct turn *t)
{
	return (t->parcels.next != t->parcels.prev);
}

/* Bytes after a descriptor may follow those of its answer, but not bytes before it. */
static bool
may_append(const struct turn *t)
{
	return (t->fd < 0 && has_next(t));
}

/* Sends all->out with the descriptor, after the bytes that are in flight. */
void
conn_put(struct conn *c)
{
	const GString *out = c->all->out;
	struct turn *t;
	struct parcel *p;

	if (out->len == 0)
		return;
	t = conn_turn(c);
	if (may_append(t)) {
		p = list_entry(t->parcels.prev, struct parcel, link);
		g_string_append_len(p->bytes, out->str, (gssize)out->len);
		return;
	}
	p = g_new(struct parcel, 1);
	*p = (struct parcel){ .bytes = g_string_new_len(out->str, (gssize)out->len), .fd = t->fd };
	t->fd = -1;
	list_add_tail(&t->parcels, &p->link);
	if (first_parcel(t) == p)
		start_sending(t);
}

/* ---------------------------------------------------------------- bytes to requests */

/* False: the connection must be closed. */
static bool
take_result(struct conn *c, enum record_result result)
{
	switch (result) {
	case RECORD_REQUEST: return (conn_take_request(c));
	case RECORD_ABORT: conn_abort_request(c); break;
	case RECORD_CLOSE: c->last = true; break;
	case RECORD_BAD:
		count(&c->all->counters->events, malformed);
		c->last = true; /* answers to earlier requests are still sent */
		return (c->all->out->len > 0 || is_sending(c));
	case RECORD_MORE:
	case RECORD_HOLD: break;
	}
	return (true);
}

static void
keep_rest(struct conn *c, struct text in)
{
	must(conn_turn(c)->rest == NULL && !c->receiving);
	c->turn->rest = g_string_new_len(in.p, (gssize)in.n);
}

/* All answers to these bytes leave in one send. */
static void
conn_feed(struct conn *c, struct text in)
{
	enum record_result result = RECORD_MORE;
	GString *out = c->all->out;

	g_string_truncate(out, 0);
	while (in.n > 0 && !c->last && result != RECORD_HOLD && out->len < OUT_MAX) {
		result = record_feed(&c->record, &in, out);
		if (!take_result(c, result)) {
			conn_drop(c);
			return;
		}
	}
	if (result == RECORD_HOLD || (in.n > 0 && !c->last))
		keep_rest(c, in);
	c->heard_all = c->last && result == RECORD_REQUEST && record_body_ends(&c->record, in);
	conn_put(c);
	conn_go_on(c);
}

static void
feed_rest(struct conn *c)
{
	GString *rest = c->turn->rest;

	c->turn->rest = NULL;
	conn_feed(c, (struct text){ rest->str, rest->len });
	g_string_free(rest, TRUE);
}

/* The connection receives during a look-up, because the peer may abort or leave.  It stops while
 * the peer does not read its answers, or these would pile up. */
void
conn_go_on(struct conn *c)
{
	struct turn *t = c->turn;

	if (conn_waits(c)) {
		c->owed = false;
		if (t->rest == NULL && !has_next(t))
			conn_receive(c);
		return;
	}
	if (is_sending(c))
		return;
	if (c->last)
		conn_finish(c);
	else if (t != NULL && t->rest != NULL)
		feed_rest(c);
	else {
		turn_free(c);
		conn_wait(c);
	}
}

static void
received(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, op);

	c->receiving = false;
	if (c->closing) {
		conn_reap(c);
		return;
	}
	if (op->res == -ETIMEDOUT && !c->lingering)
		count(&c->all->counters->events, too_slow);
	if (op->res > 0) {
		c->all->events++;
		conn_move(c, &c->all->busy); /* it must not be closed to make room */
	}
	if (op->res == 0 && is_sending(c) && !conn_waits(c))
		c->last = true; /* the peer has sent its last request, and still reads */
	else if (op->res > 0 && !c->lingering && !c->last)
		conn_feed(c, (struct text){ op->buf, (size_t)op->res });
	else if (op->res > 0 || op->res == -ECANCELED)
		c->lingering ? conn_receive(c) : conn_go_on(c);
	else
		conn_drop(c);
}

/* ---------------------------------------------------------------- all of them */

void
conns_init(struct conns *all)
{
	list_init(&all->quiet);
	list_init(&all->busy);
	all->path = g_string_new(NULL);
	all->reply = g_string_new(NULL);
	all->out = g_string_new(NULL);
}

void
conns_free(struct conns *all)
{
	must(all->counters->conns == 0);
	g_string_free(all->path, TRUE);
	g_string_free(all->reply, TRUE);
	g_string_free(all->out, TRUE);
}

void
conn_open(struct conns *all, int fd, bool welcome)
{
	struct conn *c = g_new0(struct conn, 1);

	c->all = all;
	c->id = ++all->ids;
	c->since_ns = io_now(all->io);
	list_init(&c->link);
	record_init(&c->record, &all->record);
	io_sock_init(&c->sock, fd);
	op_init(&c->op, IO_RECV, received);
	c->op.sock = &c->sock;
	all->counters->conns++;
	all->events++;
	if (welcome)
		conn_wait(c);
	else
		conn_drop(c);
}

/* A new connection has a request, which is most likely received already. */
static bool
is_new(const struct conn *c)
{
	return (c->requests == 0 && io_now(c->all->io) - c->since_ns < NEW_MS * NS_PER_MS);
}

bool
conns_make_room(struct conns *all)
{
	struct conn *c;

	list_each(c, &all->quiet, link) {
		if (is_new(c))
			continue;
		conn_drop(c);
		return (true);
	}
	return (false);
}

bool
conns_leave(struct conns *all)
{
	all->leaving = true;
	while (conns_make_room(all))
		;
	return (list_empty(&all->quiet));
}

void
conns_close_quiet(struct conns *all)
{
	all->leaving = true;
	while (!list_empty(&all->quiet))
		conn_drop(list_entry(all->quiet.next, struct conn, link));
}

void
conns_close(struct conns *all)
{
	conns_close_quiet(all);
	while (!list_empty(&all->busy))
		conn_drop(list_entry(all->busy.next, struct conn, link));
}
