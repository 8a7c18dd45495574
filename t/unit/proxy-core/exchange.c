/* t/unit/proxy-core/exchange.c -- one request and its reply on a simulated loop: every order, loss
 * and delay. */
#include <errno.h>
#include "io/loop/sim.h"
#include "proxy-core/exchange.h"
#include "t/unit/wire/wire_test.h"

static struct io *io;
static struct counters counters;
static struct upstream *up;
static GString *logged;

static const char *const one[] = {"10.0.0.1:80"};
static const char *const two[] = {"10.0.0.1:80", "10.0.0.2:80"};

static struct proxy_conf
a_conf(const char *const *backends, size_t n)
{
	return ((struct proxy_conf){
		.protocol = "fastcgi",
		.backends = backends,
		.nbackends = n,
		.balancer = "static",
		.max_pool_size = 2,
		.max_keep_alive_requests = 100,
		.disable_time_s = 2,
		.max_waiters = 3,
		.wait_ms = 10000,
		.connect_ms = 5000,
		.read_ms = 60000,
		.split_hostnames = true,
		.queue = true,
	});
}

static void
set_up(const struct proxy_conf *conf)
{
	char text[200];
	int err;

	io = sim_new();
	sim_auto_close(io, true);
	logged = g_string_new(NULL);
	log_set_sink(log_nowhere, logged);
	memset(&counters, 0, sizeof(counters));
	g_assert_cmpint(upstream_check(conf, text, sizeof(text)), ==, 0);
	up = upstream_new(io, &counters, conf, &err);
	g_assert_nonnull(up);
}

/* Everything returns: no op, no socket, no memory (ASan looks). */
static void
tear_down(void)
{
	upstream_free(up);
	sim_run(io);
	g_assert_false(io_busy(io));
	io_free(io);
	g_string_free(logged, TRUE);
	log_set_sink(log_nowhere, NULL);
}

/* ---------------------------------------------------------------- who asks */

struct client {
	struct proxy_request req;
	struct exchange *x;
	GString *body;
	int status, heads, ends, end, rooms;
	unsigned retry_after;
	char *send_file;
	bool pause_at_head, pause_at_body, forget_at_head, forget_at_body, drain;
};

static void
c_head(void *arg, const struct proxy_reply *r)
{
	struct client *c = arg;

	g_assert_cmpint(c->ends, ==, 0);
	c->heads++;
	c->status = r->status;
	g_free(c->send_file);
	c->send_file = NULL;
	if (r->send_file.p != NULL)
		c->send_file = g_strndup(r->send_file.p, r->send_file.n);
	if (c->pause_at_head)
		exchange_pause(c->x);
	if (c->forget_at_head)
		exchange_forget(&c->x, c->drain);
}

static volatile int touched;

static void
c_body(void *arg, struct text bytes)
{
	struct client *c = arg;

	g_assert_nonnull(c->x);
	g_assert_cmpint(c->heads, ==, 1);
	g_assert_cmpint(c->ends, ==, 0);
	g_string_append_len(c->body, bytes.p, (gssize)bytes.n);
	if (c->pause_at_body)
		exchange_pause(c->x);
	if (c->forget_at_body)
		exchange_forget(&c->x, c->drain);
	touched += bytes.p[0]; /* still ours to read */
}

static void
c_room(void *arg)
{
	((struct client *)arg)->rooms++;
}

static void
c_end(void *arg, int status, unsigned retry_after)
{
	struct client *c = arg;

	c->ends++;
	c->end = status;
	c->retry_after = retry_after;
	c->x = NULL;
}

static const struct exchange_sink sink = {c_head, c_body, c_room, c_end};

static uint32_t asking; /* the key of the client */

static void
ask_with(struct client *c, const char *method, int64_t length)
{
	GString *b = c->body;

	c->req = a_request(method);
	c->req.content_length = length;
	c->req.client = asking;
	c->body = b != NULL ? g_string_truncate(b, 0) : g_string_new(NULL);
	c->heads = c->ends = c->end = 0;
	g_assert_cmpint(exchange_start(up, &c->req, &sink, c, &c->x), ==, 0);
	g_assert_cmpint(c->ends, ==, 0); /* never from inside exchange_start() */
	sim_run(io);
}

static void
ask(struct client *c, const char *method)
{
	ask_with(c, method, 0);
}

static void
client_free(struct client *c)
{
	if (c->body != NULL)
		g_string_free(c->body, TRUE);
	g_free(c->send_file);
	memset(c, 0, sizeof(*c));
}

