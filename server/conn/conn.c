/* server/conn/conn.c -- see conn.h */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "files/hold/hold.h"
#include "io/http2/http2.h"
#include "server/config/site.h"
#include "server/conn/clients.h"
#include "server/conn/impl.h"
#include "server/conn/overdue.h"
#include "server/log/debug_log.h"
#include "server/module/rate.h"
#include "server/reply/log.h"
#include "server/reply/reply.h"
#include "server/route/choose.h"
#include "server/conn/accept.h"
#include "server/conn/spread.h"
#include "server/reply/counters.h"

#define BATCH_BYTES  (64u << 10)        /* replies collected for one send */
#define BATCH_PIECES (BODY_PIECES - 34) /* another reply in sixteen ranges must fit after them */

#define S(n, p, d) const struct conn_state st_##n = { #n, d, phase_##p, conn_##n };
CONN_STATES(S)
#undef S

static void sender_ended(struct sender *, int);

void
conn_run(struct conn *c)
{
	const struct conn_state *next;

	if (c->in_run) {
		conn_bug(c, "its states run already");
		return;
	}
	c->in_run = true;
	while ((next = c->state->run(c)) != WAIT) {
		c->state = next; /* the one place where a state changes */
		if (c->w->base.log_states)
			conn_tell_state(c);
	}
	c->in_run = false;
	conn_phase_show(c);
	if (c->closing && c->state != &st_close && !conn_in_flight(c))
		conn_go(c, &st_close); /* conn_stop() was called meanwhile */
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
	return (c->receiving || c->sending || c->watching ||
		(c->h2 != NULL && (c->nstreams != 0 || http2_is_busy(c->h2))));
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

void
conn_bug(struct conn *c, const char *what)
{
	char name[64];

	count(c->w->base.counts.conn, connection_bugs);
	log_limited(1, LOG_ERROR, NULL, "connection.bug", LF_U64("connection", c->id),
	    LF_STR("address", client_addr_text(&c->peer.sa, name)), LF_STR("state", c->state->name),
	    LF_STR("why", what), LF_STR("then", "closed the connection"),
	    LF_STR("do", "report it with the lines of this connection"));
	conn_stop(c);
}

bool
conn_input_ends(struct conn *c)
{
	if (!c->receiving && !c->watching)
		return (true);
	if (!conn_settle(c)) {
		conn_stop(c);
		return (false);
	}
	c->op_wanted = true;
	op_cancel(c->w->base.io, &c->op);
	return (false);
}

/* ---- the states */

const struct conn_state *
conn_defer(struct conn *c)
{
	c->deferred = true;
	c->r->in.streams = false; /* nothing of the body is taken before the handler has started */
	return (&st_send);
}

static bool
wants_continue(const struct conn *c)
{
	return (
	    c->r->http.expect_continue && c->r->http.minor != 0 && c->in.n == 0 && !c->continued);
}

const struct conn_state *
conn_route(struct conn *c)
{
	struct request *r = c->r;
	const char *why;
	int status;

	if (!conn_stream_ends(c))
		return (WAIT);
	c->deferred = false;
	r->in.streams = false; /* conn_routed() decides */
	status = route(r, &c->handler, &why);
	if (status == 0 && c->w->draining && !conn_moves(c->w))
		c->close_after = true;
	if (counters_leaving(c->w->base.conf.counters_list))
		c->close_after = true;
	if (r->conf != NULL && (!r->http.keep_alive || c->nreq >= r->conf->keepalive_requests))
		c->close_after = true;
	if (c->parent != NULL && r->conf != NULL)
		conn_http2_routed(c);
	if (status != 0)
		return (conn_refuse(c, status, why));
	if (r->http.expect_continue && r->conf->reject_expect)
		return (conn_refuse(c, 417, "server.reject-expect-100-with-417 is enabled"));
	if (r->site->debug)
		debug_log_routed(r, c->handler);
	return ((c->w->base.physical || c->r->conf->cgi_assign.n != 0) && !c->handler->final
		    ? &st_probe
		    : conn_routed(c));
}

const struct conn_state *
conn_routed(struct conn *c)
{
	struct request *r = c->r;

	if (c->handler->before_body)
		return (&st_handle);
	r->in.streams = r->in.streamed == 0 && conn_streams(c);
	if (c->handler->reads_body && conn_upload_too_long(r))
		return (&st_handle);
	if (c->handler->reads_body && r->in.left != 0 && wants_continue(c)) {
		c->continued = true;
		return (body_copy(&r->body, TEXT("HTTP/1.1 100 Continue\r\n\r\n")) ? conn_defer(c)
										   : &st_close);
	}
	if (r->in.streams)
		return (body_empty(&r->body) ? &st_handle : conn_defer(c));
	if (c->handler->reads_body && r->in.left != 0 && r->in.streamed == 0)
		return (body_empty(&r->body) ? &st_upload : conn_defer(c));
	if (r->in.left != 0)
		return (body_empty(&r->body) ? &st_skip_body : conn_defer(c));
	return (&st_handle);
}

static const struct conn_state *
answered(struct conn *c)
{
	/* Further heads may be in the buffer: answer them too, then send once. */
	if (c->in.n != 0 && !c->close_after && c->r->in.left == 0 &&
	    c->r->body.left < BATCH_BYTES && c->r->body.n <= BATCH_PIECES &&
	    c->r->sender.limit == 0 && !rate_is_set(c->r) && reply_log_may_batch(c->r)) {
		reply_log(c->r, true);
		return (&st_read_head);
	}
	return (&st_send);
}

/* What follows the handler's work. */
static const struct conn_state *
outcome_state(struct conn *c, enum outcome o)
{
	switch (o) {
	case OUTCOME_NONE: break;
	case OUTCOME_REPLY: return (answered(c));
	case OUTCOME_AGAIN: return (&st_route);
	case OUTCOME_CUT: c->cut = true; return (&st_finish);
	}
	return (WAIT);
}

const struct conn_state *
conn_handle(struct conn *c)
{
	c->r->peeks = !body_empty(&c->r->body);
	c->r->steps++;
	c->outcome = OUTCOME_NONE;
	switch (c->handler->start(c->r)) {
	case HANDLED_REPLY: return (answered(c));
	case HANDLED_NOT_NOW: return (conn_defer(c));
	case HANDLED_AGAIN: return (&st_route);
	case HANDLED_LATER: break;
	}
	if (!conn_settle(c))
		conn_stop(c); /* the connection may be receiving for the handler */
	else if (c->outcome != OUTCOME_NONE)
		return (outcome_state(c, c->outcome));
	else if (c->r->in.streams)
		conn_stream(c); /* may find a malformed body, which is answered at once */
	else
		conn_watch(c);
	return (c->closing ? WAIT : outcome_state(c, c->outcome));
}

/* After this send nothing is left to wait for: see conn_finish(). */
static bool
send_is_last(const struct conn *c)
{
	return (c->close_after && !c->cut && !c->deferred && !c->tunnel && c->sent == NULL &&
		c->behind_send == OUTCOME_NONE && c->r->in.left == 0 && !c->r->in.streams);
}

static void
start_sender(struct conn *c)
{
	struct request *r = c->r;

	conn_watch_end(c);
	c->sending = true;
	r->sender.exact = r->site != NULL && r->site->timing != TIMING_OFF;
	r->sender.ends = send_is_last(c);
	/* of a stream the connection has it */
	r->sender.rate = c->parent == NULL ? (uint32_t)r->conf->min_write_rate : 0;
	rate_apply(r);
	sender_start(&r->sender, &r->body, (uint32_t)(1000 * r->conf->write_idle), sender_ended);
}

const struct conn_state *
conn_send(struct conn *c)
{
	if (body_empty(&c->r->body))
		return (&st_finish);
	start_sender(c);
	c->state = &st_finish; /* entered by sender_ended() */
	/* A head that nobody reads any more is not copied: most requests are finished after this
	 * send. */
	if (!c->deferred && !reply_log_needs_head(c->r)) {
		if (c->r->head_lent)
			c->r->http.target = TEXT_NONE;
		c->r->head = TEXT_NONE;
	}
	if (!conn_settle(c))
		conn_stop(c);
	else if (c->r->in.streams)
		conn_stream(c); /* drops the rest of the body meanwhile */
	return (WAIT);
}

static void
sender_ended(struct sender *s, int err)
{
	struct request *r = container_of(s, struct request, sender);
	struct conn *c = r->conn;
	void (*sent)(struct request *, int) = c->sent;
	enum outcome o = c->behind_send;

	c->sending = false;
	c->sent = NULL;
	c->behind_send = OUTCOME_NONE;
	count_add(c->w->base.counts.conn, bytes_sent, s->sent);
	r->sent += s->sent;
	if (err == -ENODATA)
		count(c->w->base.counts.reply, file_shrunk);
	else if (err == -ETXTBSY)
		count(c->w->base.counts.reply, file_changed);
	else if (err != 0 && reply_error_is_clients(err))
		count(c->w->base.counts.conn, client_gone);
	else if (err != 0)
		count(c->w->base.counts.reply, file_failed);
	if (conn_ended_while_waiting(c))
		return;
	if (o != OUTCOME_NONE) {
		if (err != 0)
			conn_stop(c);
		else
			conn_go(c, outcome_state(c, o));
		return;
	}
	if (sent != NULL) {
		sent(r, err);
		conn_watch_on(c);
		return;
	}
	if (err != 0) {
		reply_log_broken(r, err);
		c->cut = true;
		c->client_gone = reply_error_is_clients(err);
	}
	conn_run(c);
}

const struct conn_state *
conn_finish(struct conn *c)
{
	struct request *r = c->r;

	if (!conn_stream_ends(c))
		return (WAIT);
	if (c->cut) {
		reply_log_cut(r);
		/* Complete replies before this one may still be on their way: see conn_linger(). */
		return (c->client_gone || c->parent != NULL ? &st_close : &st_linger);
	}
	if (c->deferred)
		return (&st_route);
	if (c->tunneler != NULL && !c->tunnel)
		clients_give(c->w->base.conf.tunnels,
		    &c->tunneler); /* the application did not switch */
	reply_log(r, false);
	if (r->in.left != 0 && conn_keeps_alive(r))
		return (&st_rest); /* the reply says so */
	if (r->in.left != 0)
		c->close_after = true;
	c->idle_s = (uint32_t)r->conf->keepalive_idle;
	if (c->parent != NULL)
		return (&st_close);
	if (!c->close_after)
		return (&st_read_head);
	/* With unread input close() sends a reset, which destroys the reply on its way.  Only a
	 * client that announced its end sends no more. */
	if (r->http.keep_alive || r->in.left != 0 || c->in.n != 0 || io_sock_says_end(&c->sock))
		return (&st_linger);
	return (&st_close);
}

/* The client has a part of the reply: it left while the application thought about the rest, or the
 * connection was stopped. */
static void
request_left(struct request *r)
{
	if (r->sent != 0)
		reply_log_cut(r);
	requests_give(r);
}

static void
closed(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, op);
	struct worker *w = c->w;

	if (c->r != NULL)
		request_left(c->r);
	buf_free(&c->own);
	list_del(&c->link);
	if (c->tunneler != NULL)
		clients_give(w->base.conf.tunnels, &c->tunneler);
	if (c->parent != NULL) {
		conn_stream_left(c);
		blocks_give(&w->streams, c);
		return;
	}
	http2_free(c->h2);
	shared_set(w->nconns, w->nconns - 1);
	if (w->nconns == 0)
		overdue_end(w);
	shared_set(w->nleaving, w->nleaving - c->leaving);
	conn_phase_end(c);
	if (c->counted != NULL)
		clients_give(w->base.conf.clients, &c->counted);
	free(c);
	spread_look_soon(w);
	accept_resume(w);
}

