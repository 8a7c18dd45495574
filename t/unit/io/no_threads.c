/* t/unit/io/no_threads.c -- no thread can be started: what needs one is refused at once, and works
 * again as soon as one can be. */
#include "t/unit/io/tls_test.h"

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static bool none;

int
__wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	return (none ? EAGAIN : __real_pthread_create(t, attr, run, arg));
}

/* The result of a handshake with a new client. */
static int64_t
shakes(void)
{
	struct io_sock s;
	struct peer p;
	int fd;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, TLS1_3_VERSION);
	(void)shake_hands(&s, &p);
	sock_close(&s);
	peer_free(&p);
	return (shake.res);
}

/* After each refusal the next one is tried, and has no job of the last one in front. */
TLS_TEST("/no_threads/handshakes")
{
	int i;

	none = true;
	for (i = 0; i < 3; i++) {
		g_assert_cmpint(shakes(), ==, -EAGAIN);
		g_assert_cmpstr(shake.op.handshake.why, ==, "no thread is free");
	}
	none = false;
	g_assert_cmpint(shakes(), ==, 0);
	none = true; /* the one that runs is enough */
	g_assert_cmpint(shakes(), ==, 0);
	none = false;
}

static int runs;

static void
run(struct io_work *w)
{
	runs++;
}

static void
no_free(struct io_work *w)
{
}

static int64_t
works(void)
{
	struct io_work work = { .run = run, .free = no_free, .refs = 1 };
	struct waiter w;

	wait_init(&w, IO_WORK, NULL);
	w.op.work.work = &work;
	op_submit(io, &w.op);
	(void)wait_for(&w);
	g_assert_cmpint(work.refs, ==, 1);
	return (w.res);
}

TLS_TEST("/no_threads/computations")
{
	none = true;
	g_assert_cmpint(works(), ==, -EAGAIN);
	none = false;
	g_assert_cmpint(works(), ==, 0);
	g_assert_cmpint(runs, ==, 1);
}
