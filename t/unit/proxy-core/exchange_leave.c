/* t/unit/proxy-core/exchange_leave.c -- clients that leave before the reply is complete. */
#include "t/unit/proxy-core/exchange_test.h"

EXCHANGE_TEST("/exchange/a client may leave in each state", a_conf(one, 1))
{
	ask(&c, "GET"); /* connecting */
	exchange_forget(&c.x, false);
	run_connect(0);
	g_assert_cmpuint(sim_count(io, IO_SEND), ==, 0);
	ask(&c, "GET"); /* uses the socket that connected meanwhile */
	g_assert_cmpuint(sim_count(io, IO_SEND), ==, 1);
	exchange_forget(&c.x, false); /* sending */
	sim_run(io);
	g_assert_cmpuint(open_sockets(), ==, 0);
	asked(&c, "GET");
	exchange_forget(&c.x, false); /* waiting for the head */
	sim_run(io);
	asked(&c, "GET");
	reply_part("A: 1\n\nx");
	exchange_forget(&c.x, false); /* in the body */
	sim_run(io);
	asked(&c, "GET");
	sim_finish(io, nth_recv(0), 0);
	sim_run(io);
	client_free(&c);
	ask(&c, "GET");
	run_connect(-ECONNREFUSED);
	ENDED(&c, 503);
	ask(&c, "GET");
	client_free(&c);
	c = (struct client){ .forget_at_head = true };
	sim_advance_ms(io, 3000);
	asked(&c, "GET");
	reply("A: 1\n\nx");
	g_assert_cmpint(c.heads, ==, 1);
	g_assert_cmpint(c.ends, ==, 0);
	g_assert_cmpstr(c.body->str, ==, "");
	client_free(&c);
	c.forget_at_body = true;
	asked(&c, "GET");
	reply("A: 1\n\nx");
	g_assert_cmpint(c.ends, ==, 0);
	g_assert_cmpuint(open_sockets(), ==, 0);
}

/* The client leaves between the failure and its callback. */
EXCHANGE_TEST("/exchange/a client that left gets no callback of a failure", a_conf(one, 1))
{
	ask(&c, "GET");
	run_connect(-ECONNREFUSED);
	c.req = a_request("GET");
	c.ends = 0;
	g_assert_cmpint(exchange_start(up, &c.req, &own, &sink, &c, &c.x), ==, 0);
	exchange_forget(&c.x, false);
	sim_run(io);
	g_assert_cmpint(c.ends, ==, 0);
}

EXCHANGE_TEST("/exchange/the rest of a small forgotten reply is read to keep the socket",
    a_conf(one, 1))
{
	g_autofree char *big = g_strnfill(50000, 'x');

	c.forget_at_head = true;
	c.drain = true;
	asked(&c, "GET");
	reply("X-Sendfile: /srv/f\n\nignored");
	g_assert_cmpstr(c.send_file, ==, "/srv/f");
	g_assert_cmpuint(open_sockets(), ==, 1); /* kept */
	client_free(&c);
	c = (struct client){ .forget_at_head = true, .drain = true };
	asked(&c, "GET");
	reply_part("X-Sendfile: /srv/f\n\nmore");
	reply_part(big);
	g_assert_cmpuint(open_sockets(), ==, 1);
	reply_part(big); /* too much */
	g_assert_cmpuint(open_sockets(), ==, 0);
	asked(&c, "GET");
	reply_part("X-Sendfile: /srv/f\n\nmore");
	sim_advance_ms(io, 1100); /* too slow */
	g_assert_cmpuint(open_sockets(), ==, 0);
	asked(&c, "GET");
	reply_part("X-Sendfile: /srv/f\n\nmore");
	run_lost(0);
	g_assert_cmpuint(open_sockets(), ==, 0);
	client_free(&c);
	asked(&c, "GET"); /* before the head */
	exchange_forget(&c.x, true);
	reply("A: 1\n\nx");
	g_assert_cmpuint(open_sockets(), ==, 1);
	c.pause_at_body = true; /* paused, with something held */
	asked(&c, "GET");
	reply_part("A: 1\n\nx");
	exchange_forget(&c.x, true);
	sim_run(io);
	reply("y");
	g_assert_cmpuint(open_sockets(), ==, 1);
}

/* The worker ends while the rest of a reply is still read. */
EXCHANGE_TEST("/exchange/the worker may end while such a rest is read", a_conf(one, 1))
{
	c.forget_at_head = true;
	c.drain = true;
	asked(&c, "GET");
	reply_part("X-Sendfile: /srv/f\n\nmore");
	g_assert_cmpuint(open_sockets(), ==, 1);
}
