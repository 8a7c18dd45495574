/* t/unit/files/hold_orders.c -- the cache of open files: bounds, leaving clients, random orders. */
#include "t/unit/files/hold_test.h"

/* ---------------------------------------------------------------- bounds */

LIMITS_TEST("/hold/bound/entries", lim.entries = 10)
{
	char name[16];
	int i;

	for (i = 0; i < 25; i++) {
		g_snprintf(name, sizeof(name), "f%d", i);
		if (i % 2 == 0)
			know(name, "x");
		else
			know_large(name);
		sim_advance_ms(io, 1);
	}
	g_assert_cmpuint(file_cache_entries(cache), ==, 10);
	g_assert_false(is_known("f14"));
	g_assert_true(is_known("f15"));
	g_assert_true(is_known("f24"));
	g_assert_cmpuint(counters.stat_evicted, ==, 15);
}

static void
know_files(unsigned from, unsigned to)
{
	char name[16];

	for (; from < to; from++) {
		g_snprintf(name, sizeof(name), "f%u", from);
		know(name, "x");
		sim_advance_ms(io, 1);
	}
}

/* The test may lose a name: two names share a slot in one run of a hundred, because the hash has a
 * secret. */
static void
assert_returned(unsigned n)
{
	g_assert_cmpuint(counters.stat_returned, <=, n);
	g_assert_cmpuint(counters.stat_returned + 1, >=, n);
}

/* Only names that a larger cache would have had count as a sign that it is too small. */
LIMITS_TEST("/hold/bound/returned", lim.entries = 10, lim.forget_ms = 80000)
{
	know_files(0, 15); /* as a crawler does: each once */
	g_assert_cmpuint(counters.stat_evicted, ==, 5);
	g_assert_cmpuint(counters.stat_returned, ==, 0);
	know_files(0, 5);
	assert_returned(5);
	sim_advance_ms(io, 79000); /* f5 to f9 went a moment ago */
	know_files(5, 7);
	assert_returned(7);
	sim_advance_ms(io, 3000);
	know_files(7, 10); /* by now they would be forgotten anyway */
	assert_returned(7);
}

/* Absent names are nobody's loss; without a bound on the time every dropped file counts. */
LIMITS_TEST("/hold/bound/returned-absent", lim.entries = 4)
{
	struct look l;
	char name[16];
	int i, k;

	for (k = 0; k < 2; k++)
		for (i = 0; i < 50; i++) {
			g_snprintf(name, sizeof(name), "no%d", i);
			ask(&l, name);
			fails(IO_OPEN, -ENOENT);
			put(&l);
		}
	g_assert_cmpuint(counters.stat_evicted, ==, 100 - (4 / 4 + 16));
	g_assert_cmpuint(counters.stat_returned, ==, 0);
	know_files(0, 5);
	sim_advance_ms(io, 1000000);
	know_files(0, 1);
	g_assert_cmpuint(counters.stat_returned, ==, 1);
}

LIMITS_TEST("/hold/bound/none-are-kept", lim.entries = lim.fds = 0, lim.bytes = 0)
{
	struct look l;

	ask(&l, "file");
	open_says(3, 1000, 0);
	read_says("abc");
	g_assert_cmpmem(l.e->bytes, l.e->size, "abc", 3); /* each request has it */
	put(&l);
	g_assert_cmpuint(file_cache_entries(cache), ==, 0);
}

/* A reload ends a generation's cache: that is not a sign of a cache that is too small. */
UP_TEST("/hold/bound/shrink", &usual)
{
	know("1", "x");
	know_large("2");
	file_cache_shrink(cache);
	g_assert_cmpuint(file_cache_entries(cache), ==, 0);
	g_assert_cmpuint(counters.stat_evicted, ==, 0);
}

LIMITS_TEST("/hold/bound/bytes", lim.bytes = 10)
{
	struct look held;

	know_large("large");
	ask(&held, "1");
	open_says(4, 1000, 0);
	read_says("1111");
	know("2", "2222");
	know("3", "3333");
	g_assert_false(is_known("1"));
	g_assert_cmpmem(held.e->bytes, held.e->size, "1111", 4);
	know("4", "44");
	g_assert_true(is_known("2")); /* what a client still holds does not count */
	g_assert_true(is_known("3"));
	g_assert_true(is_known("large")); /* has no bytes: evicting it frees nothing */
	put(&held);
	know("5", "5");
	g_assert_false(is_known("2"));
}

