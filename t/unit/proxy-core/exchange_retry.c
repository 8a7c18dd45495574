/* t/unit/proxy-core/exchange_retry.c -- which failures send a request a second time. */
#include "t/unit/proxy-core/exchange_test.h"

EXCHANGE_TEST("/exchange/a stale socket causes one retry on a fresh one", a_conf(one, 1))
{
	kept_one(&c);
	ask(&c, "GET");
	run_send();
	run_lost(-ECONNRESET);
	g_assert_cmpint(c.ends, ==, 0);
	run_connect(0); /* on a fresh one */
	run_send();
	g_assert_cmpuint(counters.proxy_retries, ==, 1);
	run_lost(0); /* but only once */
	ENDED(&c, 502);
	kept_one(&c);
	ask_with(&c, "POST", 0);
	run_send();
	run_lost(0); /* it may have run */
	ENDED(&c, 502);
	kept_one(&c);
	ask(&c, "GET");
	run_send();
	reply_part("A");
	run_lost(0); /* it had begun to answer */
	ENDED(&c, 502);
}

/* A request that is unsafe to repeat checks a kept socket before it is sent. */
EXCHANGE_TEST("/exchange/a POST does not use a closed socket", a_conf(one, 1))
{
	kept_one(&c);
	sim_hang_up(nth_recv(0)->sock);
	ask_with(&c, "POST", 0);
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 1);
	run_connect(0);
	run_send();
	reply("\nx");
	ENDED(&c, 0);
}

EXCHANGE_TEST("/exchange/an overloaded backend causes one retry on another", a_conf(two, 2))
{
	asked(&c, "GET");
	refuse(2);
	g_assert_cmpint(c.ends, ==, 0);
	run_connect(0);
	g_assert_cmpstr(exchange_backend(c.x), ==, "10.0.0.2:80");
	run_send();
	reply("\nx");
	ENDED(&c, 0);
	asked(&c, "GET");
	refuse_on(1, 1); /* the oldest is the kept socket of the second backend */
	run_send();
	refuse(2);
	ENDED(&c, 503);
}

/* The body was sent, so the request cannot be repeated. */
EXCHANGE_TEST("/exchange/an overloaded backend gives 503 after the body was sent", a_conf(two, 2))
{
	ask_with(&c, "POST", 4);
	g_assert_cmpuint(exchange_body(c.x, TEXT("body")), ==, 4);
	run_connect(0);
	run_send();
	refuse(2);
	ENDED(&c, 503);
}
