/* t/unit/proxy-core/stall.c -- pools against applications that bind a thread to each kept socket,
 * as libfcgi does.
 *
 * A model of such an application: a listen queue, and threads that accept one socket each and serve
 * it until it closes.  Clients ask again as soon as they have an answer.
 */
#include <errno.h>
#include "t/unit/proxy-core/proxy_test.h"

#define MAX_CLIENTS 200
#define MAX_SOCKETS 400
#define MAX_THREADS 20
#define MAX_WORKERS 2

enum { FREE, QUEUED, ACCEPTED };

struct model {
	struct io_sock *sock[MAX_SOCKETS]; /* connected ones, oldest first */
	int fd[MAX_SOCKETS], state[MAX_SOCKETS];
	unsigned nsock;
	struct {
		int fd;           /* it serves; -1: none */
		uint64_t done_ns; /* when its reply is ready; 0: no request */
	} thread[MAX_THREADS];
	unsigned nthreads, service_ms, slow_every, longest_queue;
	bool unix_tells; /* io_sock_was_read() works */
	int slow_fd;     /* its replies take 500 ms; -2: those of the next socket; 0: of none */
};

struct client {
	struct upstream *up;
	struct proxy_request req;
	struct exchange *x;
	uint64_t asked_ns, worst_ns;
	unsigned answers, failures;
	bool resting;
};

static struct upstream *up[MAX_WORKERS];
static struct model app;
static struct client client[MAX_CLIENTS];

/* ---------------------------------------------------------------- the application */

static void
sock_gone(unsigned i)
{
	unsigned t;

	for (t = 0; t < app.nthreads; t++)
		if (app.thread[t].fd == app.fd[i])
			app.thread[t].fd = -1;
	for (; i + 1 < app.nsock; i++) {
		app.sock[i] = app.sock[i + 1];
		app.fd[i] = app.fd[i + 1];
		app.state[i] = app.state[i + 1];
	}
	app.nsock--;
}

static void
take_connects(void)
{
	struct io_op *op;

	while ((op = sim_find(io, IO_CONNECT, NULL)) != NULL) {
		g_assert_cmpuint(app.nsock, <, MAX_SOCKETS);
		app.sock[app.nsock] = op->sock;
		app.fd[app.nsock] = op->sock->fd;
		app.state[app.nsock++] = QUEUED;
		if (app.slow_fd == -2)
			app.slow_fd = op->sock->fd;
		sim_sent_clear(io, op->sock);
		sim_finish(io, op, 0);
		sim_run(io);
	}
}

static void
take_sends(void)
{
	struct io_op *op;

	while ((op = sim_find(io, IO_SEND, NULL)) != NULL) {
		sim_send(io, op, SIZE_MAX);
		sim_run(io);
	}
}

static void
take_closes(void)
{
	unsigned i;

	for (i = app.nsock; i-- > 0;)
		if (sim_closed(io, app.fd[i]) > 0)
			sock_gone(i);
}

static int
sock_of(int fd)
{
	unsigned i;

	for (i = 0; i < app.nsock; i++)
		if (app.fd[i] == fd)
			return ((int)i);
	return (-1);
}

static void
thread_accept(unsigned t)
{
	unsigned i;

	for (i = 0; i < app.nsock; i++) {
		if (app.state[i] != QUEUED)
			continue;
		app.state[i] = ACCEPTED;
		app.thread[t].fd = app.fd[i];
		app.thread[t].done_ns = 0;
		return;
	}
}

static void
thread_answer(unsigned t, unsigned i)
{
	bool keep = sim_sent(io, app.sock[i]).p[10] & 1; /* FCGI_KEEP_CONN of BEGIN_REQUEST */
	struct io_op *op = sim_find(io, IO_RECV, app.sock[i]);
	struct buf b;

	g_assert_nonnull(op);
	buf_init(&b, 0);
	put_stdout(&b, "\nok");
	put_end(&b, 0);
	sim_sent_clear(io, app.sock[i]);
	app.thread[t].done_ns = 0;
	if (!keep)
		app.thread[t].fd = -1;
	sim_recv(io, op, buf_as_text(&b));
	sim_run(io);
	buf_free(&b);
}

