/* server/conn/http2.c -- a client's connection that carries streams, each of which is a struct conn
 * with a parent.
 *
 *   parent   the socket, its peer, its place among the connections; its state is st_http2
 *   stream   one request, from st_read_head to st_close, on a socket of io/http2/
 *
 * So a stream has what a connection of one request has, and limits count what they always did:
 * connections by their parents, requests by their streams.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/http2/http2.h"
#include "server/conn/impl.h"
#include "server/request/request.h"

#define LINGER_MS 2000u
/* An address that flooded is allowed less for that long: its next connection may be the next part
 * of the flood.  Behind a NAT others have less, too, which is still more than a browser needs. */
#define FLOODER_MS 10000u
/* Streams that have ended for the client may still wait for a disk or an application: all together,
 * times server.max-streams-per-connection. */
#define ENDING_MAX 2u
/* After the preface: time for the first request to arrive.  Its client would be as right to send it
 * again, but few do. */
#define FRESH_MS 1000u
#define LOOK_MS  1000u /* between two looks at one with streams, if it may never be idle */
/* The first line of the preface, RFC 9113 3.4; the library checks the rest.  Without its end:
 * the parser of HTTP/1 refuses the version as soon as it has come. */
#define PRI "PRI * HTTP/2.0"

bool
conn_speaks_http2(const struct conn *c)
{
	const struct conf *v = c->w->base.global;

	if (c->nreq != 0 || c->parent != NULL)
		return (false);
	if (c->sock.transport != NULL)
		return (io_sock_is_http2(&c->sock));
	return (v->h2proto && v->h2c && text_starts(c->in, TEXT(PRI)));
}

/* ---- streams */

static struct conn *
stream_make(struct conn *p, struct io_transport *t)
{
	struct conn *c = blocks_take(&p->w->streams, sizeof(*c));

	if (c == NULL)
		return (NULL);
	c->parent = p;
	c->w = p->w;
	c->id = p->id;
	c->nreq = p->nreq++;
	c->peer = p->peer;
	c->listener = p->listener;
	c->trust = p->trust;
	c->trusted = p->trusted;
	c->proxied = p->proxied;
	c->tls = p->tls;
	c->secure = p->secure;
	c->bans_seen = p->bans_seen;
	c->handshake_us = p->handshake_us;
	p->handshake_us = 0;
	c->close_after = true;
	c->state = &st_read_head;
	io_sock_init(&c->sock, -1);
	io_sock_plug(&c->sock, t);
	op_init(&c->op, IO_RECV, NULL);
	c->op.sock = &c->sock;
	list_init(&c->link);
	list_add_tail(&p->streams, &c->link);
	return (c);
}

static bool
stream_begins(struct http2 *h, struct io_transport *t, struct text head)
{
	struct conn *p = http2_owner(h), *c;

	if (p->closing || p->nstreams >= ENDING_MAX * (unsigned)p->w->base.global->max_streams ||
	    (c = stream_make(p, t)) == NULL)
		return (false);
	shared_set(c->w->nstreams, c->w->nstreams + 1);
	p->nstreams++;
	c->in = head;
	conn_run(c);
	return (true);
}

bool
conn_request_trailers(struct request *r, struct text lines)
{
	return (http2_trailers(&r->conn->sock, lines));
}

void
conn_stream_left(struct conn *c)
{
	struct conn *p = c->parent;

	shared_set(c->w->nstreams, c->w->nstreams - 1);
	p->nstreams--;
	p->bans_seen = c->bans_seen;
	if (p->nstreams == 0)
		p->quiet_ns = io_now(c->w->base.io);
	if (p->closing)
		(void)conn_ended_while_waiting(p);
	else if (p->nstreams == 0)
		conn_http2_look(p);
}

void
conn_cut_streams(struct conn *p)
{
	struct conn *c;

	list_each(c, &p->streams, link)
		conn_stop(c);
}

