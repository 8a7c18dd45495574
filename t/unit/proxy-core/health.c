/* t/unit/proxy-core/health.c -- the state of a backend, since when, and its reason. */
#include "proxy-core/backend_health.h"
#include "t/unit/proxy-core/exchange_test.h"

static struct backend_health
health(void)
{
	struct backend_health h;

	backend_health(backends.v[0], io_now(io), &h);
	return (h);
}

#define IS(a_state, a_reason)                             \
	do {                                              \
		struct backend_health h_ = health();      \
		g_assert_cmpint(h_.state, ==, a_state);   \
		g_assert_cmpstr(h_.reason, ==, a_reason); \
	} while (0)

static void
faults_are(unsigned refused, unsigned hangup, unsigned timeout, unsigned bad)
{
	const struct backend *b = backends.v[0];

	g_assert_cmpuint(b->faults[BACKEND_FAULT_refused], ==, refused);
	g_assert_cmpuint(b->faults[BACKEND_FAULT_hangup], ==, hangup);
	g_assert_cmpuint(b->faults[BACKEND_FAULT_timeout], ==, timeout);
	g_assert_cmpuint(b->faults[BACKEND_FAULT_bad], ==, bad);
	g_assert_cmpuint(b->failed, ==, refused + hangup + timeout + bad);
}

/* A backend of its own for each test: its faults begin at zero. */
static void
up_for(const char *name, unsigned check_ms)
{
	conf = a_conf(&name, 1);
	conf.slow_start_ms = check_ms == 0 ? 3000 : 0;
	conf.check_ms = check_ms;
	conf.check_url = check_ms == 0 ? NULL : "/ping";
	set_up();
}

#define HEALTH_TEST(path, ...) TEST_IN(path, up_for(__VA_ARGS__), tear_down())

HEALTH_TEST("/health/a backend that cannot be reached", "10.3.0.1:80", 0)
{
	uint64_t since = io_now(io);

	ask(&c, "GET");
	run_connect(-ECONNREFUSED);
	ENDED(&c, 503);
	IS(BACKEND_UNREACHABLE, "connect: refused");
	g_assert_cmpuint(health().since_ns, ==, since);
	sim_advance_ms(io, 2001);
	ask(&c, "GET");
	sim_advance_ms(io, 5001);
	ENDED(&c, 504);
	IS(BACKEND_UNREACHABLE, "connect: no answer in 5 s");
	g_assert_cmpuint(health().since_ns, ==, since);
	sim_advance_ms(io, 4001);
	asked(&c, "GET");
	run_lost(0);
	ENDED(&c, 502);
	IS(BACKEND_UNREACHABLE, "hung up");
	sim_advance_ms(io, 8001);
	asked(&c, "GET");
	reply("\nx");
	ENDED(&c, 0);
	IS(BACKEND_SLOW_START, "");
	sim_advance_ms(io, 3001);
	IS(BACKEND_UP, "");
	faults_are(1, 1, 1, 0);
}

HEALTH_TEST("/health/a check that fails", "10.3.0.2:80", 1000)
{
	sim_advance_ms(io, 300);
	run_connect(0);
	run_send();
	reply("Status: 500 No\n\nx");
	IS(BACKEND_CHECK_FAILED, "HTTP 500");
	sim_advance_ms(io, 1100);
	run_send();
	sim_advance_ms(io, 1100);
	IS(BACKEND_CHECK_FAILED, "no answer in 2 s");
	upstream_close_idle(up);
}

/* A failure of one request is none of the backend; it is counted by kind. */
HEALTH_TEST("/health/failures are counted by kind", "10.3.0.3:80", 0)
{
	asked(&c, "GET");
	reply("no head\n\n");
	ENDED(&c, 502);
	asked(&c, "GET");
	run_lost(-ECONNRESET);
	ENDED(&c, 502);
	asked(&c, "GET");
	sim_advance_ms(io, 60100);
	ENDED(&c, 504);
	faults_are(0, 1, 1, 1);
	IS(BACKEND_UP, "");
}