LIMITS_TEST("/hold/bound/descriptors", lim.fds = 3)
{
	char name[16];
	int i;

	know("small", "bytes");
	for (i = 0; i < 10; i++) {
		g_snprintf(name, sizeof(name), "large%d", i);
		know_large(name);
	}
	g_assert_false(is_known("large6"));
	g_assert_true(is_known("large7"));
	g_assert_true(is_known("small")); /* a walk through large files costs it nothing */
	for (i = 0; i < 10; i++)
		g_assert_cmpuint(sim_closed(io, FIRST_FD + 1 + i), ==, i < 7);
}

UP_TEST("/hold/bound/absences-apart", &usual)
{
	struct look l;
	char name[16];
	int i;

	know("file", "x");
	for (i = 0; i < 500; i++) {
		g_snprintf(name, sizeof(name), "no%d", i);
		ask(&l, name);
		fails(IO_OPEN, -ENOENT);
		put(&l);
	}
	g_assert_cmpuint(file_cache_entries(cache), ==, 1 + 100 / 4 + 16);
	g_assert_true(is_known("file"));
	g_assert_true(is_known("no499"));
	g_assert_false(is_known("no0"));
}

LIMITS_TEST("/hold/bound/longest-unused-goes", lim.entries = 2)
{
	struct look l;

	know("hot", "x");
	know("once", "y");
	sim_advance_ms(io, 600);
	ask(&l, "hot");
	put(&l);
	stat_says(1, 1000); /* in demand: checked again, so used */
	know("new", "z");
	g_assert_true(is_known("hot"));
	g_assert_false(is_known("once"));
}

UP_TEST("/hold/shortage-sheds-descriptors", &usual)
{
	struct look l;
	char name[16];
	int i;

	know("small", "bytes");
	for (i = 0; i < 10; i++) {
		g_snprintf(name, sizeof(name), "large%d", i);
		know_large(name);
	}
	ask(&l, "one-more");
	fails(IO_OPEN, -EMFILE);
	g_assert_cmpint(l.e->err, ==, -EMFILE);
	put(&l);
	g_assert_false(is_known("large4"));
	g_assert_true(is_known("large5"));
	g_assert_true(is_known("small")); /* holds none */
	sim_advance_ms(io, 600);
	ask(&l, "small");
	put(&l);
	fails(SIM_STAT, -ENFILE); /* a check needs one, too */
	g_assert_false(is_known("large6"));
	g_assert_true(is_known("large8"));
}

/* ---------------------------------------------------------------- leaving */

/* One look-up through its stages: stale, changed, opened, read.  True: there was such a step. */
static bool
step(int n)
{
	switch (n) {
	case 0: stat_says(6, 2000); return (true);
	case 1: open_says(6, 2000, 0); return (true);
	case 2: read_says("short"); return (true);
	case 3: open_says(5, 2001, 0); return (true);
	case 4: read_says("short"); return (true);
	}
	return (false);
}

TEST("/hold/cancel/in-each-stage")
{
	struct look leaves, stays;
	int at, n;

	for (at = 0; at < 6; at++) {
		up(&usual);
		know("file", "bytes");
		sim_advance_ms(io, 1000);
		ask(&leaves, "file");
		ask(&stays, "file");
		for (n = 0; n < at; n++)
			step(n);
		file_lookup_cancel(&leaves.wait);
		file_lookup_cancel(&leaves.wait); /* may be repeated */
		while (step(n))
			n++;
		g_assert_cmpint(leaves.answers, ==, at == 5);
		g_assert_cmpmem(stays.e->bytes, stays.e->size, "short", 5);
		if (at == 5)
			put(&leaves);
		put(&stays);
		down();
	}
}

static struct look *second;

static void
first_answered(struct lookup_wait *w, struct lookup *entry)
{
	look_done(w, entry);
	file_lookup_cancel(&second->wait); /* its turn was next */
}

UP_TEST("/hold/cancel/in-a-callback", &usual)
{
	struct look a, b;

	ask(&a, "file");
	ask(&b, "file");
	a.wait.done = first_answered;
	second = &b;
	fails(IO_OPEN, -ENOENT);
	g_assert_cmpint(b.answers, ==, 0);
	put(&a);
}

TEST("/hold/cancel/of-nothing")
{
	struct lookup_wait w = { 0 };

	file_lookup_cancel(&w); /* never waited */
}

