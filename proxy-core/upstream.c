/* proxy-core/upstream.c -- see upstream.h */
#include <limits.h>
#include <stdlib.h>
#include "base/clock.h"
#include "base/log.h"
#include "proxy-core/check.h"
#include "proxy-core/upstream.h"

/* ---------------------------------------------------------------- life */

/* This many intervals of checks may pass before another worker takes over. */
#define CHECK_OTHERS 4u

static void tick_start(struct upstream *u);

static void
upstream_end(struct upstream *u)
{
	members_fini(&u->members);
	free(u);
}

static void
upstream_maybe_end(struct upstream *u)
{
	if (u->dying && !u->ticking && !u->round_due && upstream_idle(u))
		upstream_end(u);
}

static void
pool_emptied(void *arg)
{
	upstream_maybe_end(arg);
}

struct upstream *
upstream_new(struct io *io, struct proxy_counters *counters, const struct proxy_conf *c)
{
	struct upstream *u = calloc(1, sizeof(*u));

	if (u == NULL)
		return (NULL);
	u->io = io;
	u->counters = counters;
	u->proto = c->proto;
	u->balancer = balancer_find(c->balancer);
	u->balance_factor = c->balance_factor;
	must(u->proto != NULL && u->balancer != NULL);
	list_init(&u->exchanges);
	list_init(&u->soon);
	list_init(&u->checks);
	u->members.io = io;
	u->members.counters = counters;
	u->members.conf = *c;
	u->members.emptied = pool_emptied;
	u->members.arg = u;
	if (members_init(&u->members) != 0) {
		upstream_end(u);
		return (NULL);
	}
	u->first_tick = true;
	if (c->check_url != NULL)
		tick_start(u);
	return (u);
}

struct text
upstream_secret(const struct upstream *u)
{
	return (text_of(u->members.conf.secret));
}

void
upstream_close_idle(struct upstream *u)
{
	u->closing = true;
	checks_stop(u);
	members_close_idle(&u->members);
}

void
upstream_free(struct upstream *u)
{
	if (u == NULL)
		return;
	must(!u->dying);
	upstream_close_idle(u);
	while (!list_empty(&u->exchanges)) /* they drain; their callers are gone */
		exchange_end_drain(u->exchanges.next);
	must(u->nexchanges == 0);
	u->dying = true;
	if (u->ticking)
		op_cancel(u->io, &u->tick);
	upstream_maybe_end(u);
}

bool
upstream_idle(const struct upstream *u)
{
	return (u->nexchanges == 0 && !members_have_sockets(&u->members));
}

/* ---------------------------------------------------------------- time passes */

static void
tick_exchanges(struct upstream *u)
{
	uint64_t now = io_now(u->io);
	struct list all, *l;

	/* Each goes back to the list first: its callbacks may start, forget and end any
	 * exchange. */
	list_init(&all);
	list_splice_tail(&all, &u->exchanges);
	while ((l = list_pop(&all)) != NULL) {
		list_add_tail(&u->exchanges, l);
		exchange_tick(l, now);
	}
}

static bool
upstream_active(const struct upstream *u)
{
	return (u->nexchanges > 0 || members_active(&u->members) ||
		(u->members.conf.check_url != NULL && !u->closing));
}

static void
tick_done(struct io_op *op)
{
	struct upstream *u = list_entry(op, struct upstream, tick);

	if (!u->dying) {
		u->first_tick = false;
		members_tick(&u->members, io_now(u->io));
		if (checks_tick(u, io_now(u->io)))
			u->checked_ns = io_now(u->io);
		tick_exchanges(u);
		upstream_yield(u, io_now(u->io));
	}
	u->ticking = false;
	if (!u->dying && upstream_active(u))
		tick_start(u);
	upstream_maybe_end(u);
}

/* Time until this worker looks for checks to begin.  If another worker makes the checks, this one
 * looks seldom whether it still does. */
