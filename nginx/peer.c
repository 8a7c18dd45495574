/* nginx/peer.c -- questions go to fcgi-stat-accel over kept connections, one at a time on each.
 *
 *     up ----- no answer for a second, and none to GET_VALUES for another one;
 *      ^       refused; closed; bytes that are not FastCGI ------------------> down
 *      '---- GET_VALUES is answered; asked once a second <--------------------'
 *
 * While it is down nothing is asked, and nginx serves as without the module.  Each change is logged
 * once.  What it answers is not believed: the name is looked at again, as before the question. */
#include "nginx/records.h"

#define LINKS_MAX 1024u
#define SILENT_MS 1000u
#define AGAIN_MS  1000u
#define IN_SIZE   4096u

/* One connection. */
struct link {
	ngx_queue_t at; /* in idle or busy of the peer */
	struct accel_peer *peer;
	ngx_connection_t *c;
	struct accel_question *q; /* NULL: none */
	bool used;                /* it has answered before */
	/* bytes to send */
	u_char *out;
	size_t out_len, out_sent;
	struct accel_reader in;
};

static void read_event(ngx_event_t *ev);
static void write_event(ngx_event_t *ev);

/* ---------------------------------------------------------------- up and down */

static void
tie(struct link *l, struct accel_question *q)
{
	l->q = q;
	q->asked_on = l;
	accel_turn_begins(l->peer, q);
}

static void
untie(struct link *l)
{
	accel_turn_ends(l->peer, l->q);
	l->q->asked_on = NULL;
	l->q = NULL;
}

static void
link_free(struct link *l)
{
	if (l->q != NULL)
		untie(l);
	ngx_queue_remove(&l->at);
	l->peer->links--;
	if (l->c != NULL)
		ngx_close_connection(l->c);
	ngx_free(l->out);
	ngx_free(l);
}

/* What must be opened for nginx is opened by a thread then. */
static void
fail(struct accel_question *q)
{
	if (q->fd >= 0)
		accel_threads_close(q->pool, q->fd);
	q->fd = -1;
	if (q->name.open && !ngx_queue_empty(&q->waiters) &&
	    accel_threads_ask(q->pool, q) == NGX_OK)
		accel_count(ACCEL_COUNT_asked_threads);
	else
		accel_question_end(q, ACCEL_FAILED);
}

static void
go_down(struct accel_peer *p, const char *why)
{
	struct link *l;
	struct accel_question *q;

	if (!p->down)
		ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
		    "stat_accel: \"%V\" %s; files are served without it until it answers", &p->name,
		    why);
	accel_count_peer(p, true);
	p->down = true;
	if (p->watch.timer_set)
		ngx_del_timer(&p->watch);
	ngx_add_timer(&p->watch, AGAIN_MS);
	while (!ngx_queue_empty(&p->idle))
		link_free(ngx_queue_data(ngx_queue_head(&p->idle), struct link, at));
	while (!ngx_queue_empty(&p->busy)) {
		l = ngx_queue_data(ngx_queue_head(&p->busy), struct link, at);
		q = l->q;
		link_free(l);
		if (q != NULL)
			fail(q);
	}
	while ((q = accel_next_turn(p)) != NULL)
		fail(q);
}

static void
heard(struct accel_peer *p)
{
	p->heard = ngx_current_msec;
	p->asked_values = false;
	if (!p->down)
		return;
	accel_count_peer(p, false);
	p->down = false;
	if (p->watch.timer_set)
		ngx_del_timer(&p->watch);
	ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0, "stat_accel: \"%V\" answers again",
	    &p->name);
}

/* ---------------------------------------------------------------- sending */

/* Bytes for the connection, which has nothing to send.  False: no memory. */
static bool
put_question(struct link *l, const struct accel_question *q)
{
	l->out = ngx_alloc(accel_question_size(q), l->c->log);
	if (l->out == NULL)
		return (false);
	l->out_len = (size_t)(accel_put_question(l->out, q) - l->out);
	l->out_sent = 0;
	return (true);
}

