/* proxy-core/yield.c -- see yield.h */
#include "proxy-core/yield.h"

#include "base/rate.h"

void
yield_start(struct yield_debt *d, uint64_t now, uint64_t bytes)
{
	*d = (struct yield_debt){ .at_ns = now, .seen = bytes };
}

void
yield_note(struct yield_debt *d, uint64_t now, uint64_t bytes)
{
	uint64_t passed = now - d->at_ns;
	int64_t more = (int64_t)(bytes - d->seen);

	debt_note(&d->behind_ns, passed, more, YIELD_RATE);
	debt_note(&d->lone_ns, passed, more, YIELD_LONE_RATE);
	d->at_ns = now;
	d->seen = bytes;
}

static bool
waited_enough(const struct yield_holder *h, const struct yield_wait *w)
{
	uint64_t half = w->max_ns / 2;

	if ((!h->page || h->ended) && half > YIELD_WAIT_NS)
		half = YIELD_WAIT_NS;
	return (w->for_ns >= half);
}

/* The exchange may go on for ever, so passing bytes do not keep its socket from all others. */
static bool
is_endless(const struct yield_holder *h, const struct yield_wait *w)
{
	return (
	    h->tunnel && h->sockets >= 2 && 2 * h->sockets >= h->of && w->for_ns >= w->max_ns / 2);
}

bool
yield_may(const struct yield_holder *h, const struct yield_wait *w)
{
	if (w->has_one && !h->ended)
		return (false);
	if (!waited_enough(h, w))
		return (false);
	if (h->ended)
		return (h->debt->behind_ns >= YIELD_NS);
	if (is_endless(h, w))
		return (true);
	if (h->sockets < 2)
		return (h->debt->lone_ns >= YIELD_LONE_NS && (!h->page || h->queues));
	return (h->debt->behind_ns >= YIELD_NS && (!h->page || 2 * h->sockets >= h->of));
}

bool
yield_before(const struct yield_holder *a, const struct yield_holder *b)
{
	if (a->ended != b->ended)
		return (a->ended);
	if (a->sockets != b->sockets)
		return (a->sockets > b->sockets);
	if (a->page != b->page)
		return (b->page);
	return (a->debt->behind_ns > b->debt->behind_ns);
}
