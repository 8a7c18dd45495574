/* t/unit/io/transfer_ends.c -- replies that end early or wait, with each backend. */
#include "t/unit/io/transfer_test.h"

static void
test_vanishing_peer(void)
{
	g_autofree char *path = file_make(dir, "f", 4 << 20);
	struct client c;
	struct io_file *f;
	uint64_t i;

	loop_up(backend, 4, 64);
	f = file_open(path, 4 << 20);
	for (i = 1; i < 12; i++) {
		c = (struct client){ .leave_after = i * 50000 };
		client_start(&c, i % 2 != 0, 20000);
		reply_start(f, 0, 4 << 20);
		reply_wait();
		g_assert_true(end_res == -EPIPE || end_res == -ECONNRESET);
		client_end(&c);
		client_free(&c);
	}
	for (i = 0; f->refs > 1 && i < 10000; i++)
		run_ms(1); /* a thread may still read for a client that has left */
	g_assert_cmpuint(f->refs, ==, 1);
	io_file_put(f);
	loop_down();
}

static void
test_truncated(void)
{
	g_autofree char *path = file_make(dir, "f", 4 << 20);
	struct client c = { .pause_us = 200 };
	struct io_file *f;
	uint64_t i, n;

	loop_up(backend, 4, 64);
	f = file_open(path, 4 << 20);
	client_start(&c, true, 20000);
	reply_start(f, 0, 4 << 20);
	for (i = 0; i < 20 && !ended; i++)
		io_run(io);
	g_assert_cmpint(truncate(path, 1500000), ==, 0);
	reply_wait();
	g_assert_cmpint(end_res, ==, -ENODATA);
	client_end(&c);
	g_assert_cmpuint(c.got->len, <=, snd.sent);
	/* More may have been accepted before the cut; sendfile(2) queued those pages by
	 * reference. */
	n = c.got->len - 4 < 1500000 ? c.got->len - 4 : 1500000;
	for (i = 0; i < n; i++)
		g_assert_true((char)c.got->data[4 + i] == pattern(i)); /* nothing padded */
	client_free(&c);
	io_file_put(f);
	loop_down();
}

static void
test_silent_peer(void)
{
	g_autofree char *path = file_make(dir, "f", 8 << 20);
	struct io_file *f;
	int p[2];

	loop_up(backend, 4, 64);
	f = file_open(path, 8 << 20);
	pair(true, p);
	io_sock_init(&sock, p[0]);
	ended = false;
	body_init(&body, io);
	g_assert_true(body_file(&body, f, 0, 8 << 20));
	sender_init(&snd, io, &sock);
	sender_start(&snd, &body, 100, sender_ended);
	reply_wait();
	g_assert_cmpint(end_res, ==, -ETIMEDOUT);
	sock_close(&sock);
	close(p[1]);
	io_file_put(f);
	loop_down();
}

static void
test_cancel(void)
{
	g_autofree char *path = file_make(dir, "f", 3 << 20);
	struct client c;
	struct io_file *f;
	int i, k;

	loop_up(backend, 2, 64);
	for (i = 0; i < 60; i++) {
		if (i % 4 == 0)
			evict(path);
		f = file_open(path, 3 << 20);
		c = (struct client){ .pause_us = (unsigned)i };
		client_start(&c, i % 2 == 0, i % 2 == 0 ? 0 : 30000);
		reply_start(f, 0, 3 << 20);
		io_file_put(f);
		for (k = 0; k < i / 2 && !ended; k++)
			io_run(io);
		sender_cancel(&snd);
		reply_wait();
		g_assert_true(end_res == -ECANCELED || end_res == 0);
		client_end(&c);
		client_free(&c);
	}
	loop_down();
}

static bool
backend_is(const char *name)
{
	return (strcmp(io_backend(io)->name, name) == 0);
}