static void
thread_run(unsigned t)
{
	uint64_t ms = app.service_ms;
	int i;

	if (app.thread[t].fd < 0)
		thread_accept(t);
	if (app.thread[t].fd < 0)
		return;
	i = sock_of(app.thread[t].fd);
	if (i < 0 || sim_sent(io, app.sock[i]).n == 0)
		return;
	if (app.unix_tells)
		sim_was_read(app.sock[i]);
	if (app.thread[t].done_ns == 0) {
		if (app.slow_every > 0 && g_test_rand_int_range(0, (int)app.slow_every) == 0)
			ms *= 50;
		if (app.thread[t].fd == app.slow_fd)
			ms = 500;
		app.thread[t].done_ns = io_now(io) + ms * NS_PER_MS;
	} else if (io_now(io) >= app.thread[t].done_ns)
		thread_answer(t, (unsigned)i);
}

static void
app_run(void)
{
	unsigned t, queued = 0, i;

	take_connects();
	take_sends();
	take_closes();
	for (t = 0; t < app.nthreads; t++)
		thread_run(t);
	for (i = 0; i < app.nsock; i++)
		queued += app.state[i] == QUEUED;
	if (queued > app.longest_queue)
		app.longest_queue = queued;
}

/* ---------------------------------------------------------------- the clients */

static void client_ask(struct client *c);

static void
c_head(void *arg, const struct proxy_reply *r)
{
	g_assert_cmpint(r->status, ==, 200);
}

static void
c_body(void *arg, struct text bytes)
{
	g_assert_cmpuint(bytes.n, ==, 2);
}

static void
c_end(void *arg, int status, unsigned retry_after)
{
	struct client *c = arg;
	uint64_t took = io_now(io) - c->asked_ns;

	c->x = NULL;
	if (took > c->worst_ns)
		c->worst_ns = took;
	if (status == 0)
		c->answers++;
	else
		c->failures++;
	if (!c->resting)
		client_ask(c);
}

static void
client_ask(struct client *c)
{
	static const struct exchange_sink sink = { c_head, c_body, NULL, c_end };

	c->req = a_request("GET");
	c->asked_ns = io_now(io);
	g_assert_cmpint(exchange_start(c->up, &c->req, &own, &sink, c, &c->x), ==, 0);
}

static void
set_up(unsigned nworkers, unsigned pool, unsigned threads, unsigned service_ms)
{
	static const char *const model[] = { "unix:/run/model.sock" };
	struct proxy_conf conf = a_conf(model, 1);
	unsigned i;

	conf.balancer = "round-robin";
	conf.max_pool_size = pool;
	conf.max_keep_alive_requests = 10000;
	conf.disable_ms = 1000;
	conf.max_waiters = 1024;
	own.read_ms = 10000;
	sim_up();
	memset(&app, 0, sizeof(app));
	memset(client, 0, sizeof(client));
	app.nthreads = threads;
	app.service_ms = service_ms;
	for (i = 0; i < threads; i++)
		app.thread[i].fd = -1;
	for (i = 0; i < nworkers; i++) {
		up[i] = upstream_new(io, &counters, &conf);
		g_assert_nonnull(up[i]);
	}
	for (i = 0; i < MAX_CLIENTS; i++)
		client[i].up = up[i % nworkers];
}

static void
run_ms(unsigned ms)
{
	while (ms-- > 0) {
		app_run();
		sim_advance_ms(io, 1);
	}
}

/* Each of these clients has enough answers, no failure, and no wait above worst_ms. */
static void
check_clients(unsigned from, unsigned n, unsigned least, unsigned worst_ms)
{
	unsigned i;

	for (i = from; i < from + n; i++) {
		g_assert_cmpuint(client[i].failures, ==, 0);
		g_assert_cmpuint(client[i].answers, >=, least);
		g_assert_cmpuint(client[i].worst_ns / NS_PER_MS, <=, worst_ms);
	}
}

