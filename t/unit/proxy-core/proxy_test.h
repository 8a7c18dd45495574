/* t/unit/proxy-core/proxy_test.h -- a simulated loop, its log and counters, and the settings of a
 * pool. */
#ifndef PROXY_TEST_H
#define PROXY_TEST_H

#include "io/loop/sim.h"
#include "proxy-core/address.h"
#include "proxy-core/backends.h"
#include "proxy-core/conf.h"
#include "proxy-core/counters.h"
#include "proxy-core/exchange.h"
#include "t/unit/wire/wire_test.h"

static struct io *io;
static struct proxy_counters counters;
static GString *logged;

static const char *const one[] G_GNUC_UNUSED = { "10.0.0.1:80" };
static const char *const two[] G_GNUC_UNUSED = { "10.0.0.1:80", "10.0.0.2:80" };

static const struct exchange_conf own_usual G_GNUC_UNUSED = { .wait_ms = 10000, .read_ms = 60000 };
static struct exchange_conf own G_GNUC_UNUSED = { .wait_ms = 10000, .read_ms = 60000 };

static struct backends backends;

static struct proxy_conf
a_conf(const char *const *specs, size_t n)
{
	struct address a;

	backends_put(&backends);
	backends.split = true;
	while (n-- > 0) {
		g_assert_cmpint(address_parse(*specs, &a), ==, 0);
		g_assert_cmpint(backends_add(&backends, *specs++, &a, 1, 1), ==, 0);
	}
	return ((struct proxy_conf){
	    .proto = proto_find("fastcgi"),
	    .backends = &backends,
	    .balancer = "static",
	    .max_pool_size = 2,
	    .max_keep_alive_requests = 100,
	    .disable_ms = 2000,
	    .max_waiters = 3,
	    .connect_ms = 5000,
	    .idle_ms = 10000,
	});
}

static void G_GNUC_UNUSED
sim_up(void)
{
	io = sim_new();
	sim_auto_close(io, true);
	logged = g_string_new(NULL);
	log_set_sink(log_nowhere, logged);
	memset(&counters, 0, sizeof(counters));
}

/* No op and no socket is left.  AddressSanitizer checks the memory. */
static void G_GNUC_UNUSED
sim_down(void)
{
	sim_run(io);
	g_assert_false(io_busy(io));
	io_free(io);
	g_string_free(logged, TRUE);
	log_set_sink(log_nowhere, NULL);
}

void
tests_begin(void)
{
	log_set_sink(log_nowhere, NULL);
}

#endif
