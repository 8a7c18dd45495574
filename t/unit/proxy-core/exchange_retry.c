/* t/unit/proxy-core/exchange_retry.c -- which failures send a request a second time. */
#include "t/unit/proxy-core/exchange_test.h"

TEST("/exchange/a stale socket causes one retry on a fresh one")
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = { 0 };

	set_up(&conf);
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
	client_free(&c);
	tear_down();
}

/* A request that is unsafe to repeat checks a kept socket before it is sent. */
TEST("/exchange/a POST does not use a closed socket")
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = { 0 };

	set_up(&conf);
	kept_one(&c);
	sim_hang_up(nth_recv(0)->sock);
	ask_with(&c, "POST", 0);
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 1);
	run_connect(0);
	run_send();
	reply("\nx");
	ENDED(&c, 0);
	client_free(&c);
	tear_down();
}

TEST("/exchange/an overloaded backend causes one retry on another")
{
	struct proxy_conf conf = a_conf(two, 2);
	struct client c = { 0 };

	set_up(&conf);
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
	client_free(&c);
	tear_down();
}

/* The body was sent, so the request cannot be repeated. */
TEST("/exchange/an overloaded backend gives 503 after the body was sent")
{
	struct proxy_conf conf = a_conf(two, 2);
	struct client c = { 0 };

	set_up(&conf);
	ask_with(&c, "POST", 4);
	g_assert_cmpuint(exchange_body(c.x, TEXT("body")), ==, 4);
	run_connect(0);
	run_send();
	refuse(2);
	ENDED(&c, 503);
	client_free(&c);
	tear_down();
}
