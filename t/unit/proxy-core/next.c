/* t/unit/proxy-core/next.c -- proxy-core.next-upstream and proxy-core.max-fails: which failures
 * send a request to the next backend, and take a backend out. */
#include "proxy-core/backend_health.h"
#include "t/unit/proxy-core/exchange_test.h"

static const char *const three[] = { "10.4.0.1:80", "10.4.0.2:80", "10.4.0.3:80" };

static void
set_up_next(void)
{
	conf.max_keep_alive_requests = 0;
	own.next = NEXT_error | NEXT_timeout | NEXT_bad;
	own.next_tries = 3;
	own.read_ms = 4000;
	set_up();
}

#define NEXT_TEST(path, of) TEST_IN(path, (conf = of, set_up_next()), tear_down())

/* A request, sent to the backend with that number. */
static void
asked_at(struct client *asker, const char *method, unsigned n)
{
	asked(asker, method);
	g_assert_cmpstr(exchange_backend(asker->x), ==, three[n]);
}

/* Backend n has the request of c now, and answers it. */
static void
next_answers(struct client *asker, unsigned n)
{
	g_assert_cmpint(asker->ends, ==, 0);
	g_assert_cmpstr(exchange_backend(asker->x), ==, three[n]);
	if (sim_find(io, IO_CONNECT, NULL) != NULL)
		run_connect(0);
	run_send();
	reply("\nx");
	ENDED(asker, 0);
	g_assert_cmpstr(asker->body->str, ==, text_eq(asker->req.method, TEXT("HEAD")) ? "" : "x");
	g_assert_cmpint(asker->heads, ==, 1);
}

static void
hangs_up(void)
{
	run_lost(0);
}
static void
resets(void)
{
	run_lost(-ECONNRESET);
}
static void
is_silent(void)
{
	sim_advance_ms(io, 4100);
}
static void
speaks_badly(void)
{
	reply("no head\n\n");
}
static void
stops_in_its_head(void)
{
	reply_part("A: 1\n");
	run_lost(0);
}
static void
drips(void)
{
	reply_part("A: 1\n");
	sim_advance_ms(io, 4100);
}

static const struct {
	const char *name;
	void (*fail)(void);
	unsigned bit;
	int status;
} faults[] = {
	{ "hangs up", hangs_up, NEXT_error, 502 },
	{ "resets", resets, NEXT_error, 502 },
	{ "is silent", is_silent, NEXT_timeout, 504 },
	{ "speaks badly", speaks_badly, NEXT_bad, 502 },
	{ "stops in its head", stops_in_its_head, NEXT_error, 502 },
	{ "drips", drips, NEXT_timeout, 504 },
};

TEST("/next/each fault goes to the next backend, if it is set")
{
	static const char *const methods[] = { "GET", "HEAD", "OPTIONS", "PUT", "DELETE" };
	size_t i, k;

	for (i = 0; i < G_N_ELEMENTS(faults); i++) {
		conf = a_conf(three, 2);
		set_up_next();
		for (k = 0; k < G_N_ELEMENTS(methods); k++) {
			asked_at(&c, methods[k], 0);
			faults[i].fail();
			next_answers(&c, 1);
		}
		g_assert_cmpuint(counters.proxy_next, ==, k);
		own.next &= ~faults[i].bit; /* not set: the client gets an error */
		asked_at(&c, "GET", 0);
		faults[i].fail();
		ENDED(&c, faults[i].status);
		own.next = NEXT_error | NEXT_timeout | NEXT_bad;
		asked_at(&c, "POST", 0); /* it may have run */
		faults[i].fail();
		ENDED(&c, faults[i].status);
		g_assert_cmpuint(counters.proxy_next, ==, k);
		tear_down();
	}
}

