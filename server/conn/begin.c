/* server/conn/begin.c -- a connection begins: admission, the header of the PROXY protocol, the
 * handshake.
 *
 * A peer of server.proxy-protocol sends the header before anything else.  Until it is complete, the
 * connection is one without a whole request head, with the same deadline.  Limits and eviction
 * count the peer; everything else sees the address in the header.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/config/config.h"
#include "server/config/resources.h"
#include "server/conn/clients.h"
#include "server/conn/impl.h"
#include "server/conn/overdue.h"
#include "server/conn/accept.h"
#include "server/conn/spread.h"
#include "wire/proxy_protocol.h"

/* At most, for a handshake.  A client that is silent after its hello costs 44 kB, 30 times as much
 * as one that has not finished it, and a slow one needs three trips only.  That of H2O is 10 s,
 * too. */
#define HANDSHAKE_MS 10000u

/* False: the address has server.max-connections-per-address already. */
static bool
is_admitted(struct worker *w, struct client_addr from, struct client **counted)
{
	unsigned max = (unsigned)w->base.global->max_per_address;
	char name[CLIENT_ADDR_MAX];

	*counted = NULL;
	if (w->base.conf.clients == NULL ||
	    clients_take(w->base.conf.clients, from, max, counted) != -EUSERS)
		return (true);
	count(w->base.counts.conn, address_full);
	log_limited(1, LOG_WARN, NULL, "connection.refused",
	    LF_STR("address", client_addr_name(from, name)), LF_U64("connections", max),
	    LF_STR("why", "server.max-connections-per-address is reached"));
	return (false);
}

/* The number of the listener; for another name the number of no socket. */
static size_t
listener_nr(const struct worker *w, const char *listener)
{
	size_t i;

	for (i = 0; i < w->base.conf.nlisteners; i++)
		if (w->base.conf.listeners[i].name == listener)
			break;
	return (i);
}

static const struct listener *
listener_of(const struct worker *w, const char *name)
{
	size_t i = listener_nr(w, name);

	return (i < w->base.conf.nlisteners ? &w->base.conf.listeners[i] : NULL);
}

static bool
is_secure(const struct worker *w, const char *listener)
{
	const struct listener *l = listener_of(w, listener);

	return (l != NULL && l->secure != NULL);
}

static const struct conn_state *
after_header(const struct conn *c)
{
	return (c->secure ? &st_handshake : &st_read_head);
}

static void
start(struct conn *c, bool shaken)
{
	bool waits = !c->proxied && c->nreq == 0 && trust_proxies(c->trust, &c->peer);

	c->trusted = trust_forwards(c->trust, &c->peer);
	/* A reload has given TLS to its socket, or taken it: the client learns that when it comes
	 * again. */
	c->close_after = c->secure != is_secure(c->w, c->listener);
	c->state = shaken ? &st_read_head : waits ? &st_proxy_header : after_header(c);
}

static struct conn *
conn_make(struct worker *w, const struct moved *m)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return (NULL);
	c->w = w;
	c->counted = m->counted;
	c->id = w->conn_ids += w->base.conf.nworkers; /* unique over all workers */
	c->nreq = m->nreq;
	c->idle_s =
	    (uint32_t)(m->nreq != 0 ? w->base.global->keepalive_idle : w->base.global->read_idle);
	c->peer = m->peer;
	c->proxied = m->proxied;
	c->tls = m->tls;
	c->secure = m->secure;
	c->listener = m->listener;
	c->trust = w->trusts[listener_nr(w, m->listener)];
	io_sock_init(&c->sock, m->fd);
	io_sock_plug(&c->sock, m->transport);
	op_init(&c->op, IO_RECV, NULL);
	c->op.sock = &c->sock;
	return (c);
}

void
conn_begin(struct worker *w, const struct moved *m)
{
	struct client *counted = m->counted;
	struct conn *c;

	c = accept_make_room(w, m->from) ? conn_make(w, m) : NULL;
	if (c == NULL) {
		if (counted != NULL)
			clients_give(w->base.conf.clients, &counted);
		io_transport_free(m->transport);
		io_sock_reset(m->fd);
		return;
	}
	start(c, m->transport != NULL);
	list_init(&c->link);
	list_add_tail(&w->conns, &c->link);
	shared_set(w->nconns, w->nconns + 1);
	overdue_begin(w);
	conn_phase_begin(c, m->from);
	conn_run(c);
}