/* A reply on its way sees that its client has gone, and says so in the logs. */
void
conn_stop_streams(struct conn *p)
{
	struct conn *c;

	if (!p->h2_lost)
		http2_say_end(p->h2);
	http2_stop(p->h2);
	list_each(c, &p->streams, link)
		if (!(p->h2_lost && c->sending))
			conn_stop(c);
}

/* ---- the connection */

static const struct conn_state *
client_left(struct conn *p)
{
	if (p->nstreams != 0)
		count(p->w->base.counts.conn, client_gone);
	p->h2_lost = true;
	conn_stop(p);
	return (WAIT);
}

/* All is sent, or nothing more can be. */
static void
session_ended(struct http2 *h, int err)
{
	struct conn *p = http2_owner(h);

	if (conn_ended_while_waiting(p))
		return;
	if (err != 0) {
		(void)client_left(p);
		return;
	}
	if (conn_input_ends(p))
		conn_run(p);
}

/* Until now it was busy, even if its last stream had closed: see eviction_kind_of(). */
static void
session_is_quiet(struct http2 *h)
{
	struct conn *p = http2_owner(h);

	if (!p->closing)
		conn_phase_show(p);
}

static const struct http2_calls calls = {
	.quiet = session_is_quiet,
	.stream = stream_begins,
	.ended = session_ended,
};

/* ---- addresses of floods */

/* The row of the address; if it has none, the oldest row. */
static struct recent_address *
flooder(struct worker *w, struct client_addr from)
{
	struct recent_address *a, *oldest = w->flooders;

	for (a = w->flooders; a < w->flooders + WORKER_FLOODERS; a++) {
		if (a->seen_ns != 0 && client_addr_same(a->addr, from))
			return (a);
		if (a->seen_ns < oldest->seen_ns)
			oldest = a;
	}
	return (oldest);
}

static bool
is_flooder(struct worker *w, struct client_addr from)
{
	const struct recent_address *a = flooder(w, from);

	return (a->seen_ns != 0 && client_addr_same(a->addr, from) &&
		io_now(w->base.io) - a->seen_ns < FLOODER_MS * NS_PER_MS);
}

static void
note_flooder(struct worker *w, struct client_addr from)
{
	*flooder(w, from) = (struct recent_address){ .addr = from, .seen_ns = io_now(w->base.io) };
}

/* ---- the life of a connection */

static bool
begin(struct conn *p)
{
	const struct conf *v = p->w->base.global;
	const struct http2_conf conf = { .max_streams = (unsigned)v->max_streams,
		.max_head = v->max_head,
		.send_ms = (uint32_t)(1000 * v->write_idle),
		.send_rate = (uint32_t)v->min_write_rate,
		.is_flooder = !p->trusted && is_flooder(p->w, client_addr_of(&p->peer.sa)) };

	p->h2 = http2_new(p->w->base.io, &p->sock, &conf, &calls, p);
	p->quiet_ns = io_now(p->w->base.io);
	list_init(&p->streams);
	return (p->h2 != NULL);
}

static void
tell_over(const struct conn *p)
{
	const char *why = http2_why(p->h2);
	char name[CLIENT_ADDR_MAX];

	if (why == NULL)
		return;
	count(p->w->base.counts.conn, http2_failed);
	log_limited(1, LOG_INFO, NULL, "frames.failed",
	    LF_STR("address", client_addr_text(&p->peer.sa, name)), LF_U64("connection", p->id),
	    LF_STR("why", why), LF_STR("then", "connection closed"));
}

/* The client has broken a rule: its streams end, and it learns why. */
static const struct conn_state *
over(struct conn *p)
{
	tell_over(p);
	if (http2_is_flood(p->h2))
		note_flooder(p->w, client_addr_of(&p->peer.sa));
	conn_cut_streams(p);
	http2_end(p->h2);
	return (WAIT);
}

/* What the client sends without an end is dropped for a while, so that it can read why. */
static const struct conn_state *
linger(struct conn *p)
{
	p->in = TEXT_NONE;
	p->in_err = 0;
	io_sock_shutdown(&p->sock);
	p->head_ns = io_now(p->w->base.io);
	return (&st_linger);
}