/* All readers are stuck: the client gets its deadline, others their files once one is free. */
static void
test_stuck_readers(void)
{
	g_autofree char *path = file_make(dir, "f", 300000);
	struct client c = { 0 };
	struct io_file *f;
	bool own, threads;

	loop_up(backend, 1, 64);
	f = file_open(path, 300000);
	f->no_nowait = true; /* as on a network file system: only a reader can tell */
	gate_enter(LANE_READ);
	client_start(&c, true, 0);
	ended = false;
	body_init(&body, io);
	g_assert_true(body_file(&body, f, 0, 300000));
	sender_init(&snd, io, &sock);
	sender_start(&snd, &body, 100, sender_ended);
	reply_wait();
	own = backend_is("posix-aio") || backend_is("io-uring"); /* threads, or the kernel's */
	g_assert_cmpint(end_res, ==, own ? 0 : -ETIMEDOUT);
	client_end(&c);
	client_free(&c);
	gate_leave();
	transfer(path, 300000, 0, 300000, true, 0, false);
	threads = backend_is("gthread-aio") || backend_is("gthread-sendfile") ||
		  backend_is("posix-aio") || backend_is("linux-aio-sendfile");
	g_assert_cmpint(times.hot, ==, !threads && io->counters->file_inline != 0);
	io_file_put(f);
	loop_down();
}

/* Files that the loop may look at: the access time is written, and the device is fit. */
static void
test_may_look(void)
{
	char *path = file_make(dir, "f", 700000), buf[1000];
	struct io_file *f;

	loop_up(backend, 1, 64);
	f = file_open(path, 700000);
	device_is_fit(io_file_dev(f), true);
	f->marked_ns = 0;
	g_assert_false(io_file_may_look(f)); /* reading it may write an access time */
	io_file_proved(f, 1000, IO_WINDOW);
	g_assert_true(io_file_may_look(f));
	g_assert_cmpint(io_look_for(f, buf, 1000, 699500), ==, 500);
	device_is_fit(io_file_dev(f), false);
	g_assert_cmpint(io_look_for(f, buf, 1000, 0), ==, -EAGAIN);
	device_is_fit(io_file_dev(f), true);
	io->now += 24ull * 3600 * NS_PER_S; /* until the next round */
	g_assert_false(io_file_may_look(f));
	io_file_put(f);
	loop_down();
	g_free(path);
}

/* A thread has read it a moment ago. */
static void
test_was_read(void)
{
	g_autofree char *path = file_make(dir, "f", 700000);
	struct io_file *f;

	loop_up(backend, 1, 64);
	f = file_open(path, 700000);
	g_assert_false(io_file_was_read(f, 0));
	io_file_proved(f, 1000, IO_WINDOW);
	g_assert_true(io_file_was_read(f, 0));
	g_assert_true(io_file_was_read(f, IO_WINDOW));
	g_assert_false(io_file_was_read(f, 2 * IO_WINDOW));
	io_file_missed(f, 0);
	g_assert_cmpuint(io->counters->pages_gone, ==, 0); /* the thread has not read that far */
	io_file_missed(f, 1000);
	g_assert_cmpuint(io->counters->pages_gone, ==, 1);
	io->now += NS_PER_S;
	g_assert_false(io_file_was_read(f, 0));
	io_file_put(f);
	loop_down();
}

/* Both ends of a window in memory and its middle not: read at once, not sent byte by byte. */
static void
test_holes_in_cache(void)
{
	g_autofree char *path = file_make(dir, "f", 3 << 20);
	struct client c = { 0 };
	struct io_file *f;
	uint64_t i;
	char byte;

	loop_up(backend, 4, 64);
	evict(path);
	f = file_open(path, 3 << 20);
	posix_fadvise(f->fd, 0, 0, POSIX_FADV_RANDOM);
	for (i = 0; i < 3 << 20; i += IO_WINDOW) {
		g_assert_cmpint(pread(f->fd, &byte, 1, (off_t)i), ==, 1);
		g_assert_cmpint(pread(f->fd, &byte, 1, (off_t)(i + IO_WINDOW - 1)), ==, 1);
	}
	client_start(&c, true, 0);
	reply_start(f, 0, 3 << 20);
	reply_wait();
	g_assert_cmpint(end_res, ==, 0);
	g_assert_cmpuint(io->counters->file_inline, <, 500);
	client_end(&c);
	check_bytes(c.got, 0, 3 << 20);
	client_free(&c);
	io_file_put(f);
	loop_down();
}

static const struct backend_test tests[] = {
	{ "vanishing-peer", test_vanishing_peer },
	{ "truncated", test_truncated },
	{ "silent-peer", test_silent_peer },
	{ "cancel", test_cancel },
	{ "stuck-readers", test_stuck_readers },
	{ "may-look", test_may_look },
	{ "was-read", test_was_read },
	{ "holes-in-cache", test_holes_in_cache },
};

int
main(int argc, char **argv)
{
	return (run_each_backend(argc, argv, tests, NELEM(tests)));
}
