/* t/unit/proxy-core/laws.c -- laws of pools and exchanges, over random schedules:
 *
 *   never more than max-pool-size sockets to a backend
 *   never more waiters than allowed, and none beside an idle socket or a free place
 *   never a lost, doubled or foreign reply
 *   the waiters of a client get sockets in the order in which they came
 *   every request ends; every wait ends within its deadline
 *   a backend that works again gets requests again
 *   a request is executed once; a safe one may be repeated once, also in its second try, and one
 *   that is idempotent by as many backends as next-upstream-tries says
 *   second tries are within their share, and one with an answer is not lost
 *   nothing is left behind
 *
 * LAWS_SEEDS=20000 runs more schedules, LAWS_SEED=7 replays one and says what happens.
 */
#include <stdlib.h>
#include "t/unit/proxy-core/laws_client.h"
#include "t/unit/proxy-core/laws_server.h"

#define SEEDS 400
#define STEPS 500

/* ---------------------------------------------------------------- the world */

static struct proxy_conf
a_random_conf(void)
{
	static const char *const names[] = { "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80" };
	static const char *const balance[] = { "round-robin", "sqf", "static", "carp", "sticky" };
	static const unsigned kept[] = { 0, 1, 2, 100 };
	struct proxy_conf c = a_conf(names, 1 + below(BACKENDS));

	c.balancer = balance[below(G_N_ELEMENTS(balance))];
	c.max_pool_size = 1 + below(3);
	c.max_keep_alive_requests = kept[below(G_N_ELEMENTS(kept))];
	c.max_waiters = one_in(4) ? 0 : below(12);
	c.connect_ms = 200 + below(2000);
	c.disable_ms = 100 + below(1000);
	c.idle_ms = 300 + below(5000);
	c.check_url = one_in(4) ? "/ping" : NULL;
	c.check_ms = 200 + below(3000);
	c.slow_start_ms = one_in(2) ? below(5000) : 0;
	c.max_fails = one_in(2) ? 1 + below(4) : 0;
	c.fail_ms = 200 + below(3000);
	c.balance_factor = one_in(2) ? below(300) : 0;
	return (c);
}

/* The name of a backend has another address, which was never used before. */
static void
move(void)
{
	unsigned place = below(backends.places), added, removed, i, n = 1 + below(2);
	struct address v[2];
	char s[32];

	for (i = 0; i < n; i++) {
		w.moves++;
		snprintf(s, sizeof(s), "10.1.%u.%u:80", w.moves / 250, w.moves % 250);
		law(address_parse(s, &v[i]) == 0, "an address");
	}
	trace("place %u moves to %s", place, s);
	law(backends_replace(&backends, place, v, n, &added, &removed) == 0, "no memory");
}

/* ---------------------------------------------------------------- the schedule */

static void
server_event(void)
{
	struct io_op *op;
	unsigned n;

	conns_look();
	for (n = 0; sim_nth(io, n) != NULL; n++)
		;
	if (n == 0)
		return;
	op = sim_nth(io, below(n));
	switch (op->kind) {
	case IO_CONNECT: on_connect(op); break;
	case IO_SEND: on_send(op); break;
	case IO_RECV: on_recv(op); break;
	default:
		if (one_in(3))
			sim_advance_ms(io, below(w.hurry));
		break;
	}
}

static bool
waits_for_fresh(const struct exchange *x, const struct pool *p)
{
	return (x != NULL && x->pool == p && x->wait.waits && x->wait.fresh);
}

static bool
has_fresh_waiter(const struct pool *p)
{
	const struct ask *a;

	for (a = w.ask; a < w.ask + w.nasks; a++)
		if (waits_for_fresh(a->x, p) || (a->x != NULL && waits_for_fresh(a->x->rival, p)))
			return (true);
	return (false);
}

/* Pauses end at a tick, some time after they are over. */
static void
check_work(const struct pool *p)
{
	uint64_t slack = 300 * NS_PER_MS, now = io_now(io);

	if (pool_waiting(p) == 0 || has_fresh_waiter(p) || !list_empty(&w.up->checks))
		return;
	law(p->n[LEASE_IDLE] == 0, "%u wait beside an idle socket", pool_waiting(p));
	law(p->down || pool_waiting(p) <= p->n[LEASE_CONNECTING] ||
		pool_open(p) >= w.conf.max_pool_size || now < p->retry_at_ns + slack ||
		now < p->paused_until_ns + slack,
	    "%u wait beside a free place", pool_waiting(p));
}

