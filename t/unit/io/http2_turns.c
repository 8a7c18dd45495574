/* t/unit/io/http2_turns.c -- which of the streams of HTTP/2 sends next, and what waits while the
 * socket or the windows are full. */
#include "t/unit/io/http2_test.h"

#define LARGE    (2u << 20)
#define FIELD(p) ":method GET\n:path /\n:scheme http\n:authority h\npriority " p "\n"

static int32_t id[OWNERS];

/* n requests that wait for their replies. */
static void
up_asked(unsigned n, const char *const *fields)
{
	unsigned i;

	up();
	open_wide();
	for (i = 0; i < n; i++)
		id[i] = ask(fields != NULL ? fields[i] : GET);
	exchange();
	g_assert_cmpuint(nowners, ==, n);
}

static size_t
got(unsigned nr)
{
	return (reply_of(id[nr])->body->len);
}

/* All send this much at once. */
static void
all_say(unsigned n, size_t size)
{
	unsigned i;

	now.room = 0;
	for (i = 0; i < n; i++)
		say_many(&owner[i], size);
	exchange();
	now.room = SIZE_MAX;
}

static void
until(unsigned nr, size_t n)
{
	while (got(nr) < n)
		g_assert_true(step());
}

TEST("/http2-turns/a small reply that is ready overtakes a large one")
{
	up_asked(2, NULL);
	say_many(&owner[0], LARGE);
	sim_run(io); /* the first batch is on its way */
	say_many(&owner[1], 1000);
	until(1, 1000);
	g_assert_cmpuint(got(0), <=, 3 * HTTP2_BATCH);
	until(0, LARGE);
	down();
}

TEST("/http2-turns/a stream without bytes gives its turn away")
{
	up_asked(2, NULL);
	say_head(&owner[0], OK "Content-Length: 2000\r\n\r\n");
	exchange();
	g_assert_true(stream_of_owner(&owner[0])->deferred);
	say_many(&owner[1], LARGE);
	exchange();
	g_assert_cmpuint(got(1), ==, LARGE);
	g_assert_cmpuint(got(0), ==, 0);
	say_bytes(&owner[0], many, 2000);
	exchange();
	g_assert_cmpuint(got(0), ==, 2000);
	down();
}

/* ... and has it again as soon as it has bytes. */
TEST("/http2-turns/a stream that has bytes again does not wait for the end of another")
{
	up_asked(2, NULL);
	say_head(&owner[0], OK "Content-Length: 2000\r\n\r\n");
	exchange();
	say_many(&owner[1], LARGE);
	until(1, LARGE / 2);
	say_bytes(&owner[0], many, 2000);
	until(0, 2000);
	g_assert_cmpuint(got(1), <=, LARGE / 2 + 3 * HTTP2_BATCH);
	exchange();
	g_assert_cmpuint(got(1), ==, LARGE);
	down();
}

TEST("/http2-turns/streams of equal priority take turns")
{
	unsigned i;

	up_asked(4, NULL);
	all_say(4, LARGE);
	until(3, LARGE / 2);
	for (i = 0; i < 3; i++) {
		g_assert_cmpuint(got(i), >=, LARGE / 2 - HTTP2_BATCH);
		g_assert_cmpuint(got(i), <=, LARGE / 2 + HTTP2_BATCH);
	}
	exchange();
	down();
}

TEST("/http2-turns/in the order of their urgency")
{
	static const char *const fields[] = { FIELD("u=5"), FIELD("u=1"), GET, FIELD("u=0, i"),
		FIELD("u=7") };
	static const unsigned first[] = { 3, 1, 2, 0, 4 };
	unsigned i;

	up_asked(5, fields);
	all_say(5, LARGE);
	for (i = 0; i < 5; i++) {
		until(first[i], LARGE);
		/* what is sent together has another one's first bytes */
		g_assert_cmpuint(i < 4 ? got(first[i + 1]) : 0, <=, HTTP2_BATCH);
		g_assert_cmpuint(i < 3 ? got(first[i + 2]) : 0, ==, 0);
	}
	down();
}

