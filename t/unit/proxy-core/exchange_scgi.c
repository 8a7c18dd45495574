/* t/unit/proxy-core/exchange_scgi.c -- a protocol whose replies end with the stream. */
#include "t/unit/proxy-core/exchange_test.h"

#define SCGI_TEST(path) EXCHANGE_TEST(path, a_conf(one, 1), conf.proto = proto_find("scgi"))

SCGI_TEST("/exchange/scgi: the end of the stream ends the reply")
{
	asked(&c, "GET");
	run_recv(TEXT("Status: 404 x\n\nhel"));
	run_recv(TEXT("lo"));
	g_assert_cmpint(c.ends, ==, 0);
	run_lost(0);
	ENDED(&c, 0);
	g_assert_cmpint(c.status, ==, 404);
	g_assert_cmpstr(c.body->str, ==, "hello");
	g_assert_cmpuint(open_sockets(), ==, 0); /* regardless of max-keep-alive-requests */
	ask(&c, "GET");
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 1);
	run_connect(0);
	run_send();
	run_recv(TEXT("Content-Length: 2\n\nab"));
	ENDED(&c, 0); /* as long as Content-Length says */
	g_assert_cmpuint(open_sockets(), ==, 0);
	asked(&c, "HEAD");
	run_recv(TEXT("Content-Length: 2\n\n"));
	run_lost(0);
	ENDED(&c, 0); /* a reply to HEAD has no body */
}

SCGI_TEST("/exchange/scgi: an early end of the stream is an error")
{
	asked(&c, "GET");
	run_lost(0);
	ENDED(&c, 502);
	g_assert_nonnull(strstr(logged->str, "hung up without a reply"));
	asked(&c, "GET");
	run_recv(TEXT("Content-Type: te"));
	run_lost(0);
	ENDED(&c, 502);
	g_assert_nonnull(strstr(logged->str, "ended within its head"));
	asked(&c, "GET");
	run_recv(TEXT("Content-Length: 3\n\nab"));
	run_lost(0);
	ENDED(&c, -EPROTO);
	g_assert_nonnull(strstr(logged->str, "shorter than its Content-Length"));
	asked(&c, "GET");
	run_recv(TEXT("\nab"));
	run_lost(-ECONNRESET); /* a reset is not the end of the stream */
	ENDED(&c, -ECONNRESET);
}

/* The reply is complete when the caller pauses.  No later byte can end it. */
SCGI_TEST("/exchange/scgi: a complete reply ends after the client resumes")
{
	c.pause_at_body = true;
	asked(&c, "GET");
	run_recv(TEXT("Content-Length: 2\n\nab"));
	g_assert_cmpint(c.ends, ==, 0);
	exchange_resume(c.x);
	sim_run(io);
	ENDED(&c, 0);
	c.pause_at_body = false;
	c.pause_at_head = true;
	asked(&c, "GET");
	run_recv(TEXT("Content-Length: 0\n\n"));
	g_assert_cmpint(c.ends, ==, 0);
	exchange_resume(c.x);
	sim_run(io);
	ENDED(&c, 0);
}

/* The end needs no further byte, only a client that goes on. */
SCGI_TEST("/exchange/scgi: a client pauses at the head and at the body")
{
	c.pause_at_head = true;
	c.pause_at_body = true;
	asked(&c, "GET");
	run_recv(TEXT("Content-Length: 2\n\nab"));
	g_assert_cmpint(c.heads, ==, 1);
	g_assert_cmpstr(c.body->str, ==, "");
	exchange_resume(c.x);
	sim_run(io);
	g_assert_cmpstr(c.body->str, ==, "ab");
	g_assert_cmpint(c.ends, ==, 0);
	g_assert_cmpuint(sim_count(io, IO_RECV), ==, 0);
	exchange_resume(c.x);
	sim_run(io);
	ENDED(&c, 0);
}

/* The socket is not kept, so the rest of the reply is not read. */
SCGI_TEST("/exchange/scgi: a forgotten reply closes its socket")
{
	c.forget_at_head = true;
	c.drain = true;
	asked(&c, "GET");
	run_recv(TEXT("X-Sendfile: /a\n\n"));
	g_assert_cmpstr(c.send_file, ==, "/a");
	g_assert_cmpint(c.ends, ==, 0);
	g_assert_cmpuint(open_sockets(), ==, 0);
}

SCGI_TEST("/exchange/scgi: a value with a NUL gives 502")
{
	struct proxy_field f = { TEXT("X-A"), TEXT("a\0b") };

	c.req = a_request("GET");
	c.req.headers = &f;
	c.req.nheaders = 1;
	g_assert_cmpint(exchange_start(up, &c.req, &own, &sink, &c, &c.x), ==, 0);
	sim_run(io);
	run_connect(0);
	ENDED(&c, 502);
	g_assert_nonnull(strstr(logged->str, "the protocol cannot carry this request"));
}