static void
check_pools(void)
{
	const struct member *mb;
	const struct pool *p;
	size_t i;

	members_each(&w.up->members, mb, i) {
		check_work(mb->pool);
		law(pool_waiting(mb->pool) <= mb->pool->n[LEASE_CONNECTING] + w.conf.max_waiters,
		    "%u wait, expected at most %u", pool_waiting(mb->pool), w.conf.max_waiters);
	}
	list_each(p, &w.up->members.leaving, link)
		law(pool_waiting(p) == 0, "%u wait for a backend that left", pool_waiting(p));
}

static void
check(void)
{
	sim_run(io);
	conns_look();
	check_waits();
	check_pools();
}

static void
schedule(void)
{
	unsigned k;

	for (w.step = 1; w.step <= STEPS; w.step++) {
		if (one_in(3))
			a_event();
		else if (one_in(200))
			move();
		check();
		for (k = below(3); k > 0; k--) {
			server_event();
			if (one_in(2))
				check();
		}
	}
	check();
}

/* Applications are silent from now on, and clients read.  Deadlines end what is left. */
static void
let_end(void)
{
	struct ask *a;
	unsigned i;

	for (i = 0; i < 120; i++, w.step++) {
		for (a = w.ask; a < w.ask + w.nasks; a++) {
			if (a->x != NULL)
				a_resume(a);
			if (a->x != NULL)
				a_feed(a);
		}
		sim_advance_ms(io, 300);
		check();
	}
}

/* When all pauses are over and nothing fails any more, a request is answered. */
static void
check_recovery(void)
{
	struct ask *a = &w.ask[w.nasks];
	unsigned i;

	if (w.nasks == ASKS)
		return;
	sim_advance_ms(io, POOL_PAUSE_MAX_MS + 1);
	w.faults = 1u << 24;
	w.hurry = 2;
	w.running = 0;
	for (i = 0; i < 3000 && w.conf.check_url != NULL; i++, w.step++) { /* all are checked */
		server_event();
		check();
	}
	a_start();
	for (i = 0; i < 20000 && a->x != NULL; i++, w.step++) {
		server_event();
		check();
		if (a->x != NULL)
			a_resume(a);
		if (a->x != NULL)
			a_feed(a);
	}
	law(a->ends == 1 && a->end == 0, "no recovery: %d", a->end);
	let_end();
}

static void
check_end(void)
{
	const struct ask *a;

	for (a = w.ask; a < w.ask + w.nasks; a++) {
		law(a->x == NULL && a->ends + a->forgotten == 1, "%u did not end", a->id);
		/* of two tries the one that wins may break off while the other is whole */
		law(a->forgotten || a->slow || !a->whole || a->end == 0 ||
			(a->hedged && a->runs > 1 && a->end < 0),
		    "the reply of %u was lost: %d", a->id, a->end);
		law(a->runs <= a->tries + a->safe + 2u * (a->hedged && a->safe) + a->refusals,
		    "%u was run %u times and refused %u times", a->id, a->runs, a->refusals);
		law(!a->shortened || a->whole || a->forgotten || a->end != 0,
		    "%u is shorter than it says, and ended well", a->id);
		law(a->refusals <= a->tries + 1 + 2u * (a->hedged && a->safe),
		    "%u was refused %u times", a->id, a->refusals);
	}
	law(counters.proxy_hedges * 100 <= (uint64_t)w.nasks * w.hedge_percent, "%u hedges of %u",
	    (unsigned)counters.proxy_hedges, w.nasks);
	law(w.running == 0, "%u requests are left", w.running);
	law(upstream_idle(w.up), "sockets are left");
}

/* Counts of what happened in the schedules: a law that no schedule could break proves nothing. */
static struct {
	unsigned requests, good, bad_gateway, unavailable, late, cut, forgotten, repeated, moves,
	    sockets, hedges, won, inherited, next, out;
} all;

