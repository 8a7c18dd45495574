/* proxy-core/exchange_yield.c -- a request gives its socket back for a client that has none; see
 * yield.h.
 *
 *   tick --> yield_tick(): debts --> upstream_yield(): a pool is full, and a client without a
 *                                    socket waits, or any --> the worst exchange of the pool ends
 *
 * Before the head of its reply the request gets 503; later its client's connection is cut, as for
 * an application that fails.  The application is not blamed.
 */
#include <errno.h>
#include "base/log.h"
#include "proxy-core/exchange_impl.h"

static bool
has_ended(const struct exchange *x)
{
	return (x->sink.ended != NULL && x->sink.ended(x->arg));
}

/* A proxy that does not name its clients has many.  A request without a client has no place to
 * report it.
 */
static bool
may_yield(const struct exchange *x)
{
	return (x->lease != NULL && x->req != NULL && x->sink.passed != NULL &&
		((x->req->client != 0 && !x->req->nobody) || has_ended(x)) && x->state >= x_head &&
		x->state <= x_tunnel);
}

void
yield_tick(struct exchange *x, uint64_t now)
{
	if (x->lease == NULL || x->sink.passed == NULL)
		x->debt.at_ns = 0;
	else if (x->debt.at_ns == 0)
		yield_start(&x->debt, now, x->sink.passed(x->arg));
	else if (now - x->debt.at_ns >= YIELD_SAMPLE_NS)
		yield_note(&x->debt, now, x->sink.passed(x->arg));
}

static bool
owes_body(const struct exchange *x)
{
	return (x->state == x_head && x->body_left > 0 && !x->send_failed);
}

static struct yield_holder
holder_of(const struct exchange *x)
{
	struct yield_holder h = { .debt = &x->debt,
		.of = pool_sockets(x->pool),
		.page = x->state == x_head && !owes_body(x),
		.tunnel = x->state == x_tunnel,
		.ended = has_ended(x) };

	h.sockets = lease_client_sockets(x->lease, &h.queues);
	return (h);
}

static const char *
why(const struct exchange *x)
{
	if (x->state == x_tunnel)
		return ("a tunnel");
	if (has_ended(x))
		return ("its client sends no more, and may be gone");
	if (owes_body(x))
		return ("its body comes slowly");
	if (x->state == x_head)
		return ("the application has not answered");
	return (x->paused ? "its client reads slowly" : "its reply comes slowly");
}

static void
give_way(struct exchange *x, const struct yield_holder *h)
{
	count(x->u->counters, proxy_gave_way);
	log_limited(LINES_PER_SECOND, LOG_WARN, x->req->id, "exchange.gave-way",
	    LF_TEXT("client", x->req->remote_addr), LF_STR("backend", exchange_backend(x)),
	    LF_TEXT("url", x->req->target), LF_STR("holder", why(x)),
	    LF_STR("why",
		h->ended ? "another request waits, and every socket of the pool is busy"
			 : "a client of another address has no socket, and every socket of the "
			   "pool is busy"),
	    LF_U64("sockets", h->sockets), LF_U64("behind_ms", x->debt.behind_ns / NS_PER_MS),
	    LF_STR("then", x->state == x_head ? "reply 503" : "cut the client's connection"));
	if (x->state == x_body) {
		exchange_release(x, false);
		exchange_end(x, -ECANCELED);
	} else {
		x->cause = OWN_5XX_gave_way;
		exchange_fail(x, x->state == x_head ? 503 : -ECANCELED);
	}
}

/* Picks first: the end of an exchange calls others back. */
static struct exchange *
worst_of(struct upstream *u, const struct pool *p, const struct pool_lack *lack,
    const struct yield_wait *w)
{
	struct yield_holder h, most = { 0 };
	struct exchange *x, *worst = NULL;

	list_each(x, &u->exchanges, link) {
		if (x->pool != p || !may_yield(x) || x->debt.at_ns == 0)
			continue;
		if (lack->own && x->wait.client != lack->wait->client)
			continue;
		h = holder_of(x);
		if (yield_may(&h, w) && (worst == NULL || yield_before(&h, &most))) {
			worst = x;
			most = h;
		}
	}
	return (worst);
}

static void
pool_yield(struct upstream *u, struct pool *p, uint64_t now)
{
	const struct pool_lack lack = pool_lacks(p);
	struct yield_holder h;
	struct yield_wait w;
	struct exchange *x;

	if (lack.wait == NULL)
		return;
	x = list_entry(lack.wait, struct exchange, wait);
	w = (struct yield_wait){ .for_ns = now - lack.wait->turn.since_ns,
		.max_ns = x->conf.wait_ms * NS_PER_MS,
		.has_one = lack.has_one };
	x = worst_of(u, p, &lack, &w);
	if (x == NULL)
		return;
	h = holder_of(x);
	exchange_enter(x);
	give_way(x, &h);
	exchange_leave(x);
}

void
upstream_yield(struct upstream *u, uint64_t now)
{
	const struct member *mb;
	size_t i;

	members_each(&u->members, mb, i)
		pool_yield(u, mb->pool, now);
}