/* The client may leave while it learns why its connection ends; its streams end first, and call
 * conn_ended_while_waiting(). */
static bool
waits_for_streams(struct conn *c)
{
	if (c->h2 == NULL || c->closing || !conn_in_flight(c))
		return (false);
	conn_stop(c);
	return (conn_in_flight(c));
}

const struct conn_state *
conn_close(struct conn *c)
{
	if (waits_for_streams(c))
		return (WAIT);
	must(!conn_in_flight(c)); /* the kernel would write to freed memory */
	c->op.cuts = c->closing || c->cut;
	c->closing = true;
	c->op.kind = IO_CLOSE;
	c->op.done = closed;
	c->op.deadline_ms = 0;
	op_submit(c->w->base.io, &c->op);
	return (WAIT);
}

/* ---- life */

/* A client that leaves is seen by watched() (input.c) during a wait for a file or an application,
 * by sent() (io/sender.c) during a reply.  A thread that works for it goes on: io_job_abandon(). */
void
conn_stop(struct conn *c)
{
	if (c->closing)
		return;
	c->closing = true;
	if (c->h2 != NULL)
		conn_stop_streams(c);
	if (c->r != NULL)
		request_drop_spools(c->r);
	if (c->state == &st_probe)
		file_lookup_cancel(&c->r->wait);
	if (c->state == &st_handle && c->handler->stop != NULL)
		c->handler->stop(c->r);
	if (c->receiving || c->watching)
		op_cancel(c->w->base.io, &c->op);
	if (c->sending)
		sender_cancel(&c->r->sender);
	if (!conn_in_flight(c) && !c->in_run)
		conn_go(c, &st_close);
}