static void
tear_down(unsigned nworkers)
{
	unsigned i;

	for (i = 0; i < MAX_CLIENTS; i++)
		client[i].resting = true;
	run_ms(12000); /* the last answers arrive, kept sockets time out */
	for (i = 0; i < MAX_CLIENTS; i++)
		g_assert_null(client[i].x);
	for (i = 0; i < nworkers; i++) {
		g_assert_true(upstream_idle(up[i]));
		upstream_free(up[i]);
	}
	sim_down();
}

static void
start(unsigned from, unsigned n)
{
	unsigned i;

	for (i = from; i < from + n; i++)
		client_ask(&client[i]);
}

/* ---------------------------------------------------------------- stories */

/* 200 clients, a pool of 20 sockets, an application of 3 threads. */
TEST("/stall/200 clients of 3 threads all get answers")
{
	set_up(1, 20, 3, 1);
	start(0, 200);
	run_ms(10000);
	check_clients(0, 200, 20, 1000);
	g_assert_cmpuint(counters.proxy_stalls, >, 0);
	g_test_message("%u stalls in 10 s", (unsigned)counters.proxy_stalls);
	g_assert_nonnull(strstr(logged->str, "ev=pool.stalled"));
	g_assert_null(strstr(strstr(logged->str, "ev=pool.stalled") + 1,
	    "ev=pool.stalled")); /* logged once */
	tear_down(1);
}

TEST("/stall/200 clients of 20 threads cause no stall")
{
	set_up(1, 20, 20, 1);
	start(0, 200);
	run_ms(5000);
	check_clients(0, 200, 100, 200);
	g_assert_cmpuint(counters.proxy_stalls, ==, 0);
	g_assert_cmpuint(app.nsock, ==, 20); /* kept all the time */
	tear_down(1);
}

/* One worker keeps the sockets that the other one needs.  Neither sees that in its own pool. */
TEST("/stall/two workers that share 3 threads all get answers")
{
	set_up(2, 20, 3, 1);
	start(0, 200);
	run_ms(10000);
	check_clients(0, 200, 20, 1000);
	tear_down(2);
}

/* Idle sockets of one worker bind all threads.  Then requests come through the other worker. */
TEST("/stall/idle sockets of another worker are closed")
{
	unsigned i;

	set_up(2, 3, 3, 1);
	start(0, 6); /* three each */
	run_ms(100);
	for (i = 0; i < MAX_CLIENTS; i++)
		client[i].resting = true;
	run_ms(1000);
	client[0].resting = client[1].resting = false;
	start(0, 2);
	run_ms(3000);
	check_clients(0, 2, 3, 1000);
	tear_down(2);
}

TEST("/stall/two workers that share 1 thread all get answers")
{
	set_up(2, 1, 1, 1);
	start(0, 2);
	run_ms(5000);
	check_clients(0, 2, 10, 1000);
	tear_down(2);
}

/* A reply takes 300 ms.  That is slow, not a stall. */
TEST("/stall/a slow application causes no stall")
{
	unsigned i;

	set_up(1, 20, 20, 300);
	for (i = 0; i < 20; i++) {
		start(i, 1);
		run_ms(60);
	}
	run_ms(5000);
	check_clients(0, 20, 10, 700);
	g_assert_cmpuint(counters.proxy_stalls, ==, 0);
	tear_down(1);
}

/* The first replies of an application after a start take 500 ms.  Another worker has its first
 * sooner, and keeps that socket. */
TEST("/stall/a slow application of two workers causes no stall")
{
	unsigned i;

	set_up(2, 20, 20, 500);
	for (i = 0; i < 20; i++) {
		start(i, 1);
		run_ms(130);
	}
	run_ms(5000);
	check_clients(0, 20, 8, 700);
	g_assert_cmpuint(counters.proxy_stalls, ==, 0);
	tear_down(2);
}

