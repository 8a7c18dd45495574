/* t/unit/fcgi-stat-accel/conn_give.c -- descriptors of files for clients that ask for them: each
 * goes with the first byte of its own answer, and is closed here once, in each order of events. */

#include "t/unit/fcgi-stat-accel/conn_test.h"

#define FILE_FD 90
#define WANTS   "\011\001WARM_OPEN1"

static void
put_open(GString *s, int id, const char *path)
{
	put_pairs(s, id, true, path, WANTS);
}

static void
ask_open(int id, const char *path)
{
	GString *s = g_string_new(NULL);

	put_open(s, id, path);
	receive(s);
}

static void
receive_values(void)
{
	GString *s = g_string_new(NULL);

	put_record(s, 9, 0, "", 0);
	receive(s);
}

/* Ends the oldest open with a descriptor or -errno. */
static void
opened(int res)
{
	struct warm_open *o = list_entry(list_pop(&opens), struct warm_open, link);

	o->how.done(o->how.arg, res);
	g_free(o);
	sim_run(io);
}

static unsigned
nopens(void)
{
	struct warm_open *o;
	unsigned n = 0;

	list_each(o, &opens, link)
		n++;
	return (n);
}

/* The descriptor of the send in flight; -1: none. */
static int
fd_in_flight(void)
{
	const struct io_op *op = op_of(IO_SEND);

	return (op->gives ? op->send.fd : -1);
}

static void
send_some(size_t n)
{
	sim_send(io, op_of(IO_SEND), n);
	sim_run(io);
}

static void
assert_given(unsigned n)
{
	g_assert_cmpuint(counters.events.given, ==, n);
	g_assert_cmpuint(counters.fds, ==, 0);
}

/* "Warm-Errno" of the answers so far; 0: none. */
static int
errno_sent(void)
{
	const char *before = "\r\nWarm-Errno: ", *p;
	struct text t;

	send_all();
	t = sim_sent(io, &the_conn()->sock);
	p = memmem(t.p, t.n, before, strlen(before));
	return (p != NULL ? atoi(p + strlen(before)) : 0);
}

UP_TEST("/conn/give/with-the-first-byte")
{
	ask_open(1, "/hot");
	g_assert_cmpuint(sim_count(io, IO_SEND), ==, 0); /* it is opened, hot or not */
	g_assert_cmpstr(list_entry(opens.next, struct warm_open, link)->path, ==, "/hot");
	opened(FILE_FD);
	g_assert_cmpuint(counters.fds, ==, 1);
	g_assert_cmpint(fd_in_flight(), ==, FILE_FD);
	g_assert_cmpuint(sim_closed(io, FILE_FD), ==, 0);
	send_some(1);
	g_assert_cmpuint(sim_closed(io, FILE_FD), ==, 1);
	g_assert_cmpint(fd_in_flight(), ==, -1);
	assert_heard("1:200 ");
	assert_given(1);
	g_assert_cmpuint(sim_closed(io, FILE_FD), ==, 1);
	g_assert_null(the_conn()->turn);
	ask(2, true, "/hot");
	g_assert_cmpint(fd_in_flight(), ==, -1);
	g_assert_cmpuint(nopens(), ==, 0);
}

UP_TEST("/conn/give/after-a-look-up")
{
	ask_open(1, "/cold");
	g_assert_cmpuint(nopens(), ==, 0);
	found(0);
	g_assert_cmpuint(nopens(), ==, 1);
	g_assert_cmpuint(sim_count(io, IO_RECV), ==, 1); /* it may abort */
	opened(FILE_FD);
	assert_heard("1:200 ");
	assert_given(1);
}

UP_TEST("/conn/give/each-answer-has-its-own")
{
	GString *s = g_string_new(NULL);

	put_open(s, 1, "/hot");
	put_request(s, 2, true, "/hot");
	put_open(s, 3, "/hot");
	receive(s);
	g_assert_cmpuint(nopens(), ==, 1);
	opened(FILE_FD);
	g_assert_cmpint(fd_in_flight(), ==, FILE_FD);
	send_some(SIZE_MAX);
	g_assert_cmpuint(nopens(), ==, 1);
	g_assert_cmpint(fd_in_flight(), ==, -1); /* of the second one, while the third is opened */
	opened(FILE_FD + 1);
	g_assert_cmpint(fd_in_flight(), ==, -1);
	send_some(SIZE_MAX);
	g_assert_cmpint(fd_in_flight(), ==, FILE_FD + 1);
	assert_heard("1:200 2:200 3:200 ");
	assert_given(2);
	g_assert_cmpuint(sim_closed(io, FILE_FD), ==, 1);
	g_assert_cmpuint(sim_closed(io, FILE_FD + 1), ==, 1);
}

