/* t/unit/proxy-core/exchange_backends.c -- which backend gets a request, and what waits for one. */
#include "t/unit/proxy-core/exchange_test.h"

EXCHANGE_TEST("/exchange/a refused connect tries the next backend, then answers 503",
    a_conf(two, 2))
{
	ask(&c, "GET");
	run_connect(-ECONNREFUSED);
	g_assert_cmpint(c.ends, ==, 0);
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 1); /* the other one */
	run_connect(-ENOENT);
	ENDED(&c, 503);
	g_assert_cmpuint(c.retry_after, ==, 2);
	ask(&c, "GET"); /* both are disabled */
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 0);
	ENDED(&c, 503);
	sim_advance_ms(io, 2001);
	ask(&c, "GET");
	run_connect(0); /* it is back */
	run_send();
	reply("\nx");
	ENDED(&c, 0);
}

EXCHANGE_TEST("/exchange/a connect deadline tries the next backend, then answers 504",
    a_conf(two, 2))
{
	ask(&c, "GET");
	sim_advance_ms(io, 5001);
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 1);
	sim_advance_ms(io, 5001);
	ENDED(&c, 504);
}

/* The pause doubles after each failed connect and ends with the first byte of a reply.  Until then
 * one request at a time probes. */
EXCHANGE_TEST("/exchange/one request probes a dead backend", a_conf(one, 1))
{
	ask(&c, "GET");
	run_connect(-ECONNREFUSED);
	ENDED(&c, 503);
	sim_advance_ms(io, 2001);
	ask(&c, "GET");
	ask(&d, "GET");
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 1);
	run_connect(-ECONNREFUSED);
	ENDED(&c, 503);
	ENDED(&d, 503);
	g_assert_cmpuint(d.retry_after, ==, 4);
	sim_advance_ms(io, 4001);
	ask(&c, "GET");
	ask(&d, "GET");
	run_connect(0);
	run_send();
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 0); /* one request at a time, too */
	reply_part("\n"); /* it lives: the second request connects */
	run_connect(0);
	run_send();
	reply("x");
	reply("\nx");
	ENDED(&c, 0);
	ENDED(&d, 0);
}

/* A probe without an answer is as bad as a failed connect.  A client that leaves proves nothing. */
EXCHANGE_TEST("/exchange/a probe without an answer pauses the backend again", a_conf(one, 1))
{
	ask(&c, "GET");
	run_connect(-ECONNREFUSED);
	ENDED(&c, 503);
	sim_advance_ms(io, 2001);
	asked(&c, "GET");
	ask(&d, "GET");
	exchange_forget(&c.x, false);
	sim_run(io);
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 1); /* d is the next probe */
	run_connect(0);
	run_send();
	run_lost(0);
	ENDED(&d, 502);
	ask(&d, "GET");
	ENDED(&d, 503);
	g_assert_cmpuint(d.retry_after, ==, 4);
	sim_advance_ms(io, 4001);
	asked(&d, "GET");
	reply("\nx");
	ENDED(&d, 0);
}

/* A full listen queue or a lack of descriptors is not a failure of the backend. */
EXCHANGE_TEST("/exchange/a request waits for a full backend", a_conf(one, 1))
{
	static const int errs[] = { -EAGAIN, -EMFILE, -ENFILE, -EADDRNOTAVAIL };
	size_t i;

	ask(&c, "GET");
	for (i = 0; i < G_N_ELEMENTS(errs); i++) {
		run_connect(errs[i]);
		g_assert_cmpint(c.ends, ==, 0);
		g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 0);
		sim_advance_ms(io, 60);
		g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 1);
	}
	run_connect(0);
	run_send();
	reply("\nx");
	ENDED(&c, 0);
}

EXCHANGE_TEST("/exchange/waiters are served in order, up to the limit and the deadline",
    a_conf(one, 1))
{
	struct client all[6] = { 0 };
	int i;

	/* two sockets, three waiters */
	for (i = 0; i < 6; i++)
		ask(&all[i], "GET");
	ENDED(&all[5], 503);
	g_assert_cmpuint(all[5].retry_after, ==, 1);
	run_connect(0);
	run_connect(0);
	run_send();
	reply("\n0");
	ENDED(&all[0], 0);
	run_send(); /* all[2] on the socket of all[0] */
	sim_advance_ms(io, 9000);
	reply("\n1");
	ENDED(&all[1], 0);
	run_send();
	sim_advance_ms(io, 1001); /* all[4] has waited for ten seconds */
	ENDED(&all[4], 503);
	reply("\n2");
	reply("\n3");
	ENDED(&all[2], 0);
	ENDED(&all[3], 0);
	g_assert_cmpstr(all[2].body->str, ==, "2");
	g_assert_cmpstr(all[3].body->str, ==, "3");
	for (i = 0; i < 6; i++)
		client_free(&all[i]);
}

/* One client fills the queue.  The next request comes from another client. */
static uint64_t
refused_by_all(void)
{
	const struct backend *b;
	uint64_t n = 0;

	for (b = backend_first(); b != NULL; b = b->next)
		n += b->refused;
	return (n);
}

EXCHANGE_TEST("/exchange/a client with few waiters displaces the one with most", a_conf(one, 1),
    conf.max_pool_size = 1, conf.max_waiters = 5)
{
	struct client all[8] = { 0 };
	uint64_t refused = refused_by_all();
	int i;

	asking = 1;
	for (i = 0; i < 7; i++) /* one is connecting, so six may wait */
		ask(&all[i], "GET");
	ENDED(&all[6], 503);
	g_assert_cmpuint(counters.proxy_displaced, ==, 0);
	asking = 2;
	ask(&all[7], "GET");
	ENDED(&all[5], 503);
	g_assert_cmpuint(counters.proxy_displaced, ==, 1);
	g_assert_cmpuint(refused_by_all() - refused, ==, 2);
	asking = 0;
	run_connect(0);
	for (i = 0; i < 3; i++) {
		run_send();
		reply("\nx");
	}
	ENDED(&all[0], 0);
	ENDED(&all[1], 0);
	ENDED(&all[7], 0); /* before the third of the first client */
	for (i = 2; i < 5; i++) {
		g_assert_cmpint(all[i].ends, ==, 0);
		run_send();
		reply("\nx");
		ENDED(&all[i], 0);
	}
	for (i = 0; i < 8; i++)
		client_free(&all[i]);
}

EXCHANGE_TEST("/exchange/a full pool answers 503 when the queue is off", a_conf(one, 1),
    conf.max_waiters = 0)
{
	struct client e = { 0 };

	ask(&c, "GET");
	ask(&d, "GET");
	ask(&e, "GET");
	ENDED(&e, 503);
	run_connect(-EAGAIN); /* it would have to wait */
	ENDED(&d, 503);
	run_connect(0);
	run_send();
	reply("\nx");
	ENDED(&c, 0);
	client_free(&e);
}
