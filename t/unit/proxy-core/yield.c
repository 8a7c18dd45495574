/* t/unit/proxy-core/yield.c -- which request gives way when a client without a socket waits. */
#include "proxy-core/yield.h"
#include "t/unit/proxy-core/exchange_test.h"

/* ---------------------------------------------------------------- slow, over a time */

/* Bytes that pass in each quarter of a second. */
static struct yield_debt
after(uint64_t seconds, uint64_t (*bytes)(uint64_t quarter))
{
	struct yield_debt debt;
	uint64_t i, n = 0;

	yield_start(&debt, 1, 0);
	for (i = 1; i <= 4 * seconds; i++)
		yield_note(&debt, 1 + i * YIELD_SAMPLE_NS, n += bytes(i));
	return (debt);
}

static uint64_t
none(uint64_t quarter)
{
	return (0);
}

static uint64_t
modem(uint64_t quarter)
{
	return (2 << 10);
}

static uint64_t
fast(uint64_t quarter)
{
	return (1 << 20);
}

/* Three seconds of silence, then a second at 1 MiB/s. */
static uint64_t
in_bursts(uint64_t quarter)
{
	return (quarter % 16 < 12 ? 0 : 256 << 10);
}

static const struct yield_wait long_wait = { 6 * NS_PER_S, 10 * NS_PER_S };

static bool
holder_may(struct yield_debt debt, unsigned sockets, bool queues, bool page, uint64_t waited_ms)
{
	struct yield_holder h = { &debt, sockets, 4, queues, page };
	struct yield_wait w = { waited_ms * NS_PER_MS, 10 * NS_PER_S };

	return (yield_may(&h, &w));
}

TEST("/yield/debt")
{
	uint64_t i;

	g_assert_true(holder_may(after(5, none), 3, false, false, 1000));
	g_assert_false(holder_may(after(4, none), 3, false, false, 1000));
	g_assert_true(holder_may(after(7, modem), 3, false, false, 1000));
	for (i = 1; i < 200; i++) { /* at no moment */
		g_assert_false(holder_may(after(i, fast), 4, true, false, 9999));
		g_assert_false(holder_may(after(i, in_bursts), 4, true, false, 9999));
	}
}

TEST("/yield/lone")
{
	g_assert_true(holder_may(after(30, none), 1, false, false, 1000));
	g_assert_false(holder_may(after(29, none), 1, false, false, 1000));
	g_assert_false(
	    holder_may(after(600, modem), 1, true, false, 9999)); /* slow, but it reads */
}

/* A page loses all of its work. */
TEST("/yield/pages")
{
	g_assert_false(holder_may(after(9, none), 3, false, true, 4900));
	g_assert_true(holder_may(after(9, none), 3, false, true, 5000));
	g_assert_true(holder_may(after(9, none), 2, false, true, 5000));    /* half of four */
	g_assert_false(holder_may(after(600, none), 1, false, true, 9999)); /* it asks for one */
	g_assert_true(holder_may(after(30, none), 1, true, true, 5000));
	g_assert_false(holder_may(after(29, none), 1, true, true, 9999));
}

/* A tunnel has no end, so a fast one would keep others out for ever. */
TEST("/yield/fast-tunnels")
{
	struct yield_debt debt = after(60, fast);
	struct yield_holder h = { &debt, 2, 4, false, false, true };
	struct yield_wait w = { 5 * NS_PER_S, 10 * NS_PER_S };

	g_assert_true(yield_may(&h, &w));
	w.for_ns--;
	g_assert_false(yield_may(&h, &w));
	w.for_ns++;
	h.of = 5;
	g_assert_false(yield_may(&h, &w)); /* others have most sockets */
	h.sockets = h.of = 1;
	g_assert_false(yield_may(&h, &w)); /* its only one */
}

TEST("/yield/short-wait")
{
	struct yield_debt debt = after(9, none);
	struct yield_holder h = { &debt, 2, 4, false, false };
	struct yield_wait w = { 500 * NS_PER_MS, NS_PER_S };

	g_assert_true(yield_may(&h, &w)); /* half of the time it has */
	w.for_ns--;
	g_assert_false(yield_may(&h, &w));
}