/* ---------------------------------------------------------------- who answers */

static void
run_connect(int res)
{
	sim_finish(io, sim_find(io, IO_CONNECT, NULL), res);
	sim_run(io);
}

static void
run_send(void)
{
	struct io_op *op;

	while ((op = sim_find(io, IO_SEND, NULL)) != NULL) {
		sim_send(io, op, SIZE_MAX);
		sim_run(io);
	}
}

/* n-th RECV in flight, oldest first. */
static struct io_op *
nth_recv(unsigned n)
{
	struct io_op *op;
	unsigned i;

	for (i = 0; (op = sim_nth(io, i)) != NULL; i++)
		if (op->kind == IO_RECV && n-- == 0)
			return (op);
	return (NULL);
}

static void
run_recv(struct text t)
{
	sim_recv(io, nth_recv(0), t);
	sim_run(io);
}

static void
run_lost(int err)
{
	sim_finish(io, nth_recv(0), err);
	sim_run(io);
}

static void
reply(const char *head_and_body)
{
	struct buf b;

	buf_init(&b, 0);
	put_stdout(&b, head_and_body);
	put_end(&b, 0);
	run_recv(buf_as_text(&b));
	buf_free(&b);
}

static void
reply_part(const char *s)
{
	struct buf b;

	buf_init(&b, 0);
	put_stdout(&b, s);
	run_recv(buf_as_text(&b));
	buf_free(&b);
}

static void
refuse_on(unsigned nth, unsigned protocol_status)
{
	struct buf b;

	buf_init(&b, 0);
	put_end(&b, protocol_status);
	sim_recv(io, nth_recv(nth), buf_as_text(&b));
	sim_run(io);
	buf_free(&b);
}

static void
refuse(unsigned protocol_status)
{
	refuse_on(0, protocol_status);
}

/* From the start to the request sent. */
static void
asked(struct client *c, const char *method)
{
	ask(c, method);
	if (sim_find(io, IO_CONNECT, NULL) != NULL)
		run_connect(0);
	run_send();
}

static unsigned
open_sockets(void)
{
	return (sim_count(io, IO_RECV) + sim_count(io, IO_CONNECT));
}

#define ENDED(c, e)                                                                                \
	do {                                                                                       \
		g_assert_cmpint((c)->ends, ==, 1);                                                 \
		g_assert_cmpint((c)->end, ==, e);                                                  \
	} while (0)

/* ---------------------------------------------------------------- the plain way */

static void
test_plain(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};

	set_up(&conf);
	asked(&c, "GET");
	g_assert_cmpstr(exchange_backend(c.x), ==, "10.0.0.1:80");
	g_assert_cmpuint(exchange_times(c.x)->sent, >, 0);
	reply("Status: 404 x\r\n\r\nhello");
	ENDED(&c, 0);
	g_assert_cmpint(c.status, ==, 404);
	g_assert_cmpstr(c.body->str, ==, "hello");
	g_assert_cmpuint(open_sockets(), ==, 1); /* kept, and watched */
	ask(&c, "GET");
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 0); /* and used again */
	run_send();
	reply("\nagain");
	ENDED(&c, 0);
	g_assert_false(upstream_idle(up));
	upstream_close_idle(up);
	sim_run(io);
	g_assert_true(upstream_idle(up));
	client_free(&c);
	tear_down();
}

static void
test_not_kept(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};

	conf.max_keep_alive_requests = 0;
	set_up(&conf);
	asked(&c, "GET");
	reply("\nx");
	ENDED(&c, 0);
	g_assert_cmpuint(open_sockets(), ==, 0);
	client_free(&c);
	tear_down();
	conf.max_keep_alive_requests = 2;
	set_up(&conf);
	asked(&c, "GET");
	reply("\nx");
	g_assert_cmpuint(open_sockets(), ==, 1);
	asked(&c, "GET");
	reply("\nx");
	g_assert_cmpuint(open_sockets(), ==, 0); /* it carried two */
	client_free(&c);
	tear_down();
}

static void
test_tiny_pieces(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};
	struct io_op *op;
	struct buf b;
	size_t i;

	set_up(&conf);
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
		run_recv((struct text){b.p + i, 1});
	buf_free(&b);
	ENDED(&c, 0);
	g_assert_cmpstr(c.body->str, ==, "hello");
	g_assert_nonnull(strstr(logged->str, "line=two"));
	g_assert_nonnull(strstr(logged->str, "line=three"));
	g_assert_nonnull(strstr(logged->str, "backend=10.0.0.1:80"));
	client_free(&c);
	tear_down();
}

