/* server/conn.c -- see conn.h */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "server/conn_impl.h"
#include "server/finish.h"
#include "server/reply.h"
#include "server/route.h"

#define BATCH_BYTES (64u << 10)      /* replies collected for one send */
#define BATCH_PIECES (BODY_PIECES - 34) /* and one more in sixteen ranges must fit behind them */
#define LINGER_MS 2000u              /* after a refusal: time for the client to read it */

#define S(n, p, d) const struct conn_state st_##n = {#n, d, phase_##p, conn_##n};
CONN_STATES(S)
#undef S

static void sender_ended(struct sender *, int);

void
conn_run(struct conn *c)
{
	const struct conn_state *next;

	must(!c->in_run);
	c->in_run = true;
	while ((next = c->state->run(c)) != WAIT)
		c->state = next; /* the one place a state changes */
	c->in_run = false;
	conn_phase_show(c);
	if (c->closing && c->state != &st_close && !conn_in_flight(c))
		conn_go(c, &st_close); /* somebody asked for the end meanwhile */
}

void
conn_go(struct conn *c, const struct conn_state *st)
{
	c->state = st;
	conn_run(c);
}

bool
conn_in_flight(const struct conn *c)
{
	return (c->receiving || c->sending || c->watching);
}

bool
conn_ended_while_waiting(struct conn *c)
{
	if (!c->closing)
		return (false);
	if (!conn_in_flight(c))
		conn_go(c, &st_close);
	return (true);
}

/* ---- the states */

static const struct conn_state *
idle(struct conn *c)
{
	uint64_t ms;

	if (c->r != NULL) {
		worker_request_back(c->r);
		c->r = NULL;
	}
	if (c->w->draining && c->nreq != 0)
		return (&st_close);
	ms = 1000 * (c->nreq != 0 ? c->w->global->keepalive_idle : c->w->global->read_idle);
	return (conn_want_bytes(c, (uint32_t)(ms != 0 ? ms : 1)));
}

/* Of a head that is not one the log gets its line; nothing else of it may be believed, or outlives its buffer. */
static void
forget_head(struct request *r)
{
	struct text line = r->http.line;

	memset(&r->http, 0, offsetof(struct http_request, headers));
	if (line.p != NULL)
		r->http.line = arena_text(&r->arena, line);
	r->http.verb = HTTP_GET;
	r->http.keep_alive = true; /* it did not say that nothing more will come */
}

const struct conn_state *
conn_refuse(struct conn *c, int status, const char *why)
{
	count(&c->w->tally->counters, bad_requests);
	request_use(c->r, c->w->global);
	if (c->r->head.n == 0)
		forget_head(c->r);
	c->close_after = true;
	log_limited(10, LOG_INFO, conn_id(c->r), "request.refused", LF_U64("status", status), LF_STR("why", why));
	if (status == 503)
		reply_retry(c->r, 1);
	else
		reply_error(c->r, status);
	return (&st_send);
}

static const struct conn_state *
more_head(struct conn *c)
{
	uint64_t now = io_now(c->w->io), limit, spent;

	if (!body_empty(&c->r->body))
		return (&st_send);
	if (c->head_ns == 0)
		c->head_ns = now;
	limit = 1000 * c->w->global->read_idle;
	spent = (now - c->head_ns) / NS_PER_MS;
	if (spent >= limit)
		return (conn_refuse(c, 408, "the head took longer than server.max-read-idle"));
	c->r->http.line = TEXT_NONE; /* was a slice of what moves now */
	return (conn_want_bytes(c, (uint32_t)(limit - spent)));
}

static const struct conn_state *
begin_request(struct conn *c, size_t used)
{
	struct request *r = c->r;

	r->head = (struct text){c->in.p, used};
	r->head_kept = false;
	c->in.p += used;
	c->in.n -= used;
	c->head_ns = 0;
	c->nreq++;
	r->started_ns = io_now(c->w->io);
	c->dropped = 0;
	c->continued = false;
	c->debt_ns = 0;
	r->body_left = r->http.chunked ? -1 : r->http.content_length > 0 ? r->http.content_length : 0;
	count(&c->w->tally->counters, requests);
	return (&st_route);
}

