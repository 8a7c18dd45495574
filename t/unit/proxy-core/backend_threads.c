/* t/unit/proxy-core/backend_threads.c -- workers and the main thread use one backend at the same
 * time.  ThreadSanitizer reports plain accesses (make VARIANT=tsan). */
#include <pthread.h>
#include "base/must.h"
#include "proxy-core/backend.h"
#include "t/unit/test.h"

#define ROUNDS 2000

static struct backend *shared;
static pthread_barrier_t both;

/* A pool of a worker: made, used, freed. */
static void *
worker(void *arg)
{
	uint64_t now;

	pthread_barrier_wait(&both);
	for (now = 1; now <= ROUNDS; now++) {
		backend_use(shared);
		backend_kept(shared, now);
		(void)backend_crowded(shared, now);
		(void)backend_keeps_since(shared, now);
		backend_put(shared);
	}
	return (NULL);
}

/* A reload: the old configuration leaves while pools come and go. */
TEST("/backend/threads share it")
{
	struct address a;
	pthread_t t;
	uint64_t now;
	bool first;

	g_assert_cmpint(address_parse("10.0.0.1:80", &a), ==, 0);
	shared = backend_get(0, a.name, &a, 1);
	g_assert_nonnull(shared);
	backend_put(shared); /* users is 0 between the rounds, so backend_put() resets the times */
	g_assert_cmpint(pthread_barrier_init(&both, NULL, 2), ==, 0);
	g_assert_cmpint(pthread_create(&t, NULL, worker, NULL), ==, 0);
	pthread_barrier_wait(&both);
	for (now = 1; now <= ROUNDS; now++) {
		backend_use(shared);
		backend_set_crowded(shared, now, true, &first);
		backend_put(shared);
	}
	g_assert_cmpint(pthread_join(t, NULL), ==, 0);
	pthread_barrier_destroy(&both);
	g_assert_cmpuint(backend_read(shared, users), ==, 0);
	g_assert_false(backend_crowded(shared, ROUNDS));
}