/* The last status counts; each backend gets the request once. */
NEXT_TEST("/next/tries and time are bounded", a_conf(three, 3))
{
	asked_at(&c, "GET", 0);
	hangs_up();
	run_connect(0);
	run_send();
	is_silent();
	g_assert_cmpstr(exchange_backend(c.x), ==, three[2]);
	run_connect(0);
	run_send();
	speaks_badly();
	ENDED(&c, 502);
	g_assert_cmpuint(counters.proxy_next, ==, 2);
	g_assert_cmpuint(counters.proxy_next_none, ==, 1);
	own.next_tries = 2;
	asked_at(&c, "GET", 0);
	hangs_up();
	run_connect(0);
	run_send();
	hangs_up();
	ENDED(&c, 502);
	g_assert_cmpuint(counters.proxy_next, ==, 3);
	own.next_ms = 3000;
	asked_at(&c, "GET", 0);
	is_silent(); /* longer than that */
	ENDED(&c, 504);
	asked_at(&c, "GET", 0);
	hangs_up();
	next_answers(&c, 1);
}

/* The client has bytes of the answer, or of a 1xx; or a byte of the body has left. */
NEXT_TEST("/next/nothing goes on after a byte of the answer or the body", a_conf(three, 2))
{
	asked_at(&c, "GET", 0);
	reply_part("A: 1\n\nx");
	run_lost(0);
	g_assert_cmpint(c.end, <, 0);
	ask_with(&c, "PUT", 100000); /* too long to be kept */
	run_connect(0);
	run_send();
	g_assert_cmpuint(exchange_body(c.x, TEXT("bo")), ==, 2);
	run_send();
	hangs_up();
	ENDED(&c, 502);
	g_assert_cmpuint(counters.proxy_next, ==, 0);
}

/* The next backend gets the whole body. */
NEXT_TEST("/next/a short body goes on", a_conf(three, 2))
{
	struct io_op *op;

	ask_with(&c, "PUT", 8);
	run_connect(0);
	run_send();
	g_assert_cmpuint(exchange_body(c.x, TEXT("body")), ==, 4);
	run_send();
	g_assert_cmpuint(exchange_body(c.x, TEXT("five")), ==, 4);
	hangs_up();
	run_connect(0);
	while ((op = sim_find(io, IO_SEND, NULL)) != NULL) {
		sim_send(io, op, SIZE_MAX);
		sim_run(io);
	}
	op = nth_recv(0);
	g_assert_nonnull(memmem(sim_sent(io, op->sock).p, sim_sent(io, op->sock).n, "bodyfive", 8));
	reply("\nx");
	ENDED(&c, 0);
}

NEXT_TEST("/next/a status of the list goes on", a_conf(three, 2))
{
	asked_at(&c, "GET", 0);
	reply("Status: 503 Busy\n\nx"); /* not set */
	ENDED(&c, 0);
	own.next |= NEXT_503;
	asked_at(&c, "GET", 0);
	reply("Status: 503 Busy\n\nx");
	next_answers(&c, 1);
	asked_at(&c, "GET", 0);
	reply("Status: 503 Busy\n\nx");
	run_connect(0);
	run_send();
	reply("Status: 503 Busy\n\nlast"); /* none is left: the client gets it */
	ENDED(&c, 0);
	g_assert_cmpint(c.status, ==, 503);
	g_assert_cmpstr(c.body->str, ==, "last");
	asked_at(&c, "POST", 0);
	reply("Status: 503 Busy\n\nx");
	ENDED(&c, 0);
}

/* ---------------------------------------------------------------- max-fails */

static struct proxy_conf
fails_conf(size_t n)
{
	struct proxy_conf of = a_conf(three, n);

	of.max_fails = 3;
	of.fail_ms = 10000;
	return (of);
}