/* A new head: forget all of the last request but the replies that wait to be sent. */
static void
request_renew(struct request *r)
{
	arena_reset(&r->arena);
	r->path = NULL;
	r->path_len = 0;
	r->status = 0;
	r->body_bytes = 0;
	r->body_left = 0;
	r->cold = false;
	r->relay = NULL;
	r->proxy_queue_ns = r->proxy_ns = 0;
	r->extra = NULL;
	request_drop_spools(r);
	memset(&r->chunked, 0, sizeof(r->chunked));
	r->head_kept = true; /* nothing to keep yet */
	r->head = TEXT_NONE;
}

static bool
take_request(struct conn *c)
{
	c->r = worker_request(c->w);
	if (c->r == NULL)
		return (false);
	c->r->conn = c;
	c->r->sender.sock = &c->sock;
	c->r->sender.times = &c->r->times;
	c->r->sender.client = conn_client(c->r);
	c->r->sender.debt_ns = 0;
	return (true);
}

static const struct conn_state *
input_ended(struct conn *c)
{
	if (c->r != NULL && c->in_err == -ETIMEDOUT)
		return (conn_refuse(c, 408, "the head took longer than server.max-read-idle"));
	return (&st_close); /* gone, or idle for too long */
}

const struct conn_state *
conn_read_head(struct conn *c)
{
	int status = 400;
	const char *why = "";
	size_t used;

	if (c->in_err != 0)
		return (input_ended(c));
	if (c->in.n == 0 && (c->r == NULL || body_empty(&c->r->body)))
		return (idle(c));
	if (c->r == NULL && !take_request(c))
		return (&st_close);
	request_renew(c->r);
	switch (http1_head(c->in, c->w->global->max_head, &c->r->http, &used, &status, &why)) {
	case PARSE_DONE:
		return (begin_request(c, used));
	case PARSE_BAD:
		return (conn_refuse(c, status, why));
	case PARSE_MORE:
		break;
	}
	return (more_head(c));
}

static const struct conn_state *
defer(struct conn *c)
{
	c->deferred = true;
	return (&st_send);
}

static bool
wants_continue(const struct conn *c)
{
	return (c->r->http.expect_continue && c->r->http.minor != 0 && c->in.n == 0 && !c->continued);
}

static const struct conn_state *routed(struct conn *);

const struct conn_state *
conn_route(struct conn *c)
{
	struct request *r = c->r;
	const char *why;
	int status;

	c->deferred = false;
	status = route(r, &c->handler, &why);
	if (status == 0 && c->w->draining)
		c->close_after = true;
	if (r->conf != NULL && (!r->http.keep_alive || c->nreq >= r->conf->keepalive_requests))
		c->close_after = true;
	if (status != 0)
		return (conn_refuse(c, status, why));
	return (c->w->physical ? &st_probe : routed(c));
}

static const struct conn_state *
found(struct conn *c, struct stat_entry *e)
{
	bool exists = e->err == 0;
	const char *why;
	int status;

	stat_put(e);
	status = exists ? route_existing(c->r, &c->handler, &why) : 0;
	if (status != 0)
		return (conn_refuse(c, status, why));
	return (routed(c));
}

static void
probed(struct stat_wait *w, struct stat_entry *e)
{
	struct conn *c = container_of(w, struct request, wait)->conn;

	conn_go(c, found(c, e));
}

const struct conn_state *
conn_probe(struct conn *c)
{
	struct request *r = c->r;
	struct text path = {r->path + 1, r->path_len - 1};
	bool peek = !body_empty(&r->body);
	struct stat_entry *e;

	if (path.n != 0 && path.p[path.n - 1] == '/')
		path.n--;
	r->wait.done = probed;
	r->wait.client = r->sender.client;
	e = stat_lookup(c->w->stats, r->site->docroot, path, peek ? NULL : &r->wait);
	if (e != NULL)
		return (found(c, e));
	if (peek)
		return (defer(c));
	if (!conn_settle(c))
		conn_stop(c);
	else
		conn_watch(c);
	return (WAIT);
}