TEST("/http2-turns/one after the other, if the client says so")
{
	static const char *const fields[] = { FIELD("u=3"), FIELD("u=3"), FIELD("u=3") };

	up_asked(3, fields);
	all_say(3, LARGE);
	until(0, LARGE);
	g_assert_cmpuint(got(1), <=, HTTP2_BATCH);
	g_assert_cmpuint(got(2), ==, 0);
	until(1, LARGE);
	g_assert_cmpuint(got(2), <=, HTTP2_BATCH);
	exchange();
	down();
}

TEST("/http2-turns/incremental ones share")
{
	static const char *const fields[] = { FIELD("u=3, i"), FIELD("i") };

	up_asked(2, fields);
	all_say(2, LARGE);
	until(0, LARGE / 2);
	g_assert_cmpuint(got(1), >=, LARGE / 2 - HTTP2_BATCH);
	exchange();
	down();
}

static void
say_priority(unsigned nr, const char *value)
{
	g_assert_cmpint(nghttp2_submit_priority_update(client, NGHTTP2_FLAG_NONE, id[nr],
			    (const uint8_t *)value, strlen(value)),
	    ==, 0);
}

TEST("/http2-turns/the client changes a priority")
{
	up_asked(2, NULL);
	all_say(2, LARGE);
	until(0, LARGE / 4);
	say_priority(1, "u=0");
	until(1, LARGE);
	g_assert_cmpuint(got(0), <=, LARGE / 2);
	exchange();
	g_assert_cmpuint(got(0), ==, LARGE);
	down();
}

/* RFC 9218 7.1: the frame may come before the request.  HTTP2_EARLY of them are known. */
TEST("/http2-turns/a priority that comes early")
{
	up();
	open_wide();
	id[0] = 1;
	id[1] = 3;
	say_priority(1, "u=1");
	exchange();
	g_assert_cmpint(ask(GET), ==, 1);
	g_assert_cmpint(ask(GET), ==, 3);
	exchange();
	all_say(2, LARGE);
	until(1, LARGE);
	g_assert_cmpuint(got(0), <=, HTTP2_BATCH);
	exchange();
	down();
}

/* ---- a full socket */

static void
say_pages(struct owner *o, const char *p, size_t n)
{
	o->iov = (struct iovec){ (char *)(uintptr_t)p, n };
	o->keeps_on = false;
	say_op(o, IO_SEND, 0);
	o->wr.pages = true;
	o->wr.send.first = 0;
	op_submit(io, &o->wr);
}

TEST("/http2-turns/a full socket gives pages back")
{
	struct owner *o = &owner[0];

	up_asked(1, NULL);
	say_head(o, OK "Content-Length: 2097152\r\n\r\n");
	exchange();
	o->said = 0; /* of the body */
	say_pages(o, many, LARGE);
	sim_run(io);
	now.room = 10000; /* then it is full */
	exchange();
	g_assert_true(h2->stuck);
	g_assert_cmpint(o->wr_res, ==, -EINPROGRESS); /* a client that reads makes room soon */
	sim_advance_ms(io, 60);
	g_assert_cmpint(o->wr_res, >, 0); /* what is on its way was copied */
	say_op(o, IO_WRITABLE, 0);
	op_submit(io, &o->wr);
	exchange();
	g_assert_cmpint(o->wr_res, ==, -EINPROGRESS);
	now.room = SIZE_MAX;
	exchange();
	g_assert_false(h2->stuck);
	g_assert_cmpint(o->wr_res, ==, 0);
	while (o->said < LARGE) {
		say_pages(o, many + o->said, LARGE - o->said);
		exchange();
		g_assert_cmpint(o->wr_res, >, 0);
	}
	g_assert_cmpuint(got(0), ==, LARGE);
	down();
}

static void
check_full_windows(unsigned n)
{
	unsigned i;

	up();
	now.deaf = true;
	for (i = 0; i < n; i++)
		id[i] = ask(GET);
	exchange();
	for (i = 0; i < n; i++)
		say_head(&owner[i], OK "Content-Length: 2097152\r\n\r\n");
	exchange();
	for (i = 0; i < n; i++)
		say_pages(&owner[i], many, LARGE);
	exchange();
	for (i = 0; i < n; i++)
		g_assert_cmpint(owner[i].wr_res, !=, -EINPROGRESS);
	say_op(&owner[0], IO_WRITABLE, 0);
	op_submit(io, &owner[0].wr);
	exchange();
	g_assert_cmpint(owner[0].wr_res, ==, -EINPROGRESS);
	nghttp2_session_consume(client, id[0], 65535);
	nghttp2_session_consume(client, id[n - 1], 65535);
	exchange();
	g_assert_cmpint(owner[0].wr_res, ==, 0);
	down();
}