void
conn_stop_all(struct worker *w)
{
	struct conn *c;

	list_each(c, &w->conns, link) {
		conn_stop(c);
		if (c->h2_lost)
			conn_cut_streams(c);
	}
}

struct conn *
conn_of_link(struct list *l)
{
	return (list_entry(l, struct conn, link));
}

/* ---- for handlers */

/* The handler has done its part.  A 1xx may still be on its way, and start() may still run. */
static void
decided(struct conn *c, enum outcome o)
{
	if (c->closing)
		return;
	if (c->state != &st_handle)
		conn_bug(c, "a handler answered a request that is not its own");
	else if (c->sending)
		c->behind_send = o;
	else if (c->in_run)
		c->outcome = o; /* conn_handle() goes on */
	else
		conn_go(c, outcome_state(c, o));
}

void
conn_request_replied(struct request *r)
{
	decided(r->conn, OUTCOME_REPLY);
}

void
conn_request_route_again(struct request *r)
{
	decided(r->conn, OUTCOME_AGAIN);
}

void
conn_request_cut(struct request *r)
{
	decided(r->conn, OUTCOME_CUT);
}

void
conn_request_close_after(struct request *r)
{
	r->conn->close_after = true;
}

void
conn_request_leaves(struct request *r)
{
	r->conn->close_after = true;
	if (r->conn->parent != NULL)
		r->conn->parent->close_after = true;
}

