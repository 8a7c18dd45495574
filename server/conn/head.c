/* server/conn/head.c -- collects a request head.
 *
 * A connection with an incomplete head holds its bytes and nothing else.  Its struct request goes
 * back to the worker, and the head is parsed from its beginning when more bytes have come.
 */
#include <errno.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/conn/impl.h"
#include "server/request/fault.h"
#include "server/reply/reply.h"
#include "server/request/request.h"
#include "server/request/told.h"
#include "server/conn/spread.h"
#include "wire/http1/http1.h"

static void
drop_request(struct conn *c)
{
	c->due_ns = c->r->sender.due_ns;
	requests_give(c->r);
	c->r = NULL;
}

static const struct conn_state *
idle(struct conn *c)
{
	if (c->r != NULL)
		drop_request(c);
	if (c->w->draining &&
	    (conn_hand_over(c) || (c->nreq != 0 && !handover_is_retired(c->w->base.conf.handover))))
		return (&st_close);
	if (!c->w->draining && spread_is_due(c->w) && conn_hand_over(c))
		return (&st_close);
	return (conn_want_bytes(c, c->idle_s != 0 ? 1000 * c->idle_s : 1));
}

/* A malformed head is logged by its first line only.  The rest is not trusted, and does not outlive
 * its buffer. */
static void
forget_head(struct request *r)
{
	struct text line = r->http.line;

	memset(&r->http, 0, offsetof(struct http_request, headers));
	if (line.p != NULL)
		r->http.line = arena_text(&r->arena, line);
	r->http.verb = HTTP_GET;
	r->http.major = r->conn->parent != NULL ? 2 : 1;
	r->http.keep_alive = true; /* the client has not announced that it will close */
}

const struct conn_state *
conn_refuse(struct conn *c, int status, const char *why)
{
	count(c->w->base.counts.conn, bad_requests);
	request_use(c->r, c->w->base.global);
	if (c->r->head.n == 0)
		forget_head(c->r);
	c->close_after = true;
	conn_tell_refused(c->r, status, why);
	fault_told(c->r);
	reply_error(c->r, status);
	return (&st_send);
}

static const struct conn_state *
begin_request(struct conn *c, size_t used)
{
	const struct conn_state *banned = NULL;
	struct request *r = c->r;

	r->head = text_take(&c->in, used);
	r->head_lent = true;
	c->head_ns = 0;
	c->nreq++;
	request_told(r)->handshake_ns = (uint64_t)c->handshake_us * NS_PER_US;
	c->handshake_us = 0;
	r->started_ns = io_now(c->w->base.io);
	c->dropped = 0;
	c->continued = false;
	c->debt_ns = 0;
	r->in.left = r->http.chunked ? -1 : r->http.content_length > 0 ? r->http.content_length : 0;
	if (c->trusted)
		conn_client_find(c);
	count(c->w->base.counts.conn, requests);
	if (shared_get(*c->w->bans_version) != 0)
		banned = conn_check_bans(c);
	return (banned != NULL ? banned : &st_route);
}

static bool
take_request(struct conn *c)
{
	c->r = requests_take(c->w);
	if (c->r == NULL)
		return (false);
	c->r->conn = c;
	c->r->sender.sock = &c->sock;
	c->r->sender.times = &c->r->times;
	request_taken(c->r);
	conn_client_reset(c);
	c->r->sender.debt_ns = 0;
	c->r->sender.due_ns = c->due_ns;
	memset(c->r->sender.turns, 0, sizeof(c->r->sender.turns));
	return (true);
}

static const struct conn_state *
too_slow(struct conn *c)
{
	if (c->r == NULL && !take_request(c))
		return (&st_close);
	request_reset(c->r);
	conn_client_reset(c);
	memset(&c->r->http, 0, offsetof(struct http_request, headers));
	return (conn_refuse(c, 408, "the head took longer than server.max-read-idle"));
}

uint32_t
conn_head_ms(struct conn *c)
{
	uint64_t now = io_now(c->w->base.io), limit = 1000 * c->w->base.global->read_idle, spent;

	if (c->head_ns == 0)
		c->head_ns = now;
	spent = (now - c->head_ns) / NS_PER_MS;
	return (spent < limit ? (uint32_t)(limit - spent) : 0);
}

static const struct conn_state *
more_head(struct conn *c)
{
	uint32_t left = conn_head_ms(c);

	if (left == 0)
		return (too_slow(c));
	if (c->r != NULL)
		drop_request(c);
	return (conn_want_bytes(c, left));
}

/* Parsing costs the length of the head so far.  So a head in many pieces is parsed when a line ends
 * or when it has grown by a sixty-fourth: each byte is read at most 64 times, and once for each
 * line. */
static bool
is_worth_parsing(const struct conn *c)
{
	size_t fresh = c->in.n - c->parsed;

	return (c->parsed == 0 || fresh >= c->in.n / 64 || c->in.n >= c->w->base.global->max_head ||
		memchr(c->in.p + c->parsed, '\n', fresh) != NULL);
}

const struct conn_state *
conn_read_head(struct conn *c)
{
	int status = 400;
	const char *why = "";
	size_t used;

	if (!conn_input_ends(c))
		return (WAIT);
	if (c->in_err == -ETIMEDOUT && c->in.n != 0)
		return (too_slow(c));
	if (c->in_err == -ETIMEDOUT)
		conn_tell_timeout(c);
	if (c->in_err != 0)
		return (&st_close); /* closed by the client, or idle for too long */
	if (c->in.n != 0 && c->h2 == NULL && conn_speaks_http2(c))
		return (&st_http2);
	if (c->in.n == 0 && (c->r == NULL || body_empty(&c->r->body)))
		return (idle(c));
	if (c->r == NULL && !is_worth_parsing(c))
		return (more_head(c));
	if (c->r == NULL && !take_request(c))
		return (&st_close);
	request_reset(c->r);
	if (c->trusted)
		conn_client_reset(c); /* the last request may have been another client's */
	switch ((c->parent != NULL ? http2_head : http1_head)(c->in, c->w->base.global->max_head,
	    &c->r->http, &used, &status, &why)) {
	case PARSE_DONE: c->parsed = 0; return (begin_request(c, used));
	case PARSE_BAD: return (conn_refuse(c, status, why));
	case PARSE_MORE: break;
	}
	if (!body_empty(&c->r->body))
		return (&st_send);
	c->parsed = (uint32_t)c->in.n;
	return (more_head(c));
}
