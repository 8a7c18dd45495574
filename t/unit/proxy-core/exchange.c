/* t/unit/proxy-core/exchange.c -- one request and its reply: whole, in pieces, broken and late. */
#include "proxy-core/pool.h"
#include "t/unit/proxy-core/exchange_test.h"

EXCHANGE_TEST("/exchange/a second request uses the kept socket", a_conf(one, 1))
{
	asked(&c, "GET");
	g_assert_cmpstr(exchange_backend(c.x), ==, "10.0.0.1:80");
	g_assert_cmpuint(exchange_times(c.x)->leased, >, 0);
	reply("Status: 404 x\r\n\r\nhello");
	ENDED(&c, 0);
	g_assert_cmpint(c.status, ==, 404);
	g_assert_cmpstr(c.body->str, ==, "hello");
	g_assert_null(strstr(logged->str, "app.stderr")); /* no empty line */
	g_assert_cmpuint(open_sockets(), ==, 1);          /* kept, and watched */
	ask(&c, "GET");
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 0); /* and reused */
	run_send();
	reply("\nagain");
	ENDED(&c, 0);
	g_assert_false(upstream_idle(up));
	upstream_close_idle(up);
	sim_run(io);
	g_assert_true(upstream_idle(up));
}

EXCHANGE_TEST("/exchange/a kept socket wakes the worker seldom", a_conf(one, 1))
{
	unsigned ms;

	asked(&c, "GET");
	g_assert_cmpuint(sim_find(io, IO_TIMER, NULL)->deadline_ms, ==, POOL_TICK_MS);
	reply("\nx");
	ENDED(&c, 0);
	sim_advance_ms(io, POOL_TICK_MS + 1);
	ms = sim_find(io, IO_TIMER, NULL)->deadline_ms;
	g_assert_cmpuint(ms, ==, 1000); /* another worker may need what the socket binds */
	asked(&c, "GET");               /* its own deadlines do not wait for a late tick */
	g_assert_cmpuint(sim_find(io, IO_TIMER, NULL)->deadline_ms, ==, POOL_TICK_MS);
	reply("\nx");
	ENDED(&c, 0);
	sim_advance_ms(io, POOL_TICK_MS + 1);
	sim_advance_ms(io, conf.idle_ms);
	g_assert_cmpuint(open_sockets(), ==, 0);
	g_assert_null(sim_find(io, IO_TIMER, NULL)); /* an empty pool wakes nothing */
}

TEST("/exchange/a socket closes after max-keep-alive-requests")
{
	conf = a_conf(one, 1);
	conf.max_keep_alive_requests = 0;
	set_up();
	asked(&c, "GET");
	reply("\nx");
	ENDED(&c, 0);
	g_assert_cmpuint(open_sockets(), ==, 0);
	tear_down();
	conf.max_keep_alive_requests = 2;
	set_up();
	asked(&c, "GET");
	reply("\nx");
	g_assert_cmpuint(open_sockets(), ==, 1);
	asked(&c, "GET");
	reply("\nx");
	g_assert_cmpuint(open_sockets(), ==, 0); /* it carried two requests */
	tear_down();
}

EXCHANGE_TEST("/exchange/a reply arrives whole when each send and receive carries one byte",
    a_conf(one, 1))
{
	struct io_op *op;
	struct buf b;
	size_t i;

	ask(&c, "GET");
	run_connect(0);
	while ((op = sim_find(io, IO_SEND, NULL)) != NULL) {
		sim_send(io, op, 1);
		sim_run(io);
	}
	buf_init(&b, 0);
	put_stdout(&b, "A: 1\r\n\r\nhello");
	put_stderr(&b, "one\ntwo\nthree");
	put_end(&b, 0);
	for (i = 0; i < b.n; i++)
		run_recv((struct text){ b.p + i, 1 });
	buf_free(&b);
	ENDED(&c, 0);
	g_assert_cmpstr(c.body->str, ==, "hello");
	g_assert_nonnull(strstr(logged->str, "line=two"));
	g_assert_nonnull(strstr(logged->str, "line=three"));
	g_assert_nonnull(strstr(logged->str, "backend=10.0.0.1:80"));
}

