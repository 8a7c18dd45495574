/* t/unit/proxy-core/no_memory.c -- a request that finds no memory for its place in the queue. */
#include "proxy-core/pool_impl.h"
#include "t/unit/proxy-core/proxy_test.h"

/* The sanitizers bring their own calloc(). */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_CALLOC 0
#else
#define OWN_CALLOC 1
#endif

static bool no_memory;

#if OWN_CALLOC
void *__libc_calloc(size_t, size_t);

void *
calloc(size_t n, size_t size)
{
	return (no_memory ? NULL : __libc_calloc(n, size));
}
#endif

static int result;

static void
got(struct pool_wait *w, struct lease *l, int err)
{
	g_assert_null(l);
	result = err;
}

static void
ignore_empty(void *arg)
{
}

TEST("/no-memory/pool-get")
{
	struct proxy_conf conf;
	struct pool_wait w = { .got = got };
	struct pool *p;

	if (!OWN_CALLOC) {
		g_test_skip("the sanitizer has its own calloc()");
		return;
	}
	conf = a_conf(one, 1);
	sim_up();
	p = pool_new(io, &counters, backends.v[0], &conf, ignore_empty, NULL);
	no_memory = true;
	pool_get(p, &w);
	no_memory = false;
	g_assert_cmpint(result, ==, -ENOMEM);
	g_assert_false(w.waits);
	g_assert_cmpuint(pool_waiting(p), ==, 0);
	pool_free(p);
	backends_put(&backends);
	sim_down();
}
