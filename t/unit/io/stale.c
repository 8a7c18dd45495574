/* t/unit/io/stale.c -- a socket is closed while a child still has it: its events reach no op. */
#include <sys/wait.h>
#include "io/loop/slots.h"
#include "t/unit/io/io_test.h"

struct child {
	pid_t pid;
	int lifeline; /* closed: the child ends */
};

/* The child has a copy of every descriptor that is open now. */
static struct child
child_start(void)
{
	struct child c;
	int p[2];
	char b;

	g_assert_cmpint(pipe(p), ==, 0);
	c.pid = fork();
	if (c.pid == 0) {
		close(p[1]);
		while (read(p[0], &b, 1) < 0 && errno == EINTR)
			;
		_exit(0);
	}
	g_assert_cmpint(c.pid, >, 0);
	close(p[0]);
	c.lifeline = p[1];
	return (c);
}

static void
child_end(struct child c)
{
	close(c.lifeline);
	g_assert_cmpint(waitpid(c.pid, NULL, 0), ==, c.pid);
}

struct owner { /* as a connection: the socket and its op live and die together */
	struct io_sock sock;
	struct waiter w;
};

/* A socket that is registered, because nothing is there to be received. */
static struct owner *
owner_new(int fd)
{
	struct owner *o = g_malloc0(sizeof(*o));

	io_sock_init(&o->sock, fd);
	wait_init(&o->w, IO_RECV, &o->sock);
	wait_submit(&o->w);
	while ((o->sock.hints & SOCK_REGISTERED) == 0)
		io_run(io);
	return (o);
}

static void
owner_free(struct owner *o)
{
	op_cancel(io, &o->w.op);
	g_assert_cmpint(wait_for(&o->w), ==, -ECANCELED);
	sock_close(&o->sock);
	memset(o, 0xff, sizeof(*o)); /* without a sanitizer, a stale pointer shows as a crash */
	g_free(o);
}

static void
sockets(int p[2])
{
	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p), ==,
	    0);
}

static void
put(int fd)
{
	g_assert_cmpint(write(fd, "x", 1), ==, 1);
}

LOOP_TEST("/stale/closed-socket-is-silent", file_backends[0], 1, 8)
{
	struct child c;
	struct owner *o;
	int p[2], i;

	sockets(p);
	o = owner_new(p[0]);
	c = child_start();
	owner_free(o);
	for (i = 0; i < 3; i++) {
		put(p[1]); /* each write is an event of the copied descriptor */
		run_ms(10);
	}
	close(p[1]);
	run_ms(10);
	child_end(c);
}

/* The number is used again while the old registration still reports: the new socket hears of its
 * own events only. */
LOOP_TEST("/stale/same-number-again", file_backends[0], 1, 8)
{
	struct owner *o;
	struct child c;
	int p[2], q[2], was;

	sockets(p);
	was = p[0];
	o = owner_new(p[0]);
	c = child_start();
	owner_free(o);
	sockets(q);
	g_assert_cmpint(q[0], ==, was);
	o = owner_new(q[0]);
	put(p[1]);
	run_ms(10);
	g_assert_false(o->w.done);
	/* the old event is not taken for its own */
	g_assert_cmpint(o->sock.hints & SOCK_READABLE, ==, 0);
	put(q[1]);
	g_assert_cmpint(wait_for(&o->w), ==, 1);
	wait_submit(&o->w);
	owner_free(o);
	close(p[1]);
	close(q[1]);
	child_end(c);
}

/* A listener is level-triggered: left in the set it would make the loop spin for as long as the
 * child lives. */
LOOP_TEST("/stale/closed-listener-does-not-spin", file_backends[0], 1, 8)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
	    client = socket(AF_INET, SOCK_STREAM, 0), i;
	socklen_t len = sizeof(in);
	struct waiter acc, t;
	struct io_sock s;
	struct child c;

	g_assert_cmpint(bind(fd, (struct sockaddr *)&in, len), ==, 0);
	g_assert_cmpint(listen(fd, 8), ==, 0);
	g_assert_cmpint(getsockname(fd, (struct sockaddr *)&in, &len), ==, 0);
	io_sock_init(&s, fd);
	wait_init(&acc, IO_ACCEPT, &s);
	wait_submit(&acc);
	io_wake(io);
	io_run(io);
	c = child_start();
	op_cancel(io, &acc.op);
	wait_for(&acc);
	sock_close(&s);
	/* the child's copy still listens */
	g_assert_cmpint(connect(client, (struct sockaddr *)&in, len), ==, 0);
	wait_init(&t, IO_TIMER, NULL);
	t.op.deadline_ms = 50;
	wait_submit(&t);
	for (i = 0; !t.done; i++)
		io_run(io);
	g_assert_cmpint(i, <, 20);
	close(client);
	child_end(c);
}

static int watched;

static void
watch_ready(struct io_watch *w)
{
	g_assert_cmpuint(w->slot, !=, 0);
	watched++;
}

LOOP_TEST("/stale/unwatched-is-silent", file_backends[0], 1, 8)
{
	struct io_watch *w = g_new0(struct io_watch, 1);
	struct child c;
	int p[2];

	sockets(p);
	w->ready = watch_ready;
	g_assert_cmpint(io->calls->watch(io, p[0], w), ==, 0);
	put(p[1]);
	run_ms(10);
	g_assert_cmpint(watched, ==, 1);
	c = child_start();
	io->calls->unwatch(io, w);
	io->calls->unwatch(io, w); /* nothing happens */
	g_free(w);
	close(p[0]);
	put(p[1]);
	run_ms(10);
	g_assert_cmpint(watched, ==, 1);
	close(p[1]);
	child_end(c);
}

/* Slots that were given back are taken again, so the table is as large as the most that were
 * registered at a time. */
TEST("/stale/slots-are-bounded")
{
	struct slots t = { 0 };
	uint64_t key;
	uint32_t a, b;
	int i, what;

	a = slot_take(&t, &what, false);
	g_assert_true(slot_find(&t, slot_key(&t, a))->what == &what);
	for (i = 0; i < 10000; i++) {
		b = slot_take(&t, &what, true);
		key = slot_key(&t, b);
		g_assert_true(slot_find(&t, key)->watch);
		slot_give_back(&t, b);
		g_assert_null(slot_find(&t, key));
	}
	g_assert_cmpuint(t.n, <=, 3);
	for (i = 0; i < 1000; i++)
		g_assert_cmpuint(slot_take(&t, &what, false), !=, a);
	slots_free(&t);
}