/* A connection that still has something to send gets none. */
static bool
put_order(struct link *l, u_char *(*put)(u_char *))
{
	if (l->out != NULL)
		return (true);
	l->out = ngx_alloc(ACCEL_ORDER_SIZE, l->c->log);
	if (l->out == NULL)
		return (false);
	l->out_len = (size_t)(put(l->out) - l->out);
	l->out_sent = 0;
	return (true);
}

/* False: the connection is lost. */
static bool
send_out(struct link *l)
{
	ssize_t n;

	while (l->out != NULL && l->out_sent < l->out_len) {
		n = l->c->send(l->c, l->out + l->out_sent, l->out_len - l->out_sent);
		if (n == NGX_AGAIN)
			return (ngx_handle_write_event(l->c->write, 0) == NGX_OK);
		if (n < 0)
			return (false);
		l->out_sent += (size_t)n;
	}
	ngx_free(l->out);
	l->out = NULL;
	return (true);
}

static struct link *
link_new(struct accel_peer *p)
{
	ngx_log_t *log = ngx_cycle->log;
	static ngx_log_t quiet;
	ngx_peer_connection_t pc;
	struct link *l = ngx_calloc(sizeof(*l), log);
	ngx_int_t rc;

	if (l == NULL)
		return (NULL);
	quiet = *log;
	quiet.log_level = NGX_LOG_EMERG; /* go_down() says it, once */
	pc = (ngx_peer_connection_t){
		.sockaddr = p->sockaddr,
		.socklen = p->socklen,
		.name = &p->name,
		.get = ngx_event_get_peer,
		.log = &quiet,
	};
	rc = ngx_event_connect_peer(&pc);
	if (rc != NGX_OK && rc != NGX_AGAIN) {
		if (pc.connection != NULL)
			ngx_close_connection(pc.connection);
		ngx_free(l);
		return (NULL);
	}
	l->peer = p;
	l->c = pc.connection;
	l->c->data = l;
	l->c->log = ngx_cycle->log;
	l->c->read->log = l->c->write->log = l->c->log;
	l->c->log_error = NGX_ERROR_INFO;
	l->c->read->handler = read_event;
	l->c->write->handler = write_event;
	p->links++;
	ngx_queue_insert_tail(&p->busy, &l->at);
	return (l);
}

/* The silence is counted from now. */
static void
watch_from_now(struct accel_peer *p)
{
	p->heard = ngx_current_msec;
	p->asked_values = false;
	if (!p->watch.timer_set)
		ngx_add_timer(&p->watch, SILENT_MS);
}

/* While nothing is out, there is nothing to be heard. */
static void
watch_no_more(struct accel_peer *p)
{
	if (!p->down && ngx_queue_empty(&p->busy) && p->watch.timer_set)
		ngx_del_timer(&p->watch);
}

/* NGX_ERROR: the connection is gone. */
static ngx_int_t
ask_on(struct link *l, struct accel_question *q)
{
	tie(l, q);
	accel_reader_begin(&l->in);
	if (!put_question(l, q) || !send_out(l)) {
		link_free(l);
		return (NGX_ERROR);
	}
	if (!l->peer->watch.timer_set)
		watch_from_now(l->peer);
	return (NGX_OK);
}

static struct link *
idle_link(struct accel_peer *p)
{
	struct link *l;

	if (ngx_queue_empty(&p->idle))
		return (NULL);
	l = ngx_queue_data(ngx_queue_head(&p->idle), struct link, at);
	ngx_queue_remove(&l->at);
	ngx_queue_insert_tail(&p->busy, &l->at);
	l->c->idle = 0;
	ngx_reusable_connection(l->c, 0);
	return (l);
}

bool
accel_peer_gives(const struct accel_peer *p)
{
	return (p->sockaddr->sa_family == AF_UNIX);
}