/* ---------------------------------------------------------------- no backend */

static void
test_refused(void)
{
	struct proxy_conf conf = a_conf(two, 2);
	struct client c = {0};

	set_up(&conf);
	ask(&c, "GET");
	run_connect(-ECONNREFUSED);
	g_assert_cmpint(c.ends, ==, 0);
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 1); /* the other one */
	run_connect(-ENOENT);
	ENDED(&c, 503);
	g_assert_cmpuint(c.retry_after, ==, 2);
	ask(&c, "GET"); /* both are left alone */
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 0);
	ENDED(&c, 503);
	sim_advance_ms(io, 2001);
	ask(&c, "GET");
	run_connect(0); /* it is back */
	run_send();
	reply("\nx");
	ENDED(&c, 0);
	client_free(&c);
	tear_down();
}

static void
test_connect_timeout(void)
{
	struct proxy_conf conf = a_conf(two, 2);
	struct client c = {0};

	set_up(&conf);
	ask(&c, "GET");
	sim_advance_ms(io, 5001);
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 1);
	sim_advance_ms(io, 5001);
	ENDED(&c, 504);
	client_free(&c);
	tear_down();
}

/* The pause doubles, and ends after one good connect; one connect at a time looks. */
static void
test_probe(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0}, d = {0};

	set_up(&conf);
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
	g_assert_cmpuint(
	    sim_count(io, IO_CONNECT), ==, 1); /* now that it lives, one for the other, too */
	run_connect(0);
	run_send();
	reply("\nx");
	reply("\nx");
	ENDED(&c, 0);
	ENDED(&d, 0);
	client_free(&c);
	client_free(&d);
	tear_down();
}

/* A full listen queue or a want of descriptors is no failure. */
static void
test_full(void)
{
	static const int errs[] = {-EAGAIN, -EMFILE, -ENFILE, -EADDRNOTAVAIL};
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};
	size_t i;

	set_up(&conf);
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
	client_free(&c);
	tear_down();
}

/* ---------------------------------------------------------------- waiting */

static void
test_waiters(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c[6] = {0};
	int i;

	set_up(&conf); /* two sockets, three waiters */
	for (i = 0; i < 6; i++)
		ask(&c[i], "GET");
	ENDED(&c[5], 503);
	g_assert_cmpuint(c[5].retry_after, ==, 1);
	run_connect(0);
	run_connect(0);
	run_send();
	reply("\n0");
	ENDED(&c[0], 0);
	run_send(); /* c[2] on the socket of c[0] */
	sim_advance_ms(io, 9000);
	reply("\n1");
	ENDED(&c[1], 0);
	run_send();
	sim_advance_ms(io, 1001); /* c[4] has waited for ten seconds */
	ENDED(&c[4], 503);
	reply("\n2");
	reply("\n3");
	ENDED(&c[2], 0);
	ENDED(&c[3], 0);
	g_assert_cmpstr(c[2].body->str, ==, "2");
	g_assert_cmpstr(c[3].body->str, ==, "3");
	for (i = 0; i < 6; i++)
		client_free(&c[i]);
	tear_down();
}

/* One client asks for more than may wait; the next comes from another. */
static void
test_waiters_by_client(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c[8] = {0};
	int i;

	conf.max_pool_size = 1;
	conf.max_waiters = 5;
	set_up(&conf);
	asking = 1;
	for (i = 0; i < 7; i++) /* one is connecting, so six may wait */
		ask(&c[i], "GET");
	ENDED(&c[6], 503);
	g_assert_cmpuint(counters.proxy_displaced, ==, 0);
	asking = 2;
	ask(&c[7], "GET");
	ENDED(&c[5], 503);
	g_assert_cmpuint(counters.proxy_displaced, ==, 1);
	asking = 0;
	run_connect(0);
	for (i = 0; i < 3; i++) {
		run_send();
		reply("\nx");
	}
	ENDED(&c[0], 0);
	ENDED(&c[1], 0);
	ENDED(&c[7], 0); /* before the third of the first client */
	for (i = 2; i < 5; i++) {
		g_assert_cmpint(c[i].ends, ==, 0);
		run_send();
		reply("\nx");
		ENDED(&c[i], 0);
	}
	for (i = 0; i < 8; i++)
		client_free(&c[i]);
	tear_down();
}

