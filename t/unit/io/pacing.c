/* t/unit/io/pacing.c -- a reply that is sent at a rate: bytes, counted over a simulated clock. */
#include <errno.h>
#include "base/rate.h"
#include "io/engine.h"
#include "io/loop/sim.h"
#include "io/sender.h"
#include "t/unit/test.h"

static struct io *io;
static struct sender snd;
static struct body body;
static struct io_sock sock;
static int ended, end_res;
static uint64_t start_ns, total;
static char zeros[IO_WINDOW];
static struct pace_share *share; /* for the next sender; NULL: none */

static void
sender_ended(struct sender *s, int res)
{
	ended++;
	end_res = res;
}

static void
setup(bool reading, uint64_t memory, uint64_t file_len, uint32_t limit)
{
	struct io_file *f;
	uint64_t n;

	io = reading ? sim_new_reading() : sim_new();
	ended = 0;
	io_sock_init(&sock, 9);
	body_init(&body, io);
	for (n = memory; n != 0; n -= MIN(n, 1000))
		g_assert_true(body_copy(&body, (struct text){ zeros, MIN(n, 1000) }));
	if (file_len != 0) {
		f = io_file_new(io, 60, file_len);
		g_assert_true(body_file(&body, f, 0, file_len));
		io_file_put(f);
	}
	total = memory + file_len;
	sender_init(&snd, io, &sock);
	snd.limit = limit;
	snd.turns[0].of = share;
	start_ns = io_now(io);
	sender_start(&snd, &body, 1000, sender_ended);
}

static void
stop(int res)
{
	g_assert_cmpint(ended, ==, 1);
	g_assert_cmpint(end_res, ==, res);
	g_assert_false(io_busy(io));
	body_clear(&body);
	io_free(io);
}

/* The disk and the socket do at once what they are asked for. */
static bool
serve(void)
{
	struct io_op *op;

	if ((op = sim_find(io, IO_READ, NULL)) != NULL)
		sim_read(io, op, (struct text){ zeros, op->file.len });
	else if ((op = sim_find(io, IO_SEND, &sock)) != NULL)
		(void)sim_send(io, op, SIZE_MAX);
	else if ((op = sim_find(io, IO_SEND_FILE, &sock)) != NULL)
		sim_finish(io, op, op->file.len);
	else
		return (false);
	g_assert_true(op->kind == IO_READ || !op->more || snd.limit == 0);
	sim_run(io);
	return (true);
}

/* What the limit allows since the beginning, and the bytes that go at once. */
static uint64_t
allowed(void)
{
	return ((io_now(io) - start_ns) / NS_PER_MS * snd.limit / 1000 + pace_bytes(snd.limit) + 1);
}

/* Lets time pass in steps until the end; returns the time it took. */
static uint64_t
run_ms(uint64_t step_ms)
{
	unsigned pauses = 0;

	for (;;) {
		while (ended == 0 && serve())
			g_assert_cmpuint(snd.sent, <=, allowed());
		if (ended != 0)
			break;
		g_assert_nonnull(sim_find(io, IO_PAUSE, &sock)); /* it waits, it does not turn */
		pauses++;
		sim_advance_ms(io, step_ms);
	}
	g_assert_cmpuint(snd.sent, ==, total);
	g_assert_cmpuint(pauses, >, 0);
	return ((io_now(io) - start_ns) / NS_PER_MS);
}

/* 10000 bytes at 1000 a second: the end comes a quarter of a second early, because those bytes are
 * sent at once. */
static void
check(bool reading, uint64_t memory, uint64_t file, uint32_t limit, uint64_t least, uint64_t most)
{
	uint64_t ms;

	setup(reading, memory, file, limit);
	ms = run_ms(5);
	g_assert_cmpuint(ms, >=, least);
	g_assert_cmpuint(ms, <=, most);
	stop(0);
}

TEST("/pacing/rate")
{
	check(false, 10000, 0, 1000, 9700, 10300);
	check(false, 100, 9900, 1000, 9700, 10300);
	check(true, 100, 9900, 1000, 9700, 10300);
	check(false, 100, 10 << 20, 1 << 20, 9700, 10300); /* several calls of 512 KiB */
	check(true, 100, 10 << 20, 1 << 20, 9700, 10300);
	check(false, 5, 0, 1, 4000, 4100); /* a byte a second */
}

/* Pieces of a streamed reply: the rate is that of all of them. */
TEST("/pacing/pieces")
{
	int i;

	setup(false, 1000, 0, 1000);
	for (i = 0;; i++) {
		while (ended == 0) {
			if (!serve())
				sim_advance_ms(io, 1);
			g_assert_cmpuint(snd.sent + 1000 * (unsigned)i, <=, allowed());
		}
		if (i == 4)
			break;
		ended = 0;
		g_assert_true(body_copy(&body, (struct text){ zeros, 1000 }));
		sender_start(&snd, &body, 1000, sender_ended);
	}
	g_assert_cmpuint((io_now(io) - start_ns) / NS_PER_MS, >=, 4700);
	stop(0);
}