/* Bytes before it are in flight, and others wait for these; more bytes come after it. */
UP_TEST("/conn/give/not-with-bytes-of-others")
{
	ask_open(1, "/hot");
	receive_values();
	receive_values();
	opened(FILE_FD);
	g_assert_cmpint(fd_in_flight(), ==, -1);
	send_some(SIZE_MAX);
	g_assert_cmpint(fd_in_flight(), ==, -1);
	g_assert_cmpuint(sim_closed(io, FILE_FD), ==, 0);
	send_some(SIZE_MAX);
	g_assert_cmpint(fd_in_flight(), ==, FILE_FD);
	assert_heard("values values 1:200 ");
	assert_given(1);
	ask_open(2, "/hot");
	receive_values();
	opened(FILE_FD + 1); /* a receive is still in flight */
	ask(3, true, "/hot");
	send_some(SIZE_MAX);
	g_assert_cmpint(fd_in_flight(), ==, FILE_FD + 1);
	assert_heard("values 2:200 3:200 ");
	assert_given(2);
}

/* One is being sent, one waits for it, and one is of the request that had been received by then. */
UP_TEST("/conn/give/never-read")
{
	unsigned n;

	for (n = 0; n < 10 && op_of(IO_RECV) != NULL; n++) {
		ask_open((int)n + 1, "/hot");
		opened(FILE_FD + (int)n);
	}
	g_assert_cmpuint(n, ==, 3);
	g_assert_cmpuint(counters.fds, ==, n);
	sim_advance_ms(io, 10100);
	assert_closed();
	assert_given(0);
	for (unsigned i = 0; i < n; i++)
		g_assert_cmpuint(sim_closed(io, FILE_FD + (int)i), ==, 1);
}

UP_TEST("/conn/give/connection-dies-first")
{
	ask_open(1, "/hot");
	opened(FILE_FD);
	sim_finish(io, op_of(IO_SEND), -EPIPE);
	sim_run(io);
	g_assert_cmpuint(sim_closed(io, FILE_FD), ==, 1);
	assert_given(0);
}

/* libfcgi refuses the request when it is read again, as without memory. */
UP_TEST("/conn/give/cannot-be-answered")
{
	ask_open(1, "/hot");
	g_string_truncate(the_conn()->turn->request, 3);
	opened(FILE_FD);
	g_assert_cmpuint(sim_closed(io, FILE_FD), ==, 1);
	assert_closed();
	assert_given(0);
}

UP_TEST("/conn/give/gone-while-opened")
{
	ask_open(1, "/hot");
	sim_finish(io, op_of(IO_RECV), 0);
	sim_run(io);
	g_assert_cmpuint(cancelled, ==, 1);
	assert_closed();
}

UP_TEST("/conn/give/abort-while-opened")
{
	ask_open(1, "/hot");
	abort_request(1);
	g_assert_cmpuint(cancelled, ==, 1);
	assert_heard("1:end ");
	ask_open(2, "/hot");
	opened(FILE_FD);
	assert_heard("2:200 ");
	assert_given(1);
}

/* Too many descriptors of this user are on their way: the answer goes without. */
UP_TEST("/conn/give/too-many-on-their-way")
{
	ask_open(1, "/hot");
	opened(FILE_FD);
	sim_finish(io, op_of(IO_SEND), -ETOOMANYREFS);
	sim_run(io);
	g_assert_cmpint(fd_in_flight(), ==, -1);
	g_assert_cmpuint(sim_closed(io, FILE_FD), ==, 1);
	assert_heard("1:200 ");
	assert_given(0);
	assert_open();
}

UP_TEST("/conn/give/not-to-others")
{
	GString *s = g_string_new(NULL);

	put_pairs(s, 1, true, "/hot", "\011\001WARM_OPEN0");
	receive(s);
	assert_heard("1:200 ");
	g_assert_false(all.told);
	own_user = false;
	ask_open(1, "/hot");
	assert_heard("1:200 ");
	g_assert_true(all.told);
	hot.err = -ENOENT;
	ask_open(2, "/hot");
	g_assert_cmpint(errno_sent(), ==, 0);
	assert_heard("2:404 ");
}

