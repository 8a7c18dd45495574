/* proxy-core/exchange_hedge.c -- a second try at another backend when the first one is slow.
 *
 *   exchange  |-- waits, or asked, without a byte --|-- hedge_ms is over --X  forgotten
 *   rival                                           |-- asked -- head --> is the exchange now
 *
 * The rival is an exchange of its own until the head of its reply.  Then the caller gets the
 * rival's pointer (on_moved), and the first exchange is forgotten: its socket closes, which cancels
 * the request there.  The first exchange forgets the rival when its own head comes.  A rival that
 * fails or answers 5xx is dropped.  An exchange that fails leaves its request to the rival.
 *
 * At most hedge_percent of the requests of a worker get a second try.  When all requests to a
 * backend are late, most of them end by the other deadlines, and these count as its failures.
 */
#include "base/clock.h"
#include "base/log.h"
#include "proxy-core/exchange_impl.h"

#define HEDGE_COST 100u /* of u->hedge_credit; each request adds its percent */
/* after a quiet time at most this many second tries are saved up */
#define HEDGE_SAVE (20u * HEDGE_COST)

void
hedge_earn(struct upstream *u, const struct exchange_conf *c)
{
	u->hedge_credit += c->hedge_ms > 0 ? c->hedge_percent : 0;
	if (u->hedge_credit > HEDGE_SAVE)
		u->hedge_credit = HEDGE_SAVE;
}

/* ---------------------------------------------------------------- the second try ends */

/* A failure of the first try comes too late to matter. */
static void
nobody_ends(void *arg, int status, unsigned retry_after_s)
{
}

static const struct exchange_sink nobody = { .on_end = nobody_ends };

static void
part(struct exchange *r)
{
	r->first->rival = NULL;
	r->first = NULL;
}

void
hedge_cancel(struct exchange *x)
{
	struct exchange *r = x->rival;

	if (r == NULL)
		return;
	part(r);
	exchange_forget(&r, false);
}

/* The rival gets the caller and all state of the whole request; returns the first try, which has no
 * caller now. */
static struct exchange *
take_over(struct exchange *r)
{
	struct exchange *x = r->first;

	part(r);
	r->sink = x->sink;
	r->arg = x->arg;
	r->times.start = x->times.start;
	if (x->first_ns != 0)
		r->first_ns = x->first_ns;
	r->tries += x->tries;
	r->tried = x->tried;
	r->refused = x->refused;
	r->faults += x->faults;
	r->paused = x->paused;
	x->sink = nobody;
	x->arg = x;
	r->sink.on_moved(r->arg, r);
	return (x);
}

bool
hedge_inherits(struct exchange *x)
{
	if (x->rival == NULL)
		return (false);
	take_over(x->rival);
	x->req = NULL; /* the caller may end the request now */
	return (true);
}

void
hedge_end_left(struct exchange *x)
{
	must(x->state == x_ended && x->sink.on_end == nobody_ends);
	x->forgotten = true;
}

/* ---------------------------------------------------------------- the sink of a rival */

static void
log_won(const struct exchange *r, const struct exchange *x)
{
	log_limited(1, LOG_WARN, r->req->id, "exchange.hedged", LF_STR("slow", exchange_backend(x)),
	    LF_STR("answered", exchange_backend(r)), LF_STR("stage", exchange_state(x)),
	    LF_TEXT("url", r->req->target),
	    LF_U64("ms", (io_now(r->u->io) - x->times.start) / NS_PER_MS),
	    LF_TEXT("client", r->req->remote_addr));
}

static void
rival_head(void *arg, const struct proxy_reply *p)
{
	struct exchange *r = arg, *x = r->first;

	if (p->status >= 500) {
		part(r);
		exchange_forget(&r, true);
		return;
	}
	count(r->u->counters, proxy_hedges_won);
	log_won(r, x);
	take_over(r);
	exchange_forget(&x, false);
	r->sink.on_head(r->arg, p);
}

static void
rival_end(void *arg, int status, unsigned retry_after_s)
{
	part(arg);
}

static const struct exchange_sink rival_sink = { .on_head = rival_head, .on_end = rival_end };

/* ---------------------------------------------------------------- the second try begins */

static bool
may_repeat(const struct exchange *x)
{
	const struct proxy_request *q = x->req;

	return (q != NULL && q->safe && !q->unsized && q->content_length <= 0 &&
		q->upgrade.n == 0 && x->conf.place == 0 && x->sink.on_moved != NULL);
}

/* No byte came in time. */
static bool
is_slow(const struct exchange *x, uint64_t now)
{
	return (x->conf.hedge_ms != 0 && !x->hedged && x->first == NULL &&
		now - x->times.start >= x->conf.hedge_ms * NS_PER_MS &&
		(x->state == x_wait || (x->state == x_head && !lease_heard(x->lease))));
}

/* A backend that has not been asked, works, and has a socket at once; or BALANCE_NONE. */
static size_t
pick(const struct exchange *x)
{
	struct upstream *u = x->u;
	uint64_t tried = x->tried;
	struct pool *p;
	size_t i;

	while ((i = upstream_pick(u, x->req, tried, 0)) != BALANCE_NONE) {
		p = u->members.slot[i].pool;
		if (pool_room(p, io_now(u->io)) && !pool_probing(p) && !pool_failing(p))
			break;
		tried |= 1ull << i;
	}
	return (i);
}

static void
begin(struct exchange *x, struct exchange *r, size_t i)
{
	struct upstream *u = x->u;

	u->hedge_credit -= HEDGE_COST;
	count(u->counters, proxy_hedges);
	x->hedged = true;
	x->tried |= 1ull << i;
	x->rival = r;
	r->first = x;
	exchange_start_at(r, u->members.slot[i].pool);
}

void
hedge_tick(struct exchange *x, uint64_t now)
{
	struct exchange *r;
	size_t i;

	if (!is_slow(x, now) || !may_repeat(x))
		return;
	if (x->u->hedge_credit < HEDGE_COST) {
		if (!x->unhedged)
			count(x->u->counters, proxy_hedges_refused);
		x->unhedged = true;
		return;
	}
	r = exchange_new(x->u, x->req, &x->conf, &rival_sink, NULL);
	if (r == NULL)
		return;
	r->arg = r;
	/* Only now: a new exchange may have replaced backends. */
	if (is_slow(x, now) && (i = pick(x)) != BALANCE_NONE)
		begin(x, r, i);
	else
		exchange_destroy(r);
}
