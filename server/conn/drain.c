/* server/conn/drain.c -- connections when their generation ends: idle ones move to the next
 * generation at once, busy ones after their reply.
 */
#include "base/clock.h"
#include "server/conn/impl.h"
#include "server/conn/handover.h"
#include "server/conn/spread.h"

#define FRESH_MS 1000u /* after accept: time for the first request to arrive */

/* True just after accept: the first request may be on its way. */
static bool
is_fresh(const struct conn *c)
{
	return (c->nreq == 0 && io_now(c->w->base.io) - c->op.at.submit < FRESH_MS * NS_PER_MS);
}

bool
conn_moves(const struct worker *w)
{
	return (w->draining && handover_is_open(w->base.conf.handover));
}

bool
conn_hand_over(struct conn *c)
{
	struct moved m = { .nreq = c->nreq,
		.from = eviction_address(&c->eviction),
		.peer = c->peer,
		.proxied = c->proxied,
		.tls = c->tls,
		.secure = c->secure,
		.counted = c->counted,
		.listener = c->listener };

	if (!handover_is_open(c->w->base.conf.handover) || c->close_after)
		return (false);
	m.fd = io_sock_dup(&c->sock);
	if (m.fd < 0)
		return (false);
	m.transport = io_sock_unplug(&c->sock); /* before another thread has it */
	if (!handover_give(c->w->base.conf.handover, c->w, &m)) {
		io_sock_plug(&c->sock, m.transport);
		io_close_fd(m.fd);
		return (false);
	}
	c->counted = NULL;
	c->leaving = true;
	if (!c->w->draining)
		count(c->w->base.counts.conn, spread);
	shared_set(c->w->nleaving, c->w->nleaving + 1);
	return (true);
}

static bool
is_idle(const struct conn *c)
{
	return ((c->state == &st_read_head || c->state == &st_proxy_header) && c->r == NULL &&
		c->in.n == 0 && !c->closing);
}

void
conn_spread(struct conn *c)
{
	if (!is_idle(c))
		return;
	if (!spread_is_due(c->w))
		c->w->to_drain = 0;
	else if (conn_hand_over(c))
		conn_stop(c);
}

/* Without a next generation: the kernel may hold a request of a connection that looks silent.  That
 * request is answered. */
void
conn_drain(struct conn *c)
{
	if (c->h2 != NULL) { /* GOAWAY tells its client, whatever is on its way */
		c->close_after = true;
		if (c->receiving)
			op_cancel(c->w->base.io, &c->op); /* conn_http2() goes on */
		return;
	}
	/* A reply under way has promised to keep the connection, and an idle client may be sending
	 * its next request: that one is answered, with "Connection: close". */
	if (handover_is_retired(c->w->base.conf.handover))
		return;
	if (is_idle(c) && (conn_hand_over(c) || (!is_fresh(c) && io_sock_alive(&c->sock))))
		conn_stop(c);
	else if (!conn_moves(c->w))
		c->close_after = true;
}

void
conn_adopt(struct worker *w, struct moved *m)
{
	count(w->base.counts.conn, adopted);
	conn_begin(w, m);
}
