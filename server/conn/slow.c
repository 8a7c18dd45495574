/* server/conn/slow.c -- connections whose clients are slow, when a worker is full.
 *
 *   busy list of the address with most:  [slow][slow][oldest]...[newest]
 *
 * A look moves the slow ones to the front, so each connection that is cut afterwards is one step.
 * Slow is a debt over time (base/rate.h): only time in which the server waits for the client adds
 * to it.  So neither a long look-up nor a slow application makes a client slow.
 */
#include "base/clock.h"
#include "base/rate.h"
#include "io/http2/http2.h"
#include "io/sender.h"
#include "server/conn/impl.h"
#include "server/request/request.h"

#define SLOW_NS    (5 * NS_PER_S)
#define SLOW_RATE  (64u << 10) /* bytes a second */
#define PACED_RATE BODY_RATE   /* for a reply that the server itself sends at a limited rate */

static CONNECTION_SLOT(struct slowness, mine);

static bool
waits_for_client(const struct conn *c)
{
	return (
	    c->receiving || c->tunnel || (c->sending && !sender_waited_for_disk(&c->r->sender)));
}

static uint32_t
rate_of(const struct request *r)
{
	const struct sender *s = &r->sender;

	return (sender_is_paced(s) ? PACED_RATE : SLOW_RATE);
}

/* The first look at a file that was sent without a wait counts from the beginning of the
 * request. */
static void
begin(struct slowness *s, const struct request *r, uint64_t now)
{
	bool waited = r->cold || r->proxied;

	s->at_ns = waited ? now : r->started_ns;
	s->seen = waited ? conn_passed(r) : 0;
	s->behind_ns = 0;
}

static bool
look(struct slowness *s, uint64_t now, bool waits, uint64_t bytes, uint32_t rate)
{
	debt_note(&s->behind_ns, waits ? now - s->at_ns : 0, (int64_t)(bytes - s->seen), rate);
	s->at_ns = now;
	s->seen = bytes;
	return (s->behind_ns >= SLOW_NS);
}

/* Its streams share one client. */
static bool
streams_are_slow(struct conn *c, uint64_t now)
{
	struct slowness *s = &c->slow;

	if (s->at_ns == 0)
		*s = (struct slowness){ .at_ns = now, .seen = http2_sent(c->h2) };
	return (look(s, now, http2_waits(c->h2), http2_sent(c->h2),
	    c->pace.limit != 0 ? PACED_RATE : SLOW_RATE));
}

bool
conn_is_slow(const struct eviction_member *m)
{
	struct conn *c =
	    container_of((struct eviction_member *)(uintptr_t)m, struct conn, eviction);
	uint64_t now = io_now(c->w->base.io);
	struct request *r = c->r;
	struct slowness *s;

	if (c->closing)
		return (false);
	if (c->h2 != NULL)
		return (streams_are_slow(c, now));
	if (r == NULL)
		return (false);
	s = connection_slot(r, mine);
	if (s->at_ns < r->started_ns)
		begin(s, r, now);
	return (look(s, now, waits_for_client(c), conn_passed(r), rate_of(r)));
}

struct eviction_member *
conn_seek_slow(struct list *busy)
{
	struct eviction_member *m, *found = NULL;

	list_each(m, busy, link) {
		if (!conn_is_slow(m))
			continue;
		list_del(&m->link);
		list_add_head(busy, &m->link);
		found = m;
	}
	return (found);
}
