/* t/unit/proxy-core/check.c -- a backend that fails when it is asked for a URL gets no requests. */
#include "proxy-core/backend_health.h"
#include "proxy-core/upstream.h"
#include "t/unit/proxy-core/exchange_test.h"

static struct proxy_conf
checking(const char *const *specs, size_t n)
{
	struct proxy_conf of = a_conf(specs, n);
	size_t i;

	of.check_url = "/ping?x=1";
	of.check_ms = 5000;
	for (i = 0; i < backends.n; i++)
		backends.v[i]->sick = 0, backends.v[i]->checked_ns = backends.v[i]->good_ns = 0;
	return (of);
}

/* Answers all requests with this reply. */
static void
answer_all(const char *head_and_body)
{
	struct io_op *op;
	struct buf b;
	unsigned i;

	for (i = 0; i < 4; i++) {
		while (sim_find(io, IO_CONNECT, NULL) != NULL)
			run_connect(0);
		run_send();
		while ((op = nth_recv(0)) != NULL && sim_sent(io, op->sock).n > 0) {
			sim_sent_clear(io, op->sock);
			buf_init(&b, 0);
			put_stdout(&b, head_and_body);
			put_end(&b, 0);
			sim_recv(io, op, buf_as_text(&b));
			sim_run(io);
			buf_free(&b);
		}
		sim_advance_ms(io, 60);
	}
}

EXCHANGE_TEST("/check/a backend that fails gets no requests", checking(one, 1),
    conf.max_keep_alive_requests = 0)
{
	struct text sent;

	sim_advance_ms(io, 260);
	run_connect(0);
	run_send();
	sent = sim_sent(io, nth_recv(0)->sock);
	g_assert_nonnull(memmem(sent.p, sent.n, "/ping?x=1", 9));
	answer_all("Status: 500 no\n\n");
	ask(&c, "GET");
	ENDED(&c, 503);
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 0);
	g_assert_nonnull(strstr(logged->str, "check.failed"));
	sim_advance_ms(io, 4000);
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 0); /* not before its time */
	sim_advance_ms(io, 1300);
	answer_all("Status: 204 yes\n\n");
	g_assert_nonnull(strstr(logged->str, "check.passed"));
	asked(&c, "GET");
	reply("\nx");
	ENDED(&c, 0);
	g_assert_cmpuint(counters.proxy_requests, ==, 2); /* checks are none */
}

/* Silence is a failure, and ends with the interval. */
EXCHANGE_TEST("/check/silence is a failure", checking(one, 1))
{
	sim_advance_ms(io, 260);
	run_connect(0);
	run_send();
	g_assert_cmpuint(backends.v[0]->sick, ==, 0);
	sim_advance_ms(io, 5100);
	g_assert_cmpuint(backends.v[0]->sick, ==, 1);
}

/* A check that fails is not a failed request: when one passes, the backend has its whole share. */
EXCHANGE_TEST("/check/no-strike", checking(one, 1), conf.max_fails = 3, conf.fail_ms = 10000)
{
	struct backend_health h;
	int i;

	for (i = 0; i < 4; i++) {
		sim_advance_ms(io, 5200);
		run_connect(0);
		run_send();
		run_lost(0);
	}
	g_assert_cmpuint(backends.v[0]->sick, ==, 1);
	g_assert_cmpuint(counters.proxy_taken_out, ==, 0);
	backend_health(backends.v[0], io_now(io), &h);
	g_assert_cmpint(h.state, ==, BACKEND_CHECK_FAILED);
}

/* A pool without a free socket says nothing about the application. */
EXCHANGE_TEST("/check/a busy pool is not a failure", checking(one, 1), conf.max_pool_size = 1)
{
	asked(&c, "GET");
	sim_advance_ms(io, 260);
	sim_advance_ms(io, 5100);
	g_assert_cmpuint(backends.v[0]->sick, ==, 0);
	reply("\nx");
	ENDED(&c, 0);
}

/* A check connects during the pause, and a good one ends it. */
EXCHANGE_TEST("/check/a good check ends the pause", checking(one, 1), conf.disable_ms = 60000)
{
	answer_all("\nfine");
	sim_advance_ms(io, 260);
	answer_all("\nfine");
	sim_advance_ms(io, 11000); /* the kept socket is closed */
	sim_advance_ms(io, 60);
	while (nth_recv(0) != NULL)
		run_lost(0);
	while (sim_find(io, IO_CONNECT, NULL) != NULL)
		run_connect(-ECONNREFUSED);
	ask(&c, "GET");
	while (sim_find(io, IO_CONNECT, NULL) != NULL)
		run_connect(-ECONNREFUSED);
	ENDED(&c, 503);
	sim_advance_ms(io, 6000);
	answer_all("\nfine");
	asked(&c, "GET");
	reply("\nx");
	ENDED(&c, 0);
}

/* With one check in a tick and an interval shorter than a tick without requests, the first one
 * would be the only one. */
EXCHANGE_TEST("/check/all that are due", checking(two, 2), conf.check_ms = 200)
{
	unsigned i;

	for (i = 0; i < 3; i++) {
		sim_advance_ms(io, 260);
		answer_all("\nfine");
	}
	g_assert_cmpuint(backends.v[0]->good_ns, >, 0);
	g_assert_cmpuint(backends.v[1]->good_ns, >, 0);
}

/* The server ends in the middle of a check. */
EXCHANGE_TEST("/check/the server ends meanwhile", checking(two, 2))
{
	sim_advance_ms(io, 260);
	run_connect(0);
	run_send();
}