/* Who answers is known: what has to be done with the body first? */
static const struct conn_state *
routed(struct conn *c)
{
	struct request *r = c->r;

	if (c->handler->reads_body && conn_upload_too_long(r))
		return (&st_handle);
	if (c->handler->reads_body && r->body_left != 0 && wants_continue(c)) {
		c->continued = true;
		return (body_copy(&r->body, TEXT("HTTP/1.1 100 Continue\r\n\r\n")) ? defer(c) : &st_close);
	}
	if (c->handler->reads_body && r->body_left != 0)
		return (body_empty(&r->body) ? &st_upload : defer(c));
	if (r->body_left != 0)
		return (body_empty(&r->body) ? &st_skip_body : defer(c));
	return (&st_handle);
}

static const struct conn_state *
answered(struct conn *c)
{
	/* Further heads may be here already: answer them too, then send once. */
	if (c->in.n != 0 && !c->close_after && c->r->body.left < BATCH_BYTES && c->r->body.n <= BATCH_PIECES &&
	    finish_may_batch(c->r)) {
		finish_log(c->r, true);
		return (&st_read_head);
	}
	return (&st_send);
}

const struct conn_state *
conn_handle(struct conn *c)
{
	bool peek = !body_empty(&c->r->body);

	switch (c->handler->start(c->r, peek)) {
	case HANDLED_REPLY:
		return (answered(c));
	case HANDLED_NOT_NOW:
		return (defer(c));
	case HANDLED_LATER:
		break;
	}
	if (!conn_settle(c))
		conn_stop(c); /* it may be receiving for the handler */
	else
		conn_watch(c);
	return (WAIT);
}

static void
start_sender(struct conn *c)
{
	struct request *r = c->r;

	conn_watch_end(c);
	c->sending = true;
	r->sender.exact = r->site != NULL && r->site->timing != TIMING_OFF;
	r->sender.rate = (uint32_t)r->conf->min_write_rate;
	sender_start(&r->sender, &r->body, (uint32_t)(1000 * r->conf->write_idle), sender_ended);
}

const struct conn_state *
conn_send(struct conn *c)
{
	if (body_empty(&c->r->body))
		return (&st_finish);
	start_sender(c);
	c->state = &st_finish; /* entered by sender_ended() */
	/* A head that is needed no more is not copied: most requests are over but for this send. */
	if (!c->deferred && !finish_needs_head(c->r))
		c->r->head = TEXT_NONE;
	if (!conn_settle(c))
		conn_stop(c);
	return (WAIT);
}

static void
sender_ended(struct sender *s, int err)
{
	struct request *r = container_of(s, struct request, sender);
	struct conn *c = r->conn;
	void (*sent)(struct request *, int) = c->sent;

	c->sending = false;
	c->sent = NULL;
	count_add(&c->w->tally->counters, bytes_sent, s->sent);
	if (err == -ENODATA)
		count(&c->w->tally->counters, file_shrunk);
	else if (err == -ETXTBSY)
		count(&c->w->tally->counters, file_changed);
	else if (err != 0 && finish_is_clients(err))
		count(&c->w->tally->counters, client_gone);
	else if (err != 0)
		count(&c->w->tally->counters, file_failed);
	if (conn_ended_while_waiting(c))
		return;
	if (sent != NULL) {
		sent(r, err);
		return;
	}
	if (err != 0) {
		finish_broken(r, err);
		c->cut = true;
	}
	conn_run(c);
}