void
conn_new(struct worker *w, int fd, const union io_addr *peer, const char *listener)
{
	struct moved m = { .fd = fd,
		.from = client_addr_of(&peer->sa),
		.peer = *peer,
		.secure = is_secure(w, listener),
		.listener = listener };

	if (conn_refuses_peer(w, peer) || !is_admitted(w, m.from, &m.counted)) {
		io_sock_reset(fd);
		return;
	}
	count(w->base.counts.conn, accepts);
	if (!spread_gives(w, &m))
		conn_begin(w, &m);
}

/* ---- the header of the PROXY protocol */

static const struct conn_state *
no_header(struct conn *c, const char *why)
{
	char name[CLIENT_ADDR_MAX];

	count(c->w->base.counts.conn, proxy_headers_bad);
	log_limited(1, LOG_WARN, NULL, "proxy-protocol.failed",
	    LF_STR("address", client_addr_text(&c->peer.sa, name)), LF_STR("listener", c->listener),
	    LF_STR("why", why), LF_STR("then", "connection closed"),
	    LF_STR("do", "let this peer of server.proxy-protocol send the header, or remove it "
			 "from the list"));
	return (&st_close);
}

static const struct conn_state *
take_header(struct conn *c, const struct proxy_header *h, size_t used)
{
	(void)text_take(&c->in, used);
	c->head_ns = 0;
	c->proxied = true;
	c->tls = h->tls;
	if (h->has_addr)
		conn_addr_set(&c->peer, &h->addr, h->port);
	c->trusted = trust_forwards(c->trust, &c->peer);
	count(c->w->base.counts.conn, proxy_headers);
	return (conn_refuses_peer(c->w, &c->peer) ? &st_close : after_header(c));
}

static const struct conn_state *
more_header(struct conn *c)
{
	uint32_t left;

	if (c->in.n == 0) {
		if (c->w->draining && conn_hand_over(c))
			return (&st_close);
		return (conn_want_bytes(c, 1000 * c->idle_s));
	}
	left = conn_head_ms(c);
	return (left != 0 ? conn_want_bytes(c, left)
			  : no_header(c, "the header took longer than server.max-read-idle"));
}

const struct conn_state *
conn_proxy_header(struct conn *c)
{
	struct proxy_header h;
	const char *why = "";
	size_t used;

	if (c->in_err == -ETIMEDOUT && c->in.n != 0)
		return (no_header(c, "the header took longer than server.max-read-idle"));
	if (c->in_err != 0)
		return (&st_close); /* a health check connects and closes */
	switch (proxy_header_read(c->in, &h, &used, &why)) {
	case PARSE_DONE: return (take_header(c, &h, used));
	case PARSE_BAD: return (no_header(c, why));
	case PARSE_MORE: break;
	}
	return (more_header(c));
}

/* ---- the handshake */

#define TLS_1_3 0x0304

/* A port scanner and a health check connect and close. */
static void
tell_failed(const struct conn *c, const struct io_op *op)
{
	const char *why = op->handshake.why;
	char name[CLIENT_ADDR_MAX];

	if (op->res == -ECONNRESET)
		return;
	if (op->res == -ETIMEDOUT)
		why = op->deadline_ms < HANDSHAKE_MS
			  ? "the handshake took longer than server.max-read-idle"
			  : "the handshake took longer than 10 s";
	log_limited(10, LOG_INFO, NULL, "tls.failed",
	    LF_STR("address", client_addr_text(&c->peer.sa, name)), LF_STR("listener", c->listener),
	    why != NULL ? LF_STR("why", why) : LF_ERR("error", op->res),
	    LF_STR("then", "connection closed"));
}

static void
tell_challenge(const struct conn *c, const struct io_op *op)
{
	char name[CLIENT_ADDR_MAX];

	if (op->handshake.challenge)
		log_limited(10, LOG_INFO, NULL, "tls.challenge",
		    LF_STR("address", client_addr_text(&c->peer.sa, name)),
		    LF_STR("listener", c->listener));
}