/* A client that waits for 100 Continue and gets a reply instead may send its body or not. */
static bool
body_is_dropped(const struct request *r)
{
	return ((!r->http.expect_continue || r->conn->continued) &&
		(r->in.streams || r->in.left <= SKIP_MAX));
}

bool
conn_request_keeps_alive(const struct request *r)
{
	if (r->in.left != 0 && !body_is_dropped(r))
		r->conn->close_after = true; /* even if the body comes after all */
	return (!r->conn->close_after);
}

void
conn_request_send_body(struct request *r, void (*sent)(struct request *, int err))
{
	struct conn *c = r->conn;

	if (c->sending) {
		conn_bug(c, "two sends at once");
		return;
	}
	c->sent = sent;
	start_sender(c);
}

static void
request_stop(struct request *r)
{
	conn_stop(r->conn);
}

static void
request_show(struct request *r)
{
	conn_phase_show(r->conn);
}

const struct conn_verbs conn_verbs = {
	.replied = conn_request_replied,
	.route_again = conn_request_route_again,
	.cut = conn_request_cut,
	.close_after = conn_request_close_after,
	.leaves = conn_request_leaves,
	.keeps_alive = conn_request_keeps_alive,
	.id = conn_request_id,
	.number = conn_request_number,
	.remote = conn_request_remote,
	.client = conn_request_client,
	.tell_refused = conn_request_tell_refused,
	.remote_port = conn_request_remote_port,
	.peer = conn_request_peer,
	.named_client = conn_request_named_client,
	.over_rate = conn_request_over_rate,
	.metered_client = conn_request_metered_client,
	.share = conn_request_share,
	.takes_tunnel = conn_request_takes_tunnel,
	.passed = conn_request_passed,
	.client_ended = conn_request_client_ended,
	.claims = conn_request_claims,
	.trusted = conn_request_trusted,
	.scheme = conn_request_scheme,
	.facts = conn_request_facts,
	.local = conn_request_local,
	.local_port = conn_request_local_port,
	.requests = conn_request_requests,
	.listener = conn_request_listener,
	.show = request_show,
	.body_room = conn_request_body_room,
	.early_reply = conn_request_early_reply,
	.tunnel = conn_request_tunnel,
	.tunnel_half = conn_request_tunnel_half,
	.trailers = conn_request_trailers,
	.upload_too_long = conn_request_upload_too_long,
	.send_body = conn_request_send_body,
	.stop = request_stop,
};