NEXT_TEST("/next/failures take a backend out, and it comes back", fails_conf(2))
{
	struct backend_health h;
	int i;

	for (i = 0; i < 3; i++) {
		asked_at(&c, "GET", 0);
		hangs_up();
		next_answers(&c, 1);
	}
	g_assert_cmpuint(counters.proxy_taken_out, ==, 1);
	backend_health(backends.v[0], io_now(io), &h);
	g_assert_cmpint(h.state, ==, BACKEND_FAILING);
	g_assert_cmpstr(h.reason, ==, "hung up");
	g_assert_nonnull(strstr(logged->str, "ev=backend.failing backend=10.4.0.1:80"));
	asked_at(&c, "GET", 1);
	reply("\nx");
	asked_at(&c, "GET", 1);
	hangs_up();
	next_answers(&c, 0); /* better a try than an error */
	sim_advance_ms(io, 10001);
	backend_health(backends.v[0], io_now(io), &h);
	g_assert_cmpint(h.state, ==, BACKEND_SLOW_START);
	asked_at(&c, "GET", 0);
	hangs_up(); /* once is enough now, and for twice the time */
	next_answers(&c, 1);
	g_assert_cmpuint(counters.proxy_taken_out, ==, 2);
	sim_advance_ms(io, 19000);
	asked_at(&c, "GET", 1);
	reply("\nx");
	sim_advance_ms(io, 1001);
	asked_at(&c, "GET", 0);
	reply("\nx");
	ENDED(&c, 0);
	sim_advance_ms(io, 10001);
	backend_health(backends.v[0], io_now(io), &h);
	g_assert_cmpint(h.state, ==, BACKEND_UP);
}

/* A malformed head counts, too. */
NEXT_TEST("/next/malformed heads take a backend out", fails_conf(2))
{
	int i;

	for (i = 0; i < 3; i++) {
		asked_at(&c, "GET", 0);
		speaks_badly();
		next_answers(&c, 1);
	}
	g_assert_cmpuint(counters.proxy_taken_out, ==, 1);
}

/* The only backend, and each when all fail, is asked. */
NEXT_TEST("/next/the only backend stays", fails_conf(1))
{
	int i;

	for (i = 0; i < 20; i++) {
		asked_at(&c, "GET", 0);
		hangs_up();
		ENDED(&c, 502);
	}
	asked_at(&c, "GET", 0);
	reply("\nx");
	ENDED(&c, 0);
}

/* One URL of many fails, for ever: nobody else loses the backend. */
NEXT_TEST("/next/one URL that fails takes nothing out", fails_conf(2))
{
	int i, k;

	for (i = 0; i < 20; i++) {
		asked_at(&c, "GET", 0);
		hangs_up();
		next_answers(&c, 1);
		for (k = 0; k < 5; k++) {
			asked_at(&c, "GET", 0);
			reply("\nx");
			ENDED(&c, 0);
		}
	}
	g_assert_cmpuint(counters.proxy_taken_out, ==, 0);
}

/* Failures of one worker count in the other. */
NEXT_TEST("/next/workers count together", fails_conf(2))
{
	struct upstream *first, *second;
	int i;

	first = up;
	second = upstream_new(io, &counters, &conf);
	for (i = 0; i < 3; i++) {
		up = i % 2 ? second : first;
		asked_at(&c, "GET", 0);
		hangs_up();
		next_answers(&c, 1);
	}
	for (i = 0; i < 2; i++) {
		up = i % 2 ? second : first;
		asked_at(&c, "GET", 1);
		reply("\nx");
		ENDED(&c, 0);
	}
	upstream_free(second);
	up = first;
}

/* A long time between failures, with none or with one success. */
TEST("/next/failures count within a time, or in a row")
{
	int i, k;

	conf = fails_conf(2);
	for (k = 0; k < 2; k++) {
		conf = fails_conf(2);
		set_up_next();
		for (i = 0; i < 3; i++) {
			asked_at(&c, "GET", 0);
			hangs_up();
			next_answers(&c, 1);
			if (k == 0) {
				asked_at(&c, "GET", 0);
				reply("\nx");
			}
			sim_advance_ms(io, 11000);
		}
		g_assert_cmpuint(counters.proxy_taken_out, ==, k);
		tear_down();
	}
}