static void
test_no_queue(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0}, d = {0}, e = {0};

	conf.queue = false;
	set_up(&conf);
	ask(&c, "GET");
	ask(&d, "GET");
	ask(&e, "GET");
	ENDED(&e, 503);
	run_connect(-EAGAIN); /* would have to wait now */
	ENDED(&d, 503);
	run_connect(0);
	run_send();
	reply("\nx");
	ENDED(&c, 0);
	client_free(&c);
	client_free(&d);
	client_free(&e);
	tear_down();
}

/* ---------------------------------------------------------------- replies that break */

static void
test_hang_up(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};

	set_up(&conf);
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
	client_free(&c);
	tear_down();
}

/* ---------------------------------------------------------------- a protocol whose replies end with the stream */

static struct proxy_conf
a_scgi_conf(void)
{
	struct proxy_conf conf = a_conf(one, 1);

	conf.protocol = "scgi";
	return (conf);
}

static void
test_end_of_stream(void)
{
	struct proxy_conf conf = a_scgi_conf();
	struct client c = {0};

	set_up(&conf);
	asked(&c, "GET");
	run_recv(TEXT("Status: 404 x\n\nhel"));
	run_recv(TEXT("lo"));
	g_assert_cmpint(c.ends, ==, 0);
	run_lost(0);
	ENDED(&c, 0);
	g_assert_cmpint(c.status, ==, 404);
	g_assert_cmpstr(c.body->str, ==, "hello");
	g_assert_cmpuint(open_sockets(), ==, 0); /* whatever max-keep-alive-requests says */
	ask(&c, "GET");
	g_assert_cmpuint(sim_count(io, IO_CONNECT), ==, 1);
	run_connect(0);
	run_send();
	run_recv(TEXT("Content-Length: 2\n\nab"));
	ENDED(&c, 0); /* promised, and all there */
	g_assert_cmpuint(open_sockets(), ==, 0);
	asked(&c, "HEAD");
	run_recv(TEXT("Content-Length: 2\n\n"));
	run_lost(0);
	ENDED(&c, 0); /* no body was owed */
	client_free(&c);
	tear_down();
}

static void
test_end_too_early(void)
{
	struct proxy_conf conf = a_scgi_conf();
	struct client c = {0};

	set_up(&conf);
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
	run_lost(-ECONNRESET); /* a reset is no end */
	ENDED(&c, -ECONNRESET);
	client_free(&c);
	tear_down();
}

/* The reply was complete when the caller paused, and nothing more comes that could tell. */
static void
test_end_while_paused(void)
{
	struct proxy_conf conf = a_scgi_conf();
	struct client c = {.pause_at_body = true};

	set_up(&conf);
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
	client_free(&c);
	tear_down();
}

/* There is no socket to keep, so the rest of a reply is not read. */
static void
test_end_unwanted(void)
{
	struct proxy_conf conf = a_scgi_conf();
	struct client c = {.forget_at_head = true, .drain = true};

	set_up(&conf);
	asked(&c, "GET");
	run_recv(TEXT("X-Sendfile: /a\n\n"));
	g_assert_cmpstr(c.send_file, ==, "/a");
	g_assert_cmpint(c.ends, ==, 0);
	g_assert_cmpuint(open_sockets(), ==, 0);
	client_free(&c);
	tear_down();
}

static void
test_unsayable(void)
{
	struct proxy_conf conf = a_scgi_conf();
	struct client c = {0};
	struct proxy_field f = {TEXT("X-A"), TEXT("a\0b")};

	set_up(&conf);
	c.req = a_request("GET");
	c.req.headers = &f;
	c.req.nheaders = 1;
	g_assert_cmpint(exchange_start(up, &c.req, &sink, &c, &c.x), ==, 0);
	sim_run(io);
	run_connect(0);
	ENDED(&c, 502);
	g_assert_nonnull(strstr(logged->str, "the protocol cannot carry this request"));
	client_free(&c);
	tear_down();
}

static void
test_garbage(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};

	set_up(&conf);
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
	client_free(&c);
	tear_down();
}

static void
test_lengths(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};

	set_up(&conf);
	asked(&c, "GET");
	reply("Content-Length: 3\n\nab");
	ENDED(&c, -EPROTO);
	asked(&c, "GET");
	reply("Content-Length: 3\n\nabcdef");
	ENDED(&c, 0);
	g_assert_cmpstr(c.body->str, ==, "abc");
	g_assert_cmpuint(open_sockets(), ==, 0); /* it cannot count: not kept */
	asked(&c, "HEAD");
	reply("Content-Length: 3\n\nabc");
	ENDED(&c, 0);
	g_assert_cmpstr(c.body->str, ==, "");
	asked(&c, "GET");
	reply("Status: 304\n\nabc");
	ENDED(&c, 0);
	g_assert_cmpstr(c.body->str, ==, "");
	client_free(&c);
	tear_down();
}