/* err: of the look-up.  opens: then it is opened, with result res.  said: Warm-Errno. */
static void
check_error(const struct warm_found *f, bool opens_it, int res, bool given, int said)
{
	up();
	hot = *f;
	ask_open(1, "/hot");
	g_assert_cmpuint(nopens(), ==, opens_it);
	if (opens_it)
		opened(res);
	g_assert_cmpint(fd_in_flight(), ==, given ? FILE_FD : -1);
	g_assert_cmpint(errno_sent(), ==, said);
	g_assert_cmpuint(counters.events.opens_failed, ==, said != 0);
	g_assert_cmpuint(sim_closed(io, FILE_FD), ==, opens_it && res >= 0);
	assert_given(given);
	down();
}

TEST("/conn/give/errors")
{
	const int own[] = { ENOENT, ENOTDIR, EACCES, ELOOP, ENAMETOOLONG };
	const int rules[] = { EXDEV, EPERM, ENODEV, ETIMEDOUT, EAGAIN, EMFILE, ENOMEM };
	struct warm_found f = { 0 };

	for (guint i = 0; i < G_N_ELEMENTS(own); i++) {
		check_error(&f, true, -own[i], false, own[i]);
		check_error(&(struct warm_found){ .err = -own[i] }, false, 0, false, own[i]);
		/* what is remembered may be wrong by now */
		f = (struct warm_found){ .err = -own[i], .remembered = true };
		check_error(&f, true, -own[i], false, own[i]);
		check_error(&f, true, FILE_FD, false, 0);
		check_error(&f, true, -ETIMEDOUT, false, 0);
		f = (struct warm_found){ 0 };
	}
	for (guint i = 0; i < G_N_ELEMENTS(rules); i++) {
		check_error(&f, true, -rules[i], false, 0);
		check_error(&(struct warm_found){ .err = -rules[i] }, false, 0, false, 0);
	}
	check_error(&(struct warm_found){ .err = -EIO }, true, FILE_FD, false, 0); /* a read */
	check_error(&(struct warm_found){ .err = -EIO }, true, -EIO, false, EIO);
}

/* It may be in a group that can read the file. */
UP_TEST("/conn/give/no-permission-of-ours")
{
	own_groups = false;
	hot.err = -EACCES;
	ask_open(1, "/hot");
	g_assert_cmpint(errno_sent(), ==, 0);
	hot.err = 0;
	ask_open(2, "/hot");
	opened(-EACCES);
	g_assert_cmpint(errno_sent(), ==, 0);
	hot.err = -ENOENT;
	ask_open(3, "/hot");
	g_assert_cmpint(errno_sent(), ==, ENOENT);
}

TEST("/conn/give/directories")
{
	struct warm_found f = { .err = -EISDIR };

	check_error(&f, true, FILE_FD, true, 0);
	check_error(&f, true, -EACCES, false, EACCES);
	f = (struct warm_found){ .index = "index.html" };
	check_error(&f, true, FILE_FD, true, 0);
	f.err = -EACCES; /* of the index file */
	check_error(&f, true, FILE_FD, true, 0);
	f.err = -EAGAIN;
	check_error(&f, false, 0, false, 0);
}

UP_TEST("/conn/give/late")
{
	ask_open(1, "/hot");
	opened(-ETIMEDOUT);
	assert_heard("1:503 ");
	ask_open(2, "/hot");
	all.draining = true;
	g_assert_cmpuint(conns_give_up(&all), ==, 1);
	g_assert_cmpuint(cancelled, ==, 1);
	assert_heard("2:503 ");
	g_assert_true(the_conn()->lingering);
}

/* All connections close while it is on its way.  down() finds what is left. */
TEST("/conn/give/closed-in-every-state")
{
	up();
	ask_open(1, "/hot");
	down();
	up();
	ask_open(1, "/cold");
	found(0);
	down();
	up();
	ask_open(1, "/hot");
	opened(FILE_FD);
	conns_close(&all);
	sim_run(io);
	g_assert_cmpuint(sim_closed(io, FILE_FD), ==, 1);
	down();
	up();
	ask_open(1, "/hot");
	receive_values();
	opened(FILE_FD);
	conns_close(&all);
	sim_run(io);
	g_assert_cmpuint(sim_closed(io, FILE_FD), ==, 1);
	down();
}