TEST("/yield/order")
{
	struct yield_debt debt = after(6, none), longer = after(60, none);
	struct yield_holder few = { &longer, 2, 8, false, false };
	struct yield_holder many = { &debt, 5, 8, false, false };
	struct yield_holder page = { &longer, 5, 8, false, true };
	struct yield_holder older = { &longer, 5, 8, false, false };

	g_assert_true(yield_before(&many, &few));
	g_assert_false(yield_before(&few, &many));
	g_assert_true(yield_before(&many, &page));
	g_assert_false(yield_before(&page, &many));
	g_assert_true(yield_before(&older, &many));
	g_assert_false(yield_before(&many, &older));
	g_assert_true(yield_may(&many, &long_wait));
}

/* ---------------------------------------------------------------- exchanges */

static struct client held[4], other;

/* Time passes in ticks: in one leap there would be only one look at the bytes. */
static void
pass(unsigned ms)
{
	for (; ms > 0; ms -= 50)
		sim_advance_ms(io, 50);
}

/* All sockets of a pool are busy with requests of one address. */
static void
hold(unsigned n)
{
	unsigned i;

	conf = a_conf(one, 1);
	conf.max_pool_size = n;
	conf.max_waiters = 10;
	set_up();
	asking = 1;
	for (i = 0; i < n; i++)
		asked(&held[i], "GET");
	asks_nobody = false;
	asking = 2;
}

static void
let_go(void)
{
	unsigned i;

	for (i = 0; i < G_N_ELEMENTS(held); i++) {
		exchange_forget(&held[i].x, false);
		client_free(&held[i]);
	}
	exchange_forget(&other.x, false);
	client_free(&other);
	asking = 0;
	tear_down();
}

TEST("/yield/gives-way")
{
	hold(2);
	reply_part("\nsome");
	pass(4000);
	held[1].passed = 1 << 20;
	pass(2000);
	ask(&other, "GET");
	pass(900);
	g_assert_cmpint(held[0].ends, ==, 0); /* it has waited too short a time */
	pass(200);
	ENDED(&held[0], -ECANCELED); /* cut: its client has the head */
	g_assert_cmpint(held[1].ends, ==, 0);
	g_assert_cmpuint(counters.proxy_gave_way, ==, 1);
	g_assert_nonnull(sim_find(io, IO_CONNECT, NULL)); /* for the other one */
	let_go();
}

TEST("/yield/page")
{
	hold(2);
	ask(&other, "GET");
	pass(4900);
	g_assert_cmpint(held[0].ends + held[1].ends, ==, 0);
	pass(500);
	ENDED(&held[0], 503);
	g_assert_cmpuint(held[0].retry_after, >, 0);
	g_assert_cmpint(held[1].ends, ==, 0);
	g_assert_cmpuint(counters.proxy_gave_way, ==, 1);
	g_assert_nonnull(sim_find(io, IO_CONNECT, NULL)); /* for the other one */
	let_go();
}

/* The only socket of a pool: one page goes on, and the other client gets 503 as before. */
TEST("/yield/only-page")
{
	hold(1);
	pass(45000);
	ask(&other, "GET");
	pass(10100);
	ENDED(&other, 503);
	g_assert_cmpint(held[0].ends, ==, 0);
	let_go();
}

TEST("/yield/only-reply")
{
	hold(1);
	reply_part("\nsome");
	pass(31000);
	ask(&other, "GET");
	pass(1100);
	ENDED(&held[0], -ECANCELED);
	let_go();
}

TEST("/yield/nobody")
{
	asks_nobody = true;
	hold(2);
	reply_part("\nsome");
	pass(20000);
	ask(&other, "GET");
	pass(10100);
	ENDED(&other, 503);
	g_assert_cmpuint(counters.proxy_gave_way, ==, 0);
	let_go();
}

/* A client that has a socket waits for the end of a request. */
TEST("/yield/has-one")
{
	hold(2);
	pass(20000);
	asking = 1;
	ask(&other, "GET");
	pass(9000);
	g_assert_cmpuint(counters.proxy_gave_way, ==, 0);
	let_go();
}