static void
test_silence(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};
	int i;

	set_up(&conf);
	asked(&c, "GET");
	sim_advance_ms(io, 59000);
	g_assert_cmpint(c.ends, ==, 0);
	sim_advance_ms(io, 1100);
	ENDED(&c, 504);
	asked(&c, "GET");
	for (i = 0; i < 59; i++) { /* a head that drips in */
		sim_advance_ms(io, 1000);
		reply_part(i == 0 ? "A: " : "x");
	}
	g_assert_cmpint(c.ends, ==, 0);
	sim_advance_ms(io, 1100);
	ENDED(&c, 504);
	asked(&c, "GET");
	reply_part("A: 1\n\nx");
	for (i = 0; i < 10; i++) { /* a body may take its time */
		sim_advance_ms(io, 50000);
		reply_part("x");
	}
	g_assert_cmpint(c.ends, ==, 0);
	sim_advance_ms(io, 60100);
	ENDED(&c, -ETIMEDOUT);
	client_free(&c);
	tear_down();
}

/* ---------------------------------------------------------------- once more */

static void
kept_one(struct client *c)
{
	asked(c, "GET");
	reply("\nx");
	ENDED(c, 0);
	g_assert_cmpuint(open_sockets(), ==, 1);
}

static void
test_stale(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};

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
	run_lost(0); /* it may have been executed */
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

/* A request that cannot be repeated looks twice at a kept socket. */
static void
test_stale_unsafe(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};

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

static void
test_overloaded(void)
{
	struct proxy_conf conf = a_conf(two, 2);
	struct client c = {0};

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
	refuse_on(1, 1); /* the oldest is the kept one, to the second */
	run_send();
	refuse(2);
	ENDED(&c, 503);
	client_free(&c);
	tear_down();
}

/* Its body is gone, so it cannot be said again. */
static void
test_overloaded_body(void)
{
	struct proxy_conf conf = a_conf(two, 2);
	struct client c = {0};

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

/* ---------------------------------------------------------------- slow clients */

static void
test_pause(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {.pause_at_body = true};
	struct buf b;

	set_up(&conf);
	asked(&c, "GET");
	buf_init(&b, 0);
	put_stdout(&b, "A: 1\n\none");
	put_stdout(&b, "two");
	put_stdout(&b, "three");
	put_end(&b, 0);
	run_recv(buf_as_text(&b));
	buf_free(&b);
	g_assert_cmpstr(c.body->str, ==, "one");
	g_assert_cmpuint(sim_count(io, IO_RECV), ==, 0); /* nothing more is read */
	sim_advance_ms(io, 200000); /* and the client's slowness is not the backend's */
	g_assert_cmpint(c.ends, ==, 0);
	exchange_resume(c.x);
	g_assert_cmpstr(c.body->str, ==, "one"); /* no callback from inside */
	sim_run(io);
	g_assert_cmpstr(c.body->str, ==, "onetwo");
	exchange_resume(c.x);
	exchange_pause(c.x);
	sim_run(io);
	g_assert_cmpstr(c.body->str, ==, "onetwo");
	c.pause_at_body = false;
	exchange_resume(c.x);
	sim_run(io);
	g_assert_cmpstr(c.body->str, ==, "onetwothree");
	ENDED(&c, 0);
	g_assert_cmpuint(open_sockets(), ==, 1);
	client_free(&c);
	tear_down();
}

static void
test_pause_outside(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};

	set_up(&conf);
	asked(&c, "GET");
	reply_part("A: 1\n\none");
	exchange_pause(c.x);
	reply_part("two"); /* was being waited for already */
	g_assert_cmpstr(c.body->str, ==, "one");
	g_assert_cmpuint(sim_count(io, IO_RECV), ==, 0);
	exchange_resume(c.x);
	sim_run(io);
	g_assert_cmpstr(c.body->str, ==, "onetwo");
	reply("three");
	ENDED(&c, 0);
	client_free(&c);
	c.pause_at_head = true;
	asked(&c, "GET");
	reply("A: 1\n\nx");
	g_assert_cmpint(c.heads, ==, 1);
	g_assert_cmpstr(c.body->str, ==, "");
	exchange_resume(c.x);
	sim_run(io);
	ENDED(&c, 0);
	client_free(&c);
	tear_down();
}