/* Since the last stream ended; or the connection began. */
static uint64_t
idle_ms(const struct conn *p)
{
	return ((io_now(p->w->base.io) - p->quiet_ns) / NS_PER_MS);
}

static uint64_t
head_ms(const struct conn *p)
{
	uint64_t since = http2_head_since(p->h2);

	return (since != 0 ? (io_now(p->w->base.io) - since) / NS_PER_MS : 0);
}

static bool
is_fresh(const struct conn *p)
{
	return (p->nreq == 0 && idle_ms(p) < FRESH_MS);
}

/* Milliseconds until the connection is looked at, at the latest; 0: its time is over. */
static uint64_t
patience(const struct conn *p)
{
	uint64_t most = 1000 * (uint64_t)p->idle_s, head = 1000 * p->w->base.global->read_idle, ms;

	if (http2_head_since(p->h2) != 0)
		return (head > head_ms(p) ? head - head_ms(p) : 0);
	if (p->nstreams != 0)
		ms = most != 0 ? most : LOOK_MS;
	else
		ms = idle_ms(p) < most ? most - idle_ms(p) : 0;
	if (http2_is_draining(p->h2) && ms > HTTP2_DRAIN_MS)
		ms = HTTP2_DRAIN_MS;
	if (p->close_after && is_fresh(p) && ms > FRESH_MS - idle_ms(p))
		ms = FRESH_MS - idle_ms(p);
	return (ms);
}

/* As in HTTP/1, the connection takes the settings of its last request. */
void
conn_http2_routed(struct conn *c)
{
	const struct conf *v = c->r->conf;
	struct conn *p = c->parent;

	p->idle_s = (uint32_t)v->keepalive_idle;
	if (c->nreq >= v->keepalive_requests)
		p->close_after = true;
}

/* Replies on their way are sent; a request that follows is not read any more. */
void
conn_http2_leave(struct conn *p)
{
	p->close_after = true;
	http2_drain(p->h2);
	http2_last_stream(p->h2);
}

/* server.max-keep-alive-idle = 0 */
static bool
may_not_be_idle(const struct conn *p)
{
	return (p->nreq != 0 && p->nstreams == 0 && p->idle_s == 0);
}

void
conn_http2_look(struct conn *p)
{
	if (p->closing || http2_is_ending(p->h2))
		return;
	if ((p->close_after && !is_fresh(p)) || may_not_be_idle(p) ||
	    (p->nreq != 0 && counters_leaving(p->w->base.conf.counters_list)))
		http2_drain(p->h2);
	if (http2_is_drained(p->h2))
		http2_end(p->h2);
	conn_phase_show(p);
}

static const struct conn_state *
too_late(struct conn *p)
{
	if (p->nreq != 0 && http2_head_since(p->h2) == 0)
		conn_tell_timeout(p);
	else
		count(p->w->base.counts.conn, bad_requests);
	return (over(p));
}

const struct conn_state *
conn_http2(struct conn *p)
{
	struct text in = p->in;
	uint64_t ms;
	int err = 0;

	if (p->h2 == NULL && !begin(p))
		return (&st_close);
	if (http2_has_ended(p->h2))
		return (linger(p));
	if (p->in_err != 0 && p->in_err != -ETIMEDOUT && p->in_err != -ECANCELED)
		return (client_left(p));
	p->in = TEXT_NONE;
	if (in.n != 0)
		err = http2_receive(p->h2, in);
	buf_free(&p->own);
	if (http2_is_ending(p->h2))
		return (conn_want_bytes(p, LINGER_MS));
	if (err != 0)
		return (over(p));
	conn_http2_look(p);
	ms = http2_is_ending(p->h2) ? LINGER_MS : patience(p);
	if (ms == 0)
		return (too_late(p));
	return (conn_want_bytes(p, (uint32_t)ms));
}