static unsigned
checks_ms(const struct upstream *u, uint64_t now)
{
	uint64_t every = u->members.conf.check_ms * NS_PER_MS, age = now - u->checked_ns;

	if (u->members.conf.check_url == NULL || u->closing)
		return (UINT_MAX);
	if (u->first_tick)
		return (POOL_STALL_MS);
	if (age >= 2 * every)
		return (CHECK_OTHERS * u->members.conf.check_ms);
	return (age < every ? (unsigned)((every - age) / NS_PER_MS) + 1 : POOL_STALL_MS);
}

static unsigned
tick_ms(const struct upstream *u)
{
	uint64_t now = io_now(u->io);
	unsigned sockets, checks;

	if (u->nexchanges > 0)
		return (POOL_TICK_MS);
	sockets = members_quiet_ms(&u->members, now);
	checks = checks_ms(u, now);
	return (sockets < checks ? sockets : checks);
}

/* Empty pools wake no idle worker, and kept sockets wake it seldom. */
static void
tick_start(struct upstream *u)
{
	if (u->ticking) {
		if (u->nexchanges > 0 && u->tick.deadline_ms > POOL_TICK_MS)
			op_cancel(u->io, &u->tick); /* it starts again at once */
		return;
	}
	u->ticking = true;
	op_init(&u->tick, IO_TIMER, tick_done);
	u->tick.deadline_ms = tick_ms(u);
	op_submit(u->io, &u->tick);
}

static void
round_done(struct io_op *op)
{
	struct upstream *u = list_entry(op, struct upstream, round);
	struct list all, *l;

	list_init(&all);
	list_splice_tail(&all, &u->soon);
	u->round_due = false; /* exchanges that come meanwhile need another round */
	while ((l = list_pop(&all)) != NULL)
		exchange_next_round(l);
	upstream_maybe_end(u);
}

void
upstream_next_round(struct upstream *u, struct list *soon)
{
	if (!list_linked(soon))
		list_add_tail(&u->soon, soon);
	if (u->round_due)
		return;
	u->round_due = true;
	op_soon(u->io, &u->round, round_done);
}

/* ---------------------------------------------------------------- for exchanges */

void
upstream_enter(struct upstream *u, struct list *exchange)
{
	members_update(&u->members);
	list_add_tail(&u->exchanges, exchange);
	u->nexchanges++;
	tick_start(u);
}

void
upstream_leave(struct upstream *u, struct list *exchange)
{
	list_del(exchange);
	u->nexchanges--;
}

/* Bits of the slots whose backends stand at another place of the list. */
static uint64_t
elsewhere(const struct upstream *u, unsigned place)
{
	uint64_t bits = 0;
	size_t i;

	for (i = 0; place != 0 && i < BACKENDS_MAX; i++)
		if (u->members.slot[i].place != place - 1)
			bits |= 1ull << i;
	return (bits);
}

/* A backend that may be down, or fails, is asked only if no other is left. */
size_t
upstream_pick(struct upstream *u, const struct proxy_request *req, uint64_t tried, unsigned place)
{
	struct balance_key k = { req->host, req->path, req->remote_addr, u->balance_factor };
	struct candidate c[BACKENDS_MAX];
	enum members_which w;
	size_t n = 0;

	tried |= elsewhere(u, place);
	for (w = MEMBERS_WELL; w < MEMBERS_KINDS && n == 0; w++)
		n = members_candidates(&u->members, c, tried, w);
	return (balance_pick(u->balancer, c, n, &k));
}

/* Seconds until the first of the paused backends is tried again; at least 1. */
unsigned
upstream_retry_after_s(const struct upstream *u)
{
	const struct member *mb;
	unsigned ms, least = 0;
	size_t i;

	members_each(&u->members, mb, i) {
		ms = pool_pause_left_ms(mb->pool, io_now(u->io));
		if (ms > 0 && (least == 0 || ms < least))
			least = ms;
	}
	return (least > 1000 ? (least + 999) / 1000 : 1);
}

bool
upstream_cuts_params(const struct upstream *u)
{
	return (u->proto->cuts_params);
}

bool
upstream_takes_unsized(const struct upstream *u)
{
	return (u->proto->unsized_body);
}