/* ---------------------------------------------------------------- request bodies */

static size_t
sent_body(const struct io_sock *s, bool *ended)
{
	struct text t = sim_sent(io, s);
	const unsigned char *h;
	size_t n, all = 0;

	*ended = false;
	while (t.n > 0) {
		h = (const unsigned char *)t.p;
		n = (size_t)(h[4] << 8 | h[5]);
		if (h[1] == 5) {
			g_assert_false(*ended);
			*ended = n == 0;
			all += n;
		}
		t.p += 8 + n;
		t.n -= 8 + n;
	}
	return (all);
}

static void
test_body(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};
	char *big = g_malloc0(300000);
	const struct io_sock *s;
	size_t at = 0, before;
	bool ended;

	set_up(&conf);
	ask_with(&c, "POST", 300000);
	at = exchange_body(c.x, (struct text){big, 300000});
	g_assert_cmpuint(at, ==, 64 << 10); /* bounded, even without a socket */
	g_assert_cmpuint(exchange_body(c.x, (struct text){big, 1}), ==, 0);
	run_connect(0);
	s = sim_find(io, IO_SEND, NULL)->sock;
	sim_sent_clear(io, s);
	before = at;
	while (at < 300000) {
		c.rooms = 0;
		sim_send(io, sim_find(io, IO_SEND, NULL), SIZE_MAX);
		sim_run(io);
		g_assert_cmpint(c.rooms, ==, 1);
		at += exchange_body(c.x, (struct text){big, 300000 - at});
		g_assert_cmpuint(at - before, <=, 64 << 10);
		before = at;
	}
	run_send();
	g_assert_cmpuint(sent_body(s, &ended), ==, 300000);
	g_assert_true(ended);
	reply("\nthanks");
	ENDED(&c, 0);
	g_assert_cmpuint(open_sockets(), ==, 1);
	client_free(&c);
	tear_down();
	g_free(big);
}

/* Full duplex: an answer before the body is through ends the exchange and the socket. */
static void
test_body_unwanted(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};

	set_up(&conf);
	ask_with(&c, "POST", 1000);
	g_assert_cmpuint(exchange_body(c.x, TEXT("first")), ==, 5);
	run_connect(0);
	run_send();
	reply_part("Status: 413\n\nno");
	g_assert_cmpuint(exchange_body(c.x, TEXT("second")), ==, 6);
	run_send();
	reply(", thanks");
	ENDED(&c, 0);
	g_assert_cmpstr(c.body->str, ==, "no, thanks");
	g_assert_cmpuint(open_sockets(), ==, 0);
	/* It hung up, but not without an answer. */
	ask_with(&c, "POST", 1000);
	run_connect(0);
	run_send();
	exchange_body(c.x, TEXT("first"));
	sim_finish(io, sim_find(io, IO_SEND, NULL), -EPIPE);
	sim_run(io);
	g_assert_cmpint(c.ends, ==, 0);
	g_assert_cmpuint(exchange_body(c.x, TEXT("second")), ==, 6); /* nobody reads it */
	reply("Status: 413\n\nno");
	ENDED(&c, 0);
	g_assert_cmpuint(open_sockets(), ==, 0);
	/* Slow clients are not the backend's fault; a backend that does not read is. */
	ask_with(&c, "POST", 1000);
	run_connect(0);
	run_send();
	sim_advance_ms(io, 200000);
	g_assert_cmpint(c.ends, ==, 0);
	exchange_body(c.x, TEXT("first"));
	sim_advance_ms(io, 60100);
	ENDED(&c, 504);
	client_free(&c);
	tear_down();
}

/* ---------------------------------------------------------------- clients that leave */

static void
test_forget(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};

	set_up(&conf);
	ask(&c, "GET"); /* connecting */
	exchange_forget(&c.x, false);
	run_connect(0);
	g_assert_cmpuint(sim_count(io, IO_SEND), ==, 0);
	ask(&c, "GET"); /* the socket came for nobody: used now */
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
	run_connect(-ECONNREFUSED); /* about to be told */
	ENDED(&c, 503);
	ask(&c, "GET");
	client_free(&c);
	c = (struct client){.forget_at_head = true};
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
	client_free(&c);
	tear_down();
}

/* Started, failed already, and forgotten before it could be told. */
static void
test_forget_ended(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};

	set_up(&conf);
	ask(&c, "GET");
	run_connect(-ECONNREFUSED);
	c.req = a_request("GET");
	c.ends = 0;
	g_assert_cmpint(exchange_start(up, &c.req, &sink, &c, &c.x), ==, 0);
	exchange_forget(&c.x, false);
	sim_run(io);
	g_assert_cmpint(c.ends, ==, 0);
	client_free(&c);
	tear_down();
}