static void
count_done(struct conn *c, const struct io_op *op)
{
	struct conn_counters *n = c->w->base.counts.conn;
	uint64_t ns = clock_between(op->at.submit, io_now(c->w->base.io));

	histogram_add(&c->w->base.counters->stage[stage_handshake], ns);
	c->handshake_us = ns / NS_PER_US < UINT32_MAX ? (uint32_t)(ns / NS_PER_US) : UINT32_MAX;
	if (op->handshake.version >= TLS_1_3 && op->handshake.resumed)
		count(n, tls_13_resumed);
	else if (op->handshake.version >= TLS_1_3)
		count(n, tls_13_full);
	else if (op->handshake.resumed)
		count(n, tls_12_resumed);
	else
		count(n, tls_12_full);
}

static void
count_fault(struct conn_counters *n, uint8_t fault)
{
	switch ((enum io_handshake_fault)fault) {
	case SHAKE_HTTP: count(n, tls_http); break;
	case SHAKE_NOT_TLS: count(n, tls_not_tls); break;
	case SHAKE_NOTHING_COMMON: count(n, tls_nothing_common); break;
	case SHAKE_ALERT: count(n, tls_alert); break;
	case SHAKE_OTHER: count(n, tls_other); break;
	}
}

static void
count_failed(struct conn_counters *n, const struct io_op *op)
{
	count(n, tls_failed);
	switch (op->res) {
	case -EPROTO: count_fault(n, op->handshake.fault); break;
	case -ECONNRESET:
	case -EPIPE: count(n, tls_left); break;
	case -ETIMEDOUT: count(n, tls_late); break;
	case -EAGAIN: count(n, tls_refused); break;
	default: count(n, tls_other);
	}
}

static void
shaken(struct io_op *op)
{
	struct conn *c = container_of(op, struct conn, op);

	c->receiving = false;
	if (conn_ended_while_waiting(c))
		return;
	if (op->res == 0) {
		c->tls = true;
		count_done(c, op);
		tell_challenge(c, op);
	} else {
		count_failed(c->w->base.counts.conn, op);
		tell_failed(c, op);
	}
	conn_go(c, op->res == 0 && !op->handshake.challenge ? &st_read_head : &st_close);
}

/* The conditions are those of requests to this host; what a request has else is not known yet. */
static const struct io_secure *
secure_of_host(struct io_op *op, struct text host)
{
	const struct conn *c = container_of(op, struct conn, op);
	const struct worker_base *w = &c->w->base;
	const struct conf_input in = { .socket = text_of(c->listener),
		.scheme = TEXT("https"),
		.host = host };
	const struct conf *conf = conf_view_match(w->view, &in);

	if (conf == NULL)
		return (NULL);
	op->handshake.verifier = resources_verifier(w->conf.resources, conf);
	op->handshake.challenges = conf_is_set(conf->ssl_challenges) ? conf->ssl_challenges : NULL;
	return (resources_secure(w->conf.resources, conf));
}

static uint32_t
handshake_ms(uint64_t read_idle_s)
{
	return (read_idle_s < HANDSHAKE_MS / 1000 ? (uint32_t)(1000 * read_idle_s) : HANDSHAKE_MS);
}

const struct conn_state *
conn_handshake(struct conn *c)
{
	const struct listener *l = listener_of(c->w, c->listener);

	if (l == NULL || l->secure == NULL)
		return (&st_close); /* it has said nothing yet, and TLS has gone */
	c->receiving = true;
	c->op.kind = IO_HANDSHAKE;
	c->op.done = shaken;
	c->op.client = client_addr_key(client_addr_of(&c->peer.sa));
	c->op.handshake.with = l->secure;
	c->op.handshake.verifier = l->verifier;
	c->op.handshake.challenges = l->challenges;
	c->op.handshake.choose = c->w->base.plain ? NULL : secure_of_host;
	c->op.handshake.early = c->in;
	c->op.handshake.http2 = c->w->base.global->h2proto;
	c->op.deadline_ms = handshake_ms(c->w->base.global->read_idle);
	op_submit(c->w->base.io, &c->op);
	c->in = TEXT_NONE;
	return (conn_settle(c) ? WAIT : &st_close);
}
