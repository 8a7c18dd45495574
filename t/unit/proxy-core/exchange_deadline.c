/* t/unit/proxy-core/exchange_deadline.c -- deadlines of a request, and the share of a backend that
 * came back. */
#include "proxy-core/members.h"
#include "t/unit/proxy-core/exchange_test.h"

/* A byte that does not complete the head does not help. */
EXCHANGE_TEST("/exchange/a head that is late is 504", a_conf(one, 1), own.reply_ms = 2000)
{
	ask(&c, "GET");
	run_connect(0);
	sim_advance_ms(io, 3000); /* the request is not sent yet */
	run_send();
	sim_advance_ms(io, 1500);
	reply_part("A: 1\n");
	g_assert_cmpint(c.ends, ==, 0);
	sim_advance_ms(io, 600);
	ENDED(&c, 504);
	asked(&c, "GET");
	reply_part("A: 1\n\nbody");
	sim_advance_ms(io, 50000); /* it is for the head only */
	g_assert_cmpint(c.ends, ==, 0);
	sim_advance_ms(io, 10100);
	ENDED(&c, -ETIMEDOUT);
}

/* Each byte in time does not help either. */
EXCHANGE_TEST("/exchange/a reply that takes too long is 504 or cut", a_conf(one, 1),
    own.total_ms = 5000)
{
	int i;

	asked(&c, "GET");
	sim_advance_ms(io, 5100);
	ENDED(&c, 504);
	asked(&c, "GET");
	reply_part("A: 1\n\nbody");
	for (i = 0; i < 4; i++) {
		sim_advance_ms(io, 1000);
		reply_part("more");
		g_assert_cmpint(c.ends, ==, 0);
	}
	sim_advance_ms(io, 1100);
	ENDED(&c, -ETIMEDOUT);
}

EXCHANGE_TEST("/exchange/a kept socket closes when it was idle for long", a_conf(one, 1),
    conf.idle_ms = 3000)
{
	kept_one(&c);
	sim_advance_ms(io, 2500);
	g_assert_cmpuint(open_sockets(), ==, 1);
	sim_advance_ms(io, 1000);
	g_assert_cmpuint(open_sockets(), ==, 0);
}

/* Share of the first of two equal backends, in percent of 1000 picks. */
static unsigned
share_of_first(struct members *m)
{
	const struct balancer *rr = balancer_find("round-robin");
	struct balance_key k = { TEXT("h"), TEXT("/"), TEXT("") };
	struct candidate v[BACKENDS_MAX];
	unsigned i, n = 0;

	for (i = 0; i < 1000; i++) {
		g_assert_cmpuint(members_candidates(m, v, 0, false), ==, 2);
		n += balance_pick(rr, v, 2, &k) == 0;
	}
	return (n / 10);
}

static void
ignore_empty(void *arg)
{
}

TEST("/members/a backend that came back gets a growing share")
{
	struct members m = { .counters = &counters, .emptied = ignore_empty };

	conf = a_conf(two, 2);
	conf.slow_start_ms = 10000;
	sim_up();
	m.io = io;
	m.conf = conf;
	g_assert_cmpint(members_init(&m), ==, 0);
	g_assert_cmpuint(share_of_first(&m), ==, 50);
	pool_start_slowly(m.slot[0].pool);
	g_assert_cmpuint(share_of_first(&m), ==, 9); /* 10 of 110 */
	sim_advance_ms(io, 5000);
	g_assert_cmpuint(share_of_first(&m), ==, 35); /* 55 of 155 */
	sim_advance_ms(io, 5000);
	g_assert_cmpuint(share_of_first(&m), ==, 50);
	members_fini(&m);
	sim_down();
}