/* A stream's own, or the connection's. */
TEST("/http2-turns/full windows give pages back")
{
	check_full_windows(1);
	check_full_windows(5);
}

TEST("/http2-turns/a full socket keeps little")
{
	unsigned i;

	up_asked(50, NULL);
	now.room = 100;
	for (i = 0; i < 50; i++)
		say_many(&owner[i], LARGE);
	exchange();
	g_assert_true(h2->stuck);
	g_assert_true(h2->batch.out_owned);
	g_assert_cmpuint(h2->batch.left, <=, 2 * HTTP2_BATCH);
	now.room = SIZE_MAX;
	exchange();
	for (i = 0; i < 50; i++)
		g_assert_cmpuint(got(i), ==, LARGE);
	g_assert_cmpuint(h2->batch.left, ==, 0);
	g_assert_null(h2->batch.out);
	down();
}

/* A socket that takes a byte at a time. */
/* Its last stream has ended for the owner, and the socket has not all of it. */
TEST("/http2-turns/a connection is busy until the socket has everything")
{
	unsigned before;

	up();
	id[0] = ask(GET);
	exchange();
	now.room = 0;
	before = now.quiet;
	say(&owner[0], OK "Content-Length: 5\r\n\r\nhello");
	exchange();
	g_assert_cmpint(owner[0].wr_res, >, 0);
	g_assert_true(http2_is_busy(h2));
	g_assert_cmpuint(now.quiet, ==, before);
	now.room = SIZE_MAX;
	exchange();
	g_assert_false(http2_is_busy(h2));
	g_assert_cmpuint(now.quiet, >, before);
	down();
}

TEST("/http2-turns/a socket with little room")
{
	unsigned i;

	up_asked(2, NULL);
	all_say(2, 3000);
	for (i = 0; got(0) < 3000 || got(1) < 3000; i++) {
		g_assert_cmpuint(i, <, 20000);
		now.room = 1;
		exchange();
	}
	now.room = SIZE_MAX;
	g_assert_cmpmem(reply_of(id[1])->body->str, 3000, many, 3000);
	down();
}

/* ---- deadlines of the owner's sends */

static void
say_within(struct owner *o, size_t n, uint32_t ms)
{
	say_head(o, OK "\r\n");
	o->iov = (struct iovec){ many, n };
	say_op(o, IO_SEND, ms);
	op_submit(io, &o->wr);
}

TEST("/http2-turns/a stream that others hold back is not late")
{
	static const char *const fields[] = { FIELD("u=0"), FIELD("u=7") };
	unsigned i;

	up_asked(2, fields);
	now.room = 0;
	say_many(&owner[0], LARGE);
	say_within(&owner[1], 1000, 1000);
	for (i = 0; i < 10; i++) {
		now.room = 1000;
		exchange();
		sim_advance_ms(io, 900);
		g_assert_cmpint(owner[1].wr_res, ==, -EINPROGRESS);
	}
	now.room = SIZE_MAX;
	exchange();
	g_assert_cmpint(owner[1].wr_res, ==, 1000);
	down();
}

TEST("/http2-turns/a client that opens no window of a stream is late")
{
	up();
	now.deaf = true;
	id[0] = ask(GET);
	exchange();
	say_within(&owner[0], LARGE, 1000);
	exchange();
	sim_advance_ms(io, 900);
	g_assert_cmpint(owner[0].wr_res, ==, -EINPROGRESS);
	sim_advance_ms(io, 400); /* a tick of the wheel may be later */
	g_assert_cmpint(owner[0].wr_res, ==, -ETIMEDOUT);
	down();
}