static void
test_drain(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {.forget_at_head = true, .drain = true};
	char *big = g_strnfill(50000, 'x');

	set_up(&conf);
	asked(&c, "GET");
	reply("X-Sendfile: /srv/f\n\nignored");
	g_assert_cmpstr(c.send_file, ==, "/srv/f");
	g_assert_cmpuint(open_sockets(), ==, 1); /* kept */
	client_free(&c);
	c = (struct client){.forget_at_head = true, .drain = true};
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
	client_free(&c);
	tear_down();
	g_free(big);
}

/* ---------------------------------------------------------------- idle sockets */

static void
test_idle(void)
{
	struct proxy_conf conf = a_conf(one, 1);
	struct client c = {0};

	set_up(&conf);
	kept_one(&c);
	run_lost(0);
	g_assert_cmpuint(open_sockets(), ==, 0);
	kept_one(&c);
	run_recv(TEXT("\1\6\0\1\0\10\0\0evil")); /* nobody asked */
	g_assert_cmpuint(open_sockets(), ==, 0);
	kept_one(&c);
	sim_advance_ms(io, 9000);
	g_assert_cmpuint(open_sockets(), ==, 1);
	sim_advance_ms(io, 1100);
	g_assert_cmpuint(open_sockets(), ==, 0); /* nor is it kept forever */
	sim_advance_ms(io, 1000);
	g_assert_cmpuint(sim_count(io, IO_TIMER), ==, 0); /* and nothing wakes an idle worker */
	client_free(&c);
	tear_down();
}

/* ---------------------------------------------------------------- any order */

/* A backend that does something at random with whatever is in flight. */
static void
random_event(void)
{
	static const int errors[] = {-ECONNREFUSED, -EAGAIN, -EMFILE, -ECONNRESET};
	struct io_op *op;
	struct buf b;
	unsigned n;

	for (n = 0; sim_nth(io, n) != NULL; n++)
		;
	if (n == 0)
		return;
	op = sim_nth(io, (unsigned)g_test_rand_int_range(0, (int)n));
	switch (op->kind) {
	case IO_CONNECT:
		sim_finish(io, op,
		    g_test_rand_int_range(0, 4) > 0 ? 0 : errors[g_test_rand_int_range(0, 4)]);
		break;
	case IO_SEND:
		if (g_test_rand_int_range(0, 20) == 0)
			sim_finish(io, op, -EPIPE);
		else
			sim_send(io, op, (size_t)g_test_rand_int_range(1, 2000));
		break;
	case IO_RECV:
		buf_init(&b, 0);
		switch (g_test_rand_int_range(0, 10)) {
		case 0:
			sim_finish(io, op, 0);
			break;
		case 1:
			put_end(&b, (unsigned)g_test_rand_int_range(0, 4));
			break;
		case 2:
			put_stderr(&b, "stderr\nline");
			break;
		case 3:
			put_stdout(&b, "A: 1\n");
			break;
		case 4:
		case 5:
			put_stdout(&b, "A: 1\n\nbody");
			break;
		default:
			put_stdout(&b, "A: 1\n\nbody");
			put_end(&b, 0);
		}
		if (b.n > 0)
			sim_recv(io, op,
			    (struct text){b.p, g_test_rand_int_range(0, 8) > 0 ? b.n : b.n / 2});
		buf_free(&b);
		break;
	default:
		sim_advance_ms(io, (uint64_t)g_test_rand_int_range(1, 400));
	}
}

static void
random_client(struct client *c)
{
	static const char *const methods[] = {"GET", "HEAD", "POST"};
	char some[3000] = {'x'};
	bool running = c->x != NULL;

	switch (g_test_rand_int_range(0, 8)) {
	case 0:
	case 1:
	case 2:
		if (running)
			break;
		client_free(c);
		c->pause_at_body = g_test_rand_int_range(0, 4) == 0;
		c->forget_at_head = g_test_rand_int_range(0, 8) == 0;
		c->forget_at_body = g_test_rand_int_range(0, 8) == 0;
		c->drain = g_test_rand_int_range(0, 2) == 0;
		ask_with(c, methods[g_test_rand_int_range(0, 3)],
		    g_test_rand_int_range(0, 3) == 0 ? 100000 : 0);
		break;
	case 3:
		if (running)
			exchange_forget(&c->x, g_test_rand_int_range(0, 2) == 0);
		break;
	case 4:
		if (running)
			exchange_pause(c->x);
		break;
	case 5:
		if (running)
			exchange_resume(c->x);
		break;
	default:
		if (running)
			exchange_body(c->x, (struct text){some, sizeof(some)});
	}
}