/* The worker stops.  Every op in flight ends, even one that wins the race against its cancel. */
TEST("/hold/free-in-flight")
{
	struct look l;
	int at, n, ready;

	for (at = 0; at < 5; at++) {
		for (ready = 0; ready < 2; ready++) {
			up(&usual);
			know("file", "bytes");
			sim_advance_ms(io, 1000);
			ask(&l, "file");
			for (n = 0; n < at; n++)
				step(n);
			file_lookup_cancel(&l.wait);
			if (ready && at == 0)
				sim_open(io, next(SIM_STAT), -1, 6, 2000, 0);
			else if (ready && (at == 1 || at == 3))
				sim_open(io, next(IO_OPEN), FIRST_FD + (int)opened++, 6, 2000, 0);
			else if (ready)
				sim_read(io, next(IO_READ), TEXT("sho"));
			down();
		}
	}
}

/* ---------------------------------------------------------------- every order */

#define DEPTH 64

static unsigned chosen[DEPTH], among[DEPTH], depth, given;

/* One of n, another one in each run; next_run() is false when all combinations have been run. */
static unsigned
choose(unsigned n)
{
	g_assert_cmpuint(depth, <, DEPTH);
	if (depth >= given)
		chosen[depth] = 0;
	among[depth] = n;
	return (chosen[depth++]);
}

static bool
next_run(void)
{
	while (depth > 0 && chosen[depth - 1] + 1 == among[depth - 1])
		depth--;
	if (depth == 0)
		return (false);
	chosen[depth - 1]++;
	given = depth;
	depth = 0;
	return (true);
}

static void
any_outcome(struct io_op *op)
{
	char byte = op->kind != IO_READ ? 0 : (char)op->file.file->fd;

	op->at.start = op->at.submit;
	op->at.end = io_now(io);
	switch (sim_kind(op)) {
	case IO_OPEN:
		switch (choose(3)) {
		case 0: sim_open(io, op, FIRST_FD + (int)opened++, 2, 2000, 0); break;
		case 1: sim_finish(io, op, -ENOENT); break;
		case 2: sim_finish(io, op, -EMFILE); break;
		}
		break;
	case IO_READ:
		if (choose(2) == 0)
			sim_read(io, op, (struct text){ (const char[]){ byte, byte }, 2 });
		else
			sim_finish(io, op, -EIO);
		break;
	default:
		switch (choose(4)) {
		case 0: sim_open(io, op, -1, 5, 1000, 0); break; /* as it was */
		case 1: sim_open(io, op, -1, 2, 2000, 0); break;
		case 2: sim_finish(io, op, -ENOENT); break;
		case 3: sim_finish(io, op, -EAGAIN); break;
		}
	}
	if (choose(2) == 0)
		sim_run(io); /* else its callback comes together with that of the next */
}

static unsigned
in_flight(void)
{
	if (sim_nth(io, 0) == NULL)
		sim_run(io);
	return (sim_count(io, IO_OPEN) + sim_count(io, IO_READ) + sim_count(io, SIM_STAT));
}

static void
answer_is_right(const struct look *l, bool cancelled)
{
	g_assert_cmpint(l->answers, <=, 1);
	g_assert_cmpint(l->answers + cancelled, >=, 1);
	if (l->answers == 0 || l->e->err != 0)
		return;
	if (l->e->size == 5)
		g_assert_cmpmem(l->e->bytes, 5, "bytes", 5);
	else
		g_assert_cmpint(l->e->bytes[0], ==, l->e->bytes[1]);
}

/* "known" is checked again, with or without waiters; "unknown" is opened; a client may leave. */
static void
run_once(void)
{
	struct look l[4];
	unsigned i, n, left = 0;

	cache = file_cache_new(io, &counters, &usual);
	know("known", "bytes");
	sim_advance_ms(io, choose(2) == 0 ? 600 : 1000);
	ask(&l[0], "known");
	ask(&l[1], "unknown");
	ask(&l[2], "known");
	ask(&l[3], "unknown");
	if (choose(2) != 0)
		left = 1 + choose(2);
	while ((n = in_flight()) != 0) {
		any_outcome(sim_nth(io, choose(n)));
		if (left != 0 && l[left].answers == 0)
			file_lookup_cancel(&l[left].wait);
	}
	for (i = 0; i < 4; i++) {
		answer_is_right(&l[i], i == left);
		if (l[i].answers != 0)
			put(&l[i]);
	}
	file_cache_free(cache);
}

TEST("/hold/every-order")
{
	unsigned runs = 0, i;

	do {
		io = sim_new();
		opened = 0;
		run_once();
		g_assert_false(io_busy(io));
		for (i = 0; i < opened; i++)
			g_assert_cmpuint(sim_closed(io, FIRST_FD + (int)i), ==, 1);
		io_free(io);
		runs++;
	} while (next_run());
	g_test_message("%u runs", runs);
	g_assert_cmpuint(runs, >, 1000);
}