/* An idle connection may have been closed by the other side: the next one is tried. */
ngx_int_t
accel_peer_ask(struct accel_peer *p, struct accel_question *q)
{
	struct link *l;

	if (p->down || q->name.path.len > ACCEL_PATH_LIMIT)
		return (NGX_ERROR);
	while (accel_may_be_asked(p, q) && (l = idle_link(p)) != NULL)
		if (ask_on(l, q) == NGX_OK)
			return (NGX_OK);
	if (accel_may_be_asked(p, q) && p->links < LINKS_MAX) {
		l = link_new(p);
		if (l != NULL && ask_on(l, q) == NGX_OK)
			return (NGX_OK);
		if (p->links == 0) {
			go_down(p, "cannot be connected to");
			return (NGX_ERROR);
		}
	}
	accel_wait_for_turn(p, q);
	return (NGX_OK);
}

static void
next_waiting(struct accel_peer *p)
{
	struct accel_question *q = p->down ? NULL : accel_next_turn(p);

	if (q != NULL && accel_peer_ask(p, q) != NGX_OK)
		fail(q);
}

/* ---------------------------------------------------------------- an answer */

/* nginx closes it when it has no connection left for a client. */
static void
rest(struct link *l)
{
	l->c->idle = 1;
	ngx_reusable_connection(l->c, 1);
	ngx_queue_remove(&l->at);
	ngx_queue_insert_head(&l->peer->idle, &l->at);
}

/* The descriptor has come, or why there is none.  ACCEL_COLD: neither. */
static enum accel_kind
opened(struct accel_question *q, const struct accel_reader *in)
{
	if (q->fd >= 0)
		return (accel_received(q));
	q->err = accel_answer_errno(in);
	return (q->err != 0 ? ACCEL_ABSENT : ACCEL_COLD);
}

static enum accel_kind
kind_of_answer(struct accel_question *q, const struct accel_reader *in)
{
	enum accel_kind kind;

	if (accel_answer_is_late(in))
		return (ACCEL_LATE);
	if (q->name.open)
		return (opened(q, in));
	kind = accel_probe(&q->name, true);
	q->hot = kind != ACCEL_COLD;
	return (kind);
}

static void
answered(struct link *l)
{
	struct accel_question *q = l->q;
	struct accel_peer *p = l->peer;
	enum accel_kind kind;

	untie(l);
	l->used = true;
	rest(l);
	watch_no_more(p);
	kind = ngx_queue_empty(&q->waiters) ? ACCEL_COLD : kind_of_answer(q, &l->in);
	if (kind == ACCEL_COLD)
		fail(q);
	else
		accel_question_end(q, kind);
}

/* After an answer may come what GET_VALUES asked for.  False: it is not FastCGI. */
static bool
feed(struct link *l, const u_char *p, const u_char *end)
{
	while (p < end) {
		switch (accel_read_record(&l->in, &p, end)) {
		case ACCEL_RECORD_PART: break;
		case ACCEL_RECORD_BAD: return (false);
		case ACCEL_RECORD_END: heard(l->peer); break;
		case ACCEL_RECORD_VALUES:
			heard(l->peer);
			if (l->q == NULL)
				rest(l);
			break;
		}
	}
	if (l->q == NULL || l->in.asked)
		return (true);
	if (l->out != NULL)
		return (false); /* it was not asked to the end */
	answered(l);
	return (true);
}

/* A kept connection that ends before the first byte of an answer: the accelerator was replaced, and
 * the question is asked again; the new one has its own time to answer. */
static void
lost(struct link *l)
{
	struct accel_question *q = l->q;
	struct accel_peer *p = l->peer;
	bool again = l->used && l->in.head_len == 0 && (q == NULL || q->fd < 0);

	link_free(l);
	if (q != NULL && !again)
		go_down(p, "has closed a connection without an answer");
	if (q != NULL && (ngx_queue_empty(&q->waiters) || accel_peer_ask(p, q) != NGX_OK))
		fail(q);
	if (q != NULL && !p->down)
		watch_from_now(p);
	watch_no_more(p);
	next_waiting(p);
}