static void
sum(void)
{
	const struct ask *a;

	for (a = w.ask; a < w.ask + w.nasks; a++) {
		all.good += a->ends == 1 && a->end == 0;
		all.bad_gateway += a->end == 502;
		all.unavailable += a->end == 503;
		all.late += a->end == 504;
		all.cut += a->end < 0;
		all.forgotten += a->forgotten;
	}
	all.requests += w.nasks;
	all.repeated += (unsigned)counters.proxy_retries;
	all.moves += w.moves;
	all.hedges += (unsigned)counters.proxy_hedges;
	all.next += (unsigned)counters.proxy_next;
	all.out += (unsigned)counters.proxy_taken_out;
	all.won += (unsigned)counters.proxy_hedges_won;
	all.inherited += w.hedges - (unsigned)counters.proxy_hedges_won;
	all.sockets += w.nconns;
}

static void
check_sum(unsigned seeds)
{
	g_test_message("%u requests: %u good, %u bad gateway, %u unavailable, %u late, %u cut, "
		       "%u forgotten; %u repeated, %u sockets, %u moves, %u second tries, %u won, "
		       "%u inherited, %u to the next backend, %u backends taken out",
	    all.requests, all.good, all.bad_gateway, all.unavailable, all.late, all.cut,
	    all.forgotten, all.repeated, all.sockets, all.moves, all.hedges, all.won, all.inherited,
	    all.next, all.out);
	if (seeds < 100)
		return;
	g_assert_cmpuint(all.good, >, all.requests / 5);
	g_assert_cmpuint(all.bad_gateway, >, all.requests / 200);
	g_assert_cmpuint(all.unavailable, >, all.requests / 200);
	g_assert_cmpuint(all.late, >, all.requests / 200);
	g_assert_cmpuint(all.cut, >, all.requests / 200);
	g_assert_cmpuint(all.repeated, >, all.requests / 200);
	g_assert_cmpuint(all.next, >, seeds / 10);
	g_assert_cmpuint(all.out, >, seeds / 10);
	g_assert_cmpuint(all.moves, >, seeds / 2);
	g_assert_cmpuint(all.won, >, seeds / 10);
	g_assert_cmpuint(all.inherited, >, seeds / 100);
	g_assert_cmpuint(all.hedges, >, all.won + all.inherited);
}

static void
check_counts(void)
{
	const struct backend *b;
	unsigned i;

	for (b = backend_first(); b != NULL; b = b->next) {
		for (i = 0; i < LEASE_STATES; i++)
			law(b->sockets[i] == 0, "%u sockets of %s are counted", b->sockets[i],
			    b->name);
		law(b->waiting == 0 && b->down == 0, "waiters of %s are counted", b->name);
	}
}

static void
run_seed(uint64_t seed, bool aloud)
{
	unsigned i;

	memset(&w, 0, sizeof(w));
	w.seed = seed;
	w.rng = (seed + 1) * 0x9e3779b97f4a7c15ull;
	w.trace = aloud;
	io = sim_new();
	sim_auto_close(io, true);
	memset(&counters, 0, sizeof(counters));
	w.hurry = one_in(3) ? 400 : 1 + below(100);
	w.faults = one_in(4) ? 50 : 1;
	w.conf = a_random_conf();
	w.hedge_percent = one_in(2) ? 1 + below(100) : 0;
	w.up = upstream_new(io, &counters, &w.conf);
	schedule();
	let_end();
	check_recovery();
	upstream_close_idle(w.up);
	sim_run(io);
	check_end();
	sum();
	upstream_free(w.up);
	sim_run(io);
	law(!io_busy(io), "ops are left");
	io_free(io);
	check_counts();
	backends_put(&backends);
	conns_free();
	for (i = 0; i < w.nasks; i++)
		g_string_free(w.ask[i].body, TRUE);
}

static uint64_t
number(const char *name, uint64_t otherwise)
{
	const char *s = g_getenv(name);

	return (s != NULL ? strtoull(s, NULL, 10) : otherwise);
}

TEST("/laws/hold in every schedule")
{
	uint64_t seed, n = number("LAWS_SEEDS", SEEDS);

	if (g_getenv("LAWS_SEED") != NULL) {
		run_seed(number("LAWS_SEED", 0), true);
		return;
	}
	for (seed = 0; seed < n; seed++)
		run_seed(seed, false);
	check_sum((unsigned)n);
}