TEST("/http2-turns/a client that opens the window little by little is not late")
{
	unsigned i;

	up();
	now.deaf = true;
	id[0] = ask(GET);
	exchange();
	say_within(&owner[0], LARGE, 1000);
	exchange();
	for (i = 0; i < 5; i++) {
		sim_advance_ms(io, 900);
		g_assert_cmpint(owner[0].wr_res, ==, -EINPROGRESS);
		nghttp2_submit_window_update(client, NGHTTP2_FLAG_NONE, id[0], 1000);
		nghttp2_submit_window_update(client, NGHTTP2_FLAG_NONE, 0, 1000);
		exchange();
	}
	g_assert_cmpuint(got(0), ==, 65535 + 5000);
	sim_advance_ms(io, 1300);
	g_assert_cmpint(owner[0].wr_res, ==, -ETIMEDOUT);
	down();
}

/* Opens both windows by that many bytes, nine times in eight seconds. */
static void
open_slowly(int32_t own, int32_t all)
{
	unsigned i;

	up_rate = 1000;
	up();
	up_rate = 0;
	now.deaf = true;
	id[0] = ask(GET);
	exchange();
	say_within(&owner[0], LARGE, 1000);
	exchange();
	for (i = 0; i < 9; i++) {
		sim_advance_ms(io, 900);
		nghttp2_submit_window_update(client, NGHTTP2_FLAG_NONE, id[0], own);
		nghttp2_submit_window_update(client, NGHTTP2_FLAG_NONE, 0, all);
		exchange();
	}
}

TEST("/http2-turns/windows that open more slowly than the rate allows")
{
	open_slowly(100, 1 << 20);
	g_assert_cmpint(owner[0].wr_res, ==, -EPIPE);
	g_assert_cmpuint(reply_of(id[0])->code, ==, NGHTTP2_CANCEL);
	g_assert_cmpuint(now.ended, ==, 0);
	down();
	open_slowly(1 << 20, 100);
	g_assert_cmpint(owner[0].wr_res, ==, -EPIPE);
	down();
	open_slowly(1000, 1000);
	g_assert_cmpint(owner[0].wr_res, ==, -EINPROGRESS);
	down();
}

/* Other streams have the connection's window, and something moves. */
TEST("/http2-turns/a stream that waits for the connection's window is not late")
{
	const nghttp2_settings_entry set = { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 30 };
	static const char *const fields[] = { FIELD("u=0"), FIELD("u=7") };
	unsigned i;

	up();
	nghttp2_submit_settings(client, NGHTTP2_FLAG_NONE, &set, 1);
	exchange();
	now.deaf = true;
	id[0] = ask(fields[0]);
	id[1] = ask(fields[1]);
	exchange();
	say_many(&owner[0], LARGE);
	exchange();
	g_assert_cmpuint(got(0), ==, 65535);
	say_within(&owner[1], 1000, 1000);
	for (i = 0; i < 5; i++) {
		sim_advance_ms(io, 900);
		nghttp2_submit_window_update(client, NGHTTP2_FLAG_NONE, 0, 2000);
		exchange();
		g_assert_cmpint(owner[1].wr_res, ==, -EINPROGRESS);
	}
	for (i = 0; i < 3; i++) /* nothing moves */
		sim_advance_ms(io, 1100);
	g_assert_cmpint(owner[1].wr_res, ==, -ETIMEDOUT);
	down();
}

/* Bodies of other streams fill the window; the client cannot send. */
TEST("/http2-turns/a reader whose client cannot send is not late")
{
	unsigned i;

	up();
	for (i = 0; i < 20; i++)
		id[i] = ask_with(POST, MANY, true);
	exchange();
	while (held(&owner[19]) != 0 || owner[19].rd_res == 0) {
		hear(&owner[19]);
		exchange();
	}
	hear_with(&owner[19], 1000, false);
	exchange();
	sim_advance_ms(io, 1500);
	g_assert_cmpint(owner[19].rd_res, ==, -EINPROGRESS);
	for (i = 0; i < 19; i++)
		close_owner(&owner[i], true);
	exchange();
	g_assert_cmpint(owner[19].rd_res, >, 0);
	down();

	up();
	id[0] = ask_with(POST, 0, false);
	exchange();
	hear_with(&owner[0], 1000, false);
	exchange();
	sim_advance_ms(io, 1500);
	g_assert_cmpint(owner[0].rd_res, ==, -ETIMEDOUT);
	down();
}