static void
test_random(void)
{
	struct proxy_conf conf = a_conf(two, 2);
	struct client c[8] = {0};
	int round, i, k;

	conf.balancer = "round-robin";
	for (round = 0; round < 300; round++) {
		conf.max_keep_alive_requests = (unsigned)(round % 3 * 2);
		set_up(&conf);
		for (i = 0; i < 600; i++) {
			random_client(&c[g_test_rand_int_range(0, 8)]);
			for (k = g_test_rand_int_range(0, 3); k > 0; k--) {
				random_event();
				if (g_test_rand_int_range(0, 2) == 0)
					sim_run(io);
			}
		}
		sim_run(io);
		for (k = 0; k < 8; k++) {
			if (c[k].x != NULL) {
				c[k].pause_at_body = false;
				exchange_resume(c[k].x);
				/* It ends by itself when nothing happens any more - or when its
				 * body never comes, not. */
				if (c[k].req.content_length > 0)
					exchange_forget(&c[k].x, false);
			}
		}
		for (k = 0; k < 40; k++)
			sim_advance_ms(io, 11000);
		for (k = 0; k < 8; k++) {
			g_assert_null(c[k].x);
			g_assert_cmpint(c[k].ends, <=, 1);
			client_free(&c[k]);
		}
		g_assert_true(upstream_idle(up));
		tear_down();
	}
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	log_set_sink(log_nowhere, NULL);
	g_test_add_func("/exchange/request, reply, and the socket is used again", test_plain);
	g_test_add_func("/exchange/a socket carries so many requests and no more", test_not_kept);
	g_test_add_func(
	    "/exchange/sends and receives of one byte; stderr by line", test_tiny_pieces);
	g_test_add_func("/exchange/refused: next backend, then 503", test_refused);
	g_test_add_func("/exchange/connect deadline: next backend, then 504", test_connect_timeout);
	g_test_add_func("/exchange/a dead backend is probed by one connect", test_probe);
	g_test_add_func("/exchange/a full backend is waited for", test_full);
	g_test_add_func("/exchange/waiters: in turn, bounded, with a deadline", test_waiters);
	g_test_add_func("/exchange/waiters: by client", test_waiters_by_client);
	g_test_add_func("/exchange/no waiting when that is switched off", test_no_queue);
	g_test_add_func("/exchange/a backend that hangs up", test_hang_up);
	g_test_add_func("/exchange/scgi: the stream ends the reply", test_end_of_stream);
	g_test_add_func("/exchange/scgi: the stream ends too early", test_end_too_early);
	g_test_add_func("/exchange/scgi: complete while the client pauses", test_end_while_paused);
	g_test_add_func("/exchange/scgi: nobody wants the rest", test_end_unwanted);
	g_test_add_func("/exchange/scgi: a value with a NUL", test_unsayable);
	g_test_add_func("/exchange/a backend that talks nonsense is a 502", test_garbage);
	g_test_add_func("/exchange/Content-Length is kept to", test_lengths);
	g_test_add_func("/exchange/a silent backend", test_silence);
	g_test_add_func("/exchange/a stale socket: once more on a fresh one", test_stale);
	g_test_add_func(
	    "/exchange/a stale socket and a request that cannot be repeated", test_stale_unsafe);
	g_test_add_func("/exchange/overloaded: once elsewhere", test_overloaded);
	g_test_add_func("/exchange/overloaded, and the body is gone", test_overloaded_body);
	g_test_add_func("/exchange/a client that pauses", test_pause);
	g_test_add_func("/exchange/a client that pauses between replies", test_pause_outside);
	g_test_add_func("/exchange/a request body is streamed", test_body);
	g_test_add_func("/exchange/a request body nobody wants", test_body_unwanted);
	g_test_add_func("/exchange/forgotten in each state", test_forget);
	g_test_add_func("/exchange/forgotten when it had failed already", test_forget_ended);
	g_test_add_func("/exchange/forgotten, and the rest is read to keep the socket", test_drain);
	g_test_add_func("/exchange/idle sockets are watched", test_idle);
	g_test_add_func("/exchange/any order of events", test_random);
	return (g_test_run());
}