/* A pause is not the client's: it has no debt, and its deadline does not pass. */
TEST("/pacing/pause-is-ours")
{
	setup(false, 100, 0, 10);
	snd.rate = 1024;
	snd.idle_ms = 300;
	(void)run_ms(100);
	g_assert_cmpuint(snd.debt_ns, ==, 0);
	stop(0);
}

TEST("/pacing/cancel")
{
	setup(true, 0, 10 + IO_WINDOW, 1000);
	while (serve())
		;
	g_assert_nonnull(sim_find(io, IO_PAUSE, &sock));
	sender_cancel(&snd);
	sim_run(io);
	stop(-ECANCELED);
}

/* A client that resets its connection in a pause: its socket is free at once, and its turn is the
 * next one's. */
TEST("/pacing/leaves-in-pause")
{
	struct pace_share p = { .limit = 16000 };
	uint64_t due;

	share = &p;
	setup(false, 4000, 0, 0);
	while (serve())
		;
	due = p.due_ns;
	g_assert_cmpuint(due, >, io_now(io));
	sim_finish(io, sim_find(io, IO_PAUSE, &sock), 0);
	sim_run(io);
	stop(-ECONNRESET);
	g_assert_cmpuint(p.due_ns, ==, due - 1000 * NS_PER_S / 16000);
	share = NULL;
}

/* While many windows are held, a sender in a pause holds none. */
TEST("/pacing/holds-no-window")
{
	setup(true, 0, 2 * IO_WINDOW, 100000);
	io->held = IO_HELD_MAX + 1;
	while (serve())
		;
	g_assert_nonnull(sim_find(io, IO_PAUSE, &sock));
	g_assert_null(snd.window);
	io->held -= IO_HELD_MAX + 1;
	(void)run_ms(50);
	stop(0);
}

/* Three senders of several loops take turns for ten seconds: equal shares, and the rate of all. */
TEST("/pacing/share")
{
	struct pace_share p = { .limit = 100000 };
	uint64_t now = 1000 * NS_PER_S, at[3] = { 0 }, got[3] = { 0 }, end = now + 10 * NS_PER_S;
	unsigned i;

	for (; now < end; now += NS_PER_MS)
		for (i = 0; i < 3; i++) {
			if (now < at[i])
				continue;
			got[i] += at[i] != 0 ? pace_turn_bytes(p.limit) : 0;
			at[i] = pace_turn(&p, now, pace_turn_bytes(p.limit));
		}
	g_assert_cmpuint(got[0] + got[1] + got[2], <=, 1000000 + 100000 / 16 * 4);
	g_assert_cmpuint(got[0] + got[1] + got[2], >=, 900000);
	for (i = 0; i < 3; i++)
		g_assert_cmpuint(got[i], >=, 300000);
}

/* There is no credit for a pause. */
TEST("/pacing/share-pause")
{
	struct pace_share p = { .limit = 1000 };
	uint64_t now = 1000 * NS_PER_S;

	g_assert_cmpuint(pace_turn(&p, now, 500), <=, now);
	now += 100 * NS_PER_S;
	g_assert_cmpuint(pace_turn(&p, now, 500), <=, now);
	g_assert_cmpuint(pace_turn(&p, now, 500), ==, now + 450 * NS_PER_MS);
	g_assert_cmpuint(pace_turn_bytes(1), ==, 512);
	g_assert_cmpuint(pace_turn_bytes(1ull << 40), ==, 65536);
}

/* A sender with a share of its own has all of it, in each way of sending. */
TEST("/pacing/share-of-one")
{
	static const struct {
		bool reading;
		uint64_t memory, file;
	} rows[] = { { false, 10000, 0 }, { false, 100, 9900 }, { true, 100, 9900 } };
	struct pace_share p;
	uint64_t ms;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(rows); i++) {
		p = (struct pace_share){ .limit = 1000 };
		share = &p;
		setup(rows[i].reading, rows[i].memory, rows[i].file, 0);
		share = NULL;
		for (ms = 0; ended == 0; ms++) {
			while (ended == 0 && sim_find(io, IO_PAUSE, &sock) == NULL) {
				snd.limit = UINT32_MAX; /* for the assertion of serve() */
				g_assert_true(serve());
			}
			if (ended == 0)
				sim_advance_ms(io, 1);
		}
		g_assert_cmpuint(snd.sent, ==, total);
		g_assert_cmpuint(ms, >=, 9000);
		g_assert_cmpuint(ms, <=, 10300);
		stop(0);
	}
}
