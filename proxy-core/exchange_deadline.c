/* proxy-core/exchange_deadline.c -- the deadlines of an exchange, checked at each tick.
 *
 *   start -> leased -> whole request sent -> head -> body ... body -> end
 *   |wait_ms|                                                           connect_ms is the pool's
 *                      |----- reply_ms ------|
 *                  read_ms from each byte to the next, in both directions
 *           |---------------------- total_ms -----------------------|
 */
#include <errno.h>
#include "base/clock.h"
#include "proxy-core/exchange_impl.h"

/* The backend owes an answer, more of it, or room for more of the request.  While a part of the
 * body is missing, the backend may wait for that. */
static bool
backend_owes(const struct exchange *x)
{
	bool missing = x->body_left > 0 && !x->send_failed;

	return ((x->state == x_body && !missing) || x->asked_ns > 0 || x->send_failed ||
		lease_sending(x->lease) || x->body.n > 0);
}

/* True if ms milliseconds have passed since then.  ms 0: never. */
static bool
passed(uint64_t since_ns, unsigned ms, uint64_t now)
{
	return (ms != 0 && now > since_ns && now - since_ns >= ms * NS_PER_MS);
}

static bool
is_silent(const struct exchange *x, uint64_t now)
{
	if (x->lease == NULL || !backend_owes(x))
		return (false);
	return (passed(exchange_progress_ns(x), x->conf.read_ms, now));
}

/* Bytes that do not complete a head are not progress, so a dripping head ends, too. */
static bool
head_is_late(const struct exchange *x, uint64_t now)
{
	if (x->asked_ns > 0 && x->conf.reply_ms != 0)
		return (passed(x->asked_ns, x->conf.reply_ms, now));
	return (is_silent(x, now));
}

/* Which deadline of the exchange has passed.  NULL: none. */
static const char *
late(const struct exchange *x, uint64_t now)
{
	if (x->first_ns != 0 && passed(x->first_ns, x->conf.total_ms, now))
		return ("the whole reply did not come in time");
	if (x->state == x_head && head_is_late(x, now))
		return ("no reply in time");
	if (x->state == x_body && !x->paused && is_silent(x, now))
		return ("the backend fell silent within its reply");
	return (NULL);
}

/* A request that waited its time at one backend does not wait at another. */
static void
exchange_wait_over(struct exchange *x)
{
	static const struct exchange_failure late = { "wait", "no socket became free in time",
		-ETIMEDOUT };

	pool_unget(x->pool, &x->wait);
	exchange_refuse(x, 503, &late);
}

void
exchange_tick(struct list *link, uint64_t now)
{
	struct exchange *x = list_entry(link, struct exchange, link);
	const char *why;

	yield_tick(x, now);
	exchange_enter(x);
	if (x->state == x_wait && now >= x->until_ns)
		exchange_wait_over(x);
	else if (x->state == x_drain && now >= x->until_ns)
		exchange_fail(x, 0);
	else if (x->state == x_tunnel)
		tunnel_tick(x, now);
	else if ((x->state == x_head || x->state == x_body) && (why = late(x, now)) != NULL)
		exchange_broken(x, 504, -ETIMEDOUT, why);
	else
		hedge_tick(x, now);
	exchange_leave(x);
}

void
exchange_end_drain(struct list *link)
{
	struct exchange *x = list_entry(link, struct exchange, link);

	exchange_enter(x);
	if (x->state == x_drain)
		exchange_fail(x, 0);
	else
		hedge_end_left(x);
	exchange_leave(x);
}
