/* t/unit/proxy-core/exchange_test.h -- one client and one scripted application on a simulated loop.
 */
#ifndef EXCHANGE_TEST_H
#define EXCHANGE_TEST_H

#include <errno.h>
#include "t/unit/proxy-core/proxy_test.h"

static struct upstream *up;

/* ---------------------------------------------------------------- the client */

struct client {
	struct proxy_request req;
	struct exchange *x;
	GString *body;
	int status, heads, ends, end, rooms;
	uint64_t passed; /* bytes, for proxy-core/yield.h */
	unsigned retry_after;
	char *send_file;
	bool pause_at_head, pause_at_body, resume_at_body, forget_at_head, forget_at_body, drain;
};

static void
c_head(void *arg, const struct proxy_reply *r)
{
	struct client *c = arg;
	size_t i;

	g_assert_cmpint(c->ends, ==, 0);
	c->heads++;
	c->status = r->status;
	g_free(c->send_file);
	c->send_file = NULL;
	for (i = 0; i < CONTROLS && c->send_file == NULL; i++)
		if (r->control[i].p != NULL)
			c->send_file = g_strndup(r->control[i].p, r->control[i].n);
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
	if (c->resume_at_body)
		exchange_resume(c->x);
	if (c->forget_at_body)
		exchange_forget(&c->x, c->drain);
	touched += bytes.p[0]; /* valid until this returns */
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

static uint64_t
c_passed(void *arg)
{
	return (((struct client *)arg)->passed);
}

static const struct exchange_sink sink = { c_head, c_body, c_room, c_end, .passed = c_passed };

static uint32_t asking;  /* the address key of the next request */
static bool asks_nobody; /* it comes through a proxy that names no client */

static void G_GNUC_UNUSED
ask_with(struct client *c, const char *method, int64_t length)
{
	GString *b = c->body;

	c->req = a_request(method);
	c->req.content_length = length;
	c->req.client = asking;
	c->req.nobody = asks_nobody;
	c->body = b != NULL ? g_string_truncate(b, 0) : g_string_new(NULL);
	c->heads = c->ends = c->end = 0;
	g_assert_cmpint(exchange_start(up, &c->req, &own, &sink, c, &c->x), ==, 0);
	g_assert_cmpint(c->ends, ==, 0); /* never from inside exchange_start() */
	sim_run(io);
}

static void G_GNUC_UNUSED
ask(struct client *c, const char *method)
{
	ask_with(c, method, 0);
}

static void G_GNUC_UNUSED
client_free(struct client *c)
{
	if (c->body != NULL)
		g_string_free(c->body, TRUE);
	g_free(c->send_file);
	memset(c, 0, sizeof(*c));
}

/* ---------------------------------------------------------------- the application */

static void G_GNUC_UNUSED
run_connect(int res)
{
	sim_finish(io, sim_find(io, IO_CONNECT, NULL), res);
	sim_run(io);
}

static void G_GNUC_UNUSED
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

static void G_GNUC_UNUSED
run_recv(struct text t)
{
	sim_recv(io, nth_recv(0), t);
	sim_run(io);
}

static void G_GNUC_UNUSED
run_lost(int err)
{
	sim_finish(io, nth_recv(0), err);
	sim_run(io);
}

static void G_GNUC_UNUSED
reply(const char *head_and_body)
{
	struct buf b;

	buf_init(&b, 0);
	put_stdout(&b, head_and_body);
	put_end(&b, 0);
	run_recv(buf_as_text(&b));
	buf_free(&b);
}

static void G_GNUC_UNUSED
reply_part(const char *s)
{
	struct buf b;

	buf_init(&b, 0);
	put_stdout(&b, s);
	run_recv(buf_as_text(&b));
	buf_free(&b);
}

static void G_GNUC_UNUSED
refuse_on(unsigned nth, unsigned protocol_status)
{
	struct buf b;

	buf_init(&b, 0);
	put_end(&b, protocol_status);
	sim_recv(io, nth_recv(nth), buf_as_text(&b));
	sim_run(io);
	buf_free(&b);
}

static void G_GNUC_UNUSED
refuse(unsigned protocol_status)
{
	refuse_on(0, protocol_status);
}

/* Sends one whole request. */
static void G_GNUC_UNUSED
asked(struct client *c, const char *method)
{
	ask(c, method);
	if (sim_find(io, IO_CONNECT, NULL) != NULL)
		run_connect(0);
	run_send();
}

static unsigned G_GNUC_UNUSED
open_sockets(void)
{
	return (sim_count(io, IO_RECV) + sim_count(io, IO_CONNECT));
}

#define ENDED(c, e)                                \
	do {                                       \
		g_assert_cmpint((c)->ends, ==, 1); \
		g_assert_cmpint((c)->end, ==, e);  \
	} while (0)

static void G_GNUC_UNUSED
kept_one(struct client *c)
{
	asked(c, "GET");
	reply("\nx");
	ENDED(c, 0);
	g_assert_cmpuint(open_sockets(), ==, 1);
}

/* ---------------------------------------------------------------- both */

static struct proxy_conf conf;
static struct client c, d;

static void
set_up(void)
{
	sim_up();
	up = upstream_new(io, &counters, &conf);
	g_assert_nonnull(up);
}

static void
tear_down(void)
{
	client_free(&c);
	client_free(&d);
	own = own_usual;
	upstream_free(up);
	sim_down();
}

/* EXCHANGE_TEST("/path", a_conf(one, 1), conf.max_waiters = 0) { ... }: with this pool, and with
 * these changes of its settings. */
#define EXCHANGE_TEST(path, ...) TEST_IN(path, (conf = __VA_ARGS__, set_up()), tear_down())

#endif