const struct conn_state *
conn_finish(struct conn *c)
{
	struct request *r = c->r;

	if (c->cut)
		return (&st_close);
	if (c->deferred)
		return (&st_route);
	finish_log(r, false);
	if (r->body_left != 0)
		c->close_after = true;
	if (!c->close_after)
		return (&st_read_head);
	/* Unread input would make close() a reset that destroys the reply on its way; only a client that
	 * announced the end itself sends no more. */
	return (r->http.keep_alive || r->body_left != 0 || c->in.n != 0 ? &st_linger : &st_close);
}

const struct conn_state *
conn_linger(struct conn *c)
{
	if (c->r != NULL) {
		worker_request_back(c->r);
		c->r = NULL;
		io_sock_shutdown(&c->sock);
		c->dropped = 0;
		c->head_ns = io_now(c->w->io);
	} else {
		if (c->in_err != 0)
			return (&st_close);
		c->dropped += (uint32_t)c->in.n;
	}
	c->in = TEXT_NONE;
	if (c->dropped > SKIP_MAX || io_now(c->w->io) - c->head_ns > LINGER_MS * NS_PER_MS)
		return (&st_close);
	return (conn_want_bytes(c, LINGER_MS));
}

static void
closed(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, op);
	struct worker *w = c->w;

	if (c->r != NULL)
		worker_request_back(c->r);
	buf_free(&c->own);
	list_del(&c->link);
	w->nconns--;
	conn_phase_end(c);
	free(c);
	worker_conn_gone(w);
}

const struct conn_state *
conn_close(struct conn *c)
{
	must(!conn_in_flight(c));
	c->closing = true;
	c->op.kind = IO_CLOSE;
	c->op.done = closed;
	c->op.deadline_ms = 0;
	io_submit(c->w->io, &c->op);
	return (WAIT);
}

/* ---- life */

void
conn_new(struct worker *w, int fd, const union io_addr *peer, const char *listener)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		io_file_put(io_file_new(w->io, fd, 0)); /* closes it */
		return;
	}
	c->w = w;
	c->id = w->conn_ids += w->conf.nworkers; /* no two workers give the same */
	c->peer = *peer;
	c->listener = listener;
	c->state = &st_read_head;
	io_sock_init(&c->sock, fd);
	io_op_init(&c->op, IO_RECV, NULL);
	c->op.sock = &c->sock;
	list_init(&c->link);
	list_add_tail(&w->conns, &c->link);
	w->nconns++;
	conn_phase_begin(c);
	count(&w->tally->counters, accepts);
	conn_run(c);
}

void
conn_stop(struct conn *c)
{
	if (c->closing)
		return;
	c->closing = true;
	if (c->r != NULL)
		request_drop_spools(c->r);
	if (c->state == &st_probe)
		stat_cancel(&c->r->wait);
	if (c->state == &st_handle && c->handler->stop != NULL)
		c->handler->stop(c->r);
	if (c->receiving || c->watching)
		io_cancel(c->w->io, &c->op);
	if (c->sending)
		sender_cancel(&c->r->sender);
	if (!conn_in_flight(c) && !c->in_run)
		conn_go(c, &st_close);
}

void
conn_drain(struct conn *c)
{
	if (c->state == &st_read_head && c->in.n == 0 && c->nreq != 0)
		conn_stop(c);
	else
		c->close_after = true;
}

struct conn *
conn_of_link(struct list *l)
{
	return (list_entry(l, struct conn, link));
}

/* ---- for handlers */

void
conn_replied(struct request *r)
{
	struct conn *c = r->conn;

	must(c->state == &st_handle);
	conn_go(c, answered(c));
}

void
conn_cut(struct request *r)
{
	conn_stop(r->conn);
}

void
conn_close_after(struct request *r)
{
	r->conn->close_after = true;
}

bool
conn_keeps_alive(const struct request *r)
{
	return (!r->conn->close_after);
}

void
conn_send_body(struct request *r, void (*sent)(struct request *, int err))
{
	struct conn *c = r->conn;

	must(!c->sending);
	c->sent = sent;
	start_sender(c);
}