/* The connection is free again when FCGI_END_REQUEST has come. */
bool
accel_peer_abort(struct accel_question *q)
{
	struct link *l = q->asked_on;

	if (q->waits) {
		accel_wait_no_more(q);
		return (true);
	}
	if (l != NULL && (!put_order(l, accel_put_abort) || !send_out(l)))
		lost(l);
	return (false);
}

/* As ngx_recv(), with the descriptors.  NGX_DECLINED: not those that were asked for. */
static ssize_t
receive(struct link *l, u_char *in, size_t size)
{
	ngx_event_t *ev = l->c->read;
	struct accel_question *q = l->q != NULL && l->in.asked ? l->q : NULL;
	bool good;
	ssize_t n = accel_receive(l->c->fd, in, size, q, &good);

	if (n > 0)
		return (good ? n : NGX_DECLINED);
	ev->ready = 0;
	ev->eof = n == 0;
	ev->error = n < 0 && n != NGX_AGAIN;
	return (n);
}

/* Reads all: after a descriptor recvmsg(2) stops, so a short read does not mean that nothing is
 * left. */
static void
read_event(ngx_event_t *ev)
{
	ngx_connection_t *c = ev->data;
	struct link *l = c->data;
	struct accel_peer *p = l->peer;
	u_char in[IN_SIZE];
	ssize_t n;

	if (c->close) { /* the worker ends, or needs it for a client */
		link_free(l);
		return;
	}
	while ((n = receive(l, in, sizeof(in))) > 0 && feed(l, in, in + n))
		;
	if (n > 0 || n == NGX_DECLINED)
		go_down(p, "has sent bytes that are not an answer in FastCGI");
	else if (n != NGX_AGAIN || ngx_handle_read_event(c->read, 0) != NGX_OK)
		lost(l);
	else
		next_waiting(p);
}

static void
write_event(ngx_event_t *ev)
{
	ngx_connection_t *c = ev->data;
	struct link *l = c->data;

	if (!send_out(l))
		lost(l);
}

/* ---------------------------------------------------------------- is it alive? */

static void
ask_values(struct accel_peer *p)
{
	struct link *l;

	l = ngx_queue_empty(&p->busy) ? link_new(p)
				      : ngx_queue_data(ngx_queue_head(&p->busy), struct link, at);
	if (l != NULL && (!put_order(l, accel_put_get_values) || !send_out(l)))
		lost(l);
}

static void
watch(ngx_event_t *ev)
{
	struct accel_peer *p = ev->data;

	if (p->down) {
		go_down(p, NULL);
		ask_values(p);
		return;
	}
	ngx_add_timer(&p->watch, SILENT_MS);
	if (ngx_current_msec - p->heard < SILENT_MS)
		p->asked_values = false;
	else if (p->asked_values)
		go_down(p, "does not answer");
	else {
		p->asked_values = true;
		ask_values(p);
	}
}

void
accel_peer_init(struct accel_peer *p)
{
	ngx_queue_init(&p->idle);
	ngx_queue_init(&p->busy);
	ngx_queue_init(&p->waiting);
	p->watch.handler = watch;
	p->watch.data = p;
	p->watch.log = ngx_cycle->log;
	p->watch.cancelable = 1;
}

/* What is asked then is of no use any more. */
void
accel_peer_end(struct accel_peer *p)
{
	while (!ngx_queue_empty(&p->idle))
		link_free(ngx_queue_data(ngx_queue_head(&p->idle), struct link, at));
	while (!ngx_queue_empty(&p->busy))
		link_free(ngx_queue_data(ngx_queue_head(&p->busy), struct link, at));
}