/* Pages take 1 ms, and one client asks for those that take 500 ms.  A guess that was wrong is not
 * made twice, and no line asks for a change. */
static void
slow_pages(bool tells, unsigned most)
{
	unsigned i;

	set_up(1, 20, 20, 1);
	app.unix_tells = tells;
	start(0, 3);
	run_ms(100);
	for (i = 0; i < 10; i++) {
		app.slow_fd = -2; /* the next fresh socket */
		start(3 + i, 1);
		run_ms(1300);
	}
	g_assert_cmpuint(counters.proxy_stalls, <=, most);
	g_assert_null(strstr(logged->str, "ev=pool.stalled"));
	tear_down(1);
}

TEST("/stall/slow pages of a fast application cause no warning")
{
	slow_pages(false, 1);
	slow_pages(true, 0); /* a unix socket: no guess at all */
}

/* One reply of 40 takes 500 ms, the others 10 ms.  A stall that is seen by mistake costs no client
 * its answer. */
TEST("/stall/slow replies among fast ones lose no answer")
{
	set_up(1, 20, 20, 10);
	app.slow_every = 40;
	start(0, 40);
	run_ms(10000);
	check_clients(0, 40, 100, 2000);
	g_test_message("%u stalls were seen", (unsigned)counters.proxy_stalls);
	tear_down(1);
}

/* A hung application keeps no socket and answers nothing.  That is not a stall, and its clients
 * fail at the deadline. */
TEST("/stall/a hung application causes no stall")
{
	unsigned i;

	set_up(1, 20, 3, 1);
	start(0, 3);
	run_ms(100);
	app.service_ms = 1000000;
	start(3, 20);
	run_ms(9000);
	g_assert_cmpuint(counters.proxy_stalls, ==, 0);
	for (i = 0; i < MAX_CLIENTS; i++)
		client[i].resting = true;
	run_ms(13000);
	app.service_ms = 1;
	tear_down(1);
}

/* Each stall doubles the time without kept sockets, in all blocks.  A quiet time resets it. */
TEST("/stall/each stall doubles the time without kept sockets")
{
	struct address addr;
	struct backend *b, *same, *other;
	uint64_t now = 1000 * NS_PER_S, ms;
	bool news;

	g_assert_cmpint(address_parse("unix:/run/other.sock", &addr), ==, 0);
	b = backend_get(0, addr.name, &addr, 1);
	same = backend_get(1, addr.name, &addr, 1);
	other = backend_get(0, "unix:/run/a.sock", &addr, 1);
	g_assert_true(b != same && backend_get(0, addr.name, &addr, 1) == b);
	for (ms = BACKEND_CROWDED_MIN_MS; ms < 2 * BACKEND_CROWDED_MAX_MS; ms *= 2) {
		g_assert_true(backend_set_crowded(same, now, false, &news));
		g_assert_cmpint(news, ==,
		    ms == 2 * BACKEND_CROWDED_MIN_MS); /* once, when it comes back */
		g_assert_false(backend_set_crowded(b, now, false, &news));
		now += (ms < BACKEND_CROWDED_MAX_MS ? ms : BACKEND_CROWDED_MAX_MS) * NS_PER_MS;
		g_assert_true(backend_crowded(b, now - 1));
		g_assert_false(backend_crowded(other, now - 1));
		g_assert_false(backend_crowded(same, now));
	}
	now += 5 * BACKEND_CROWDED_MAX_MS * NS_PER_MS;
	g_assert_true(backend_set_crowded(b, now, false, &news));
	g_assert_false(backend_crowded(b, now + BACKEND_CROWDED_MIN_MS * NS_PER_MS));
	backend_put(b);
	backend_put(b);
	backend_put(other);
	g_assert_true(backend_crowded(same, now)); /* its last user is still there */
	backend_put(same);
	g_assert_false(backend_crowded(same, now));
}