EXCHANGE_TEST("/exchange/a backend that hangs up gives 502 before the head, a cut after it",
    a_conf(one, 1))
{
	asked(&c, "GET");
	run_lost(0);
	ENDED(&c, 502); /* never an empty 200 */
	asked(&c, "GET");
	reply_part("Content-Type: text");
	run_lost(0);
	ENDED(&c, 502);
	asked(&c, "GET");
	run_lost(-ECONNRESET);
	ENDED(&c, 502);
	asked(&c, "GET");
	reply_part("A: 1\n\nbo");
	run_lost(0);
	g_assert_cmpint(c.heads, ==, 1);
	ENDED(&c, -ECONNRESET);
	g_assert_cmpuint(open_sockets(), ==, 0);
	g_assert_cmpuint(counters.proxy_failed, ==, 3);
}

EXCHANGE_TEST("/exchange/a malformed reply gives 502", a_conf(one, 1))
{
	asked(&c, "GET");
	run_recv(TEXT("HTTP/1.1 200 OK\r\n\r\n"));
	ENDED(&c, 502);
	asked(&c, "GET");
	reply("Bad Name: x\n\nbody");
	ENDED(&c, 502);
	asked(&c, "GET");
	reply("Content-Length: 1\nContent-Length: 1\n\nx");
	ENDED(&c, 502);
	asked(&c, "GET");
	refuse(0);
	ENDED(&c, 502);
	asked(&c, "GET");
	refuse(3);
	ENDED(&c, 502);
	g_assert_cmpuint(open_sockets(), ==, 0);
}

EXCHANGE_TEST("/exchange/a body has the bytes of Content-Length", a_conf(one, 1))
{
	asked(&c, "GET");
	reply("Content-Length: 3\n\nab");
	ENDED(&c, -EPROTO);
	asked(&c, "GET");
	reply("Content-Length: 3\n\nabcdef");
	ENDED(&c, 0);
	g_assert_cmpstr(c.body->str, ==, "abc");
	g_assert_cmpuint(open_sockets(), ==, 0); /* a wrong length: not kept */
	asked(&c, "HEAD");
	reply("Content-Length: 3\n\nabc");
	ENDED(&c, 0);
	g_assert_cmpstr(c.body->str, ==, "");
	asked(&c, "GET");
	reply("Status: 304\n\nabc");
	ENDED(&c, 0);
	g_assert_cmpstr(c.body->str, ==, "");
}

EXCHANGE_TEST("/exchange/a silent backend gives 504 before the head, a cut after it",
    a_conf(one, 1))
{
	int i;

	asked(&c, "GET");
	sim_advance_ms(io, 59000);
	g_assert_cmpint(c.ends, ==, 0);
	sim_advance_ms(io, 1100);
	ENDED(&c, 504);
	asked(&c, "GET");
	for (i = 0; i < 59; i++) { /* a head of one byte each second */
		sim_advance_ms(io, 1000);
		reply_part(i == 0 ? "A: " : "x");
	}
	g_assert_cmpint(c.ends, ==, 0);
	sim_advance_ms(io, 1100);
	ENDED(&c, 504);
	asked(&c, "GET");
	reply_part("A: 1\n\nx");
	for (i = 0; i < 10; i++) { /* a body with pauses below read-timeout */
		sim_advance_ms(io, 50000);
		reply_part("x");
	}
	g_assert_cmpint(c.ends, ==, 0);
	sim_advance_ms(io, 60100);
	ENDED(&c, -ETIMEDOUT);
}

EXCHANGE_TEST("/exchange/an idle socket closes at a hang-up, at stray bytes and after its time",
    a_conf(one, 1))
{
	kept_one(&c);
	run_lost(0);
	g_assert_cmpuint(open_sockets(), ==, 0);
	kept_one(&c);
	run_recv(TEXT("\1\6\0\1\0\10\0\0evil")); /* bytes without a request */
	g_assert_cmpuint(open_sockets(), ==, 0);
	kept_one(&c);
	sim_advance_ms(io, 9000);
	g_assert_cmpuint(open_sockets(), ==, 1);
	sim_advance_ms(io, 1100);
	g_assert_cmpuint(open_sockets(), ==, 0); /* its idle time is over */
	sim_advance_ms(io, 1000);
	g_assert_cmpuint(sim_count(io, IO_TIMER), ==, 0); /* no timer wakes an idle worker */
}
