/* t/unit/files/hold_recheck.c -- re-checks of open files: due, changed, gone, failed, hung. */
#include "t/unit/files/hold_test.h"

UP_TEST("/hold/recheck-while-served", &usual)
{
	struct look l;

	know("hot", "bytes");
	sim_advance_ms(io, 500);
	ask(&l, "hot");
	put(&l);
	g_assert_cmpuint(sim_count(io, SIM_STAT), ==, 0);
	sim_advance_ms(io, 1);
	ask(&l, "hot");
	put(&l);
	g_assert_true(next(SIM_STAT)->urgent);
	sim_advance_ms(io, 498);
	ask(&l, "hot"); /* 999 ms old: the last moment */
	g_assert_false(l.waited);
	put(&l);
	g_assert_cmpuint(sim_count(io, SIM_STAT), ==, 1);
	stat_says(5, 1000);
	sim_advance_ms(io, 500); /* it took half a second: half the life of its answer is over */
	ask(&l, "hot");
	put(&l);
	g_assert_cmpuint(sim_count(io, SIM_STAT), ==, 1);
	stat_says(5, 1000);
	g_assert_cmpuint(counters.stat_rechecks, ==, 2);
	g_assert_cmpuint(counters.stat_misses, ==, 1);
}

UP_TEST("/hold/stale-waits", &usual)
{
	struct look a, b;

	know("file", "bytes");
	sim_advance_ms(io, 1000);
	g_assert_false(is_known("file"));
	g_assert_cmpuint(sim_count(io, SIM_STAT), ==, 0); /* a peek starts nothing */
	ask(&a, "file");
	ask(&b, "file");
	g_assert_cmpuint(sim_count(io, SIM_STAT), ==, 1);
	g_assert_cmpint(a.answers + b.answers, ==, 0);
	sim_advance_ms(io, 200);
	stat_says(5, 1000);
	g_assert_cmpmem(a.e->bytes, a.e->size, "bytes", 5);
	put(&a);
	put(&b);
	g_assert_true(is_known("file"));
}

UP_TEST("/hold/changed-is-replaced", &usual)
{
	struct look old, a, b;

	know("file", "old");
	ask(&old, "file");
	sim_advance_ms(io, 1000);
	ask(&a, "file");
	stat_says(4, 2000);
	g_assert_cmpint(a.answers, ==, 0);
	ask(&b, "file");
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1);
	open_says(4, 2000, 0);
	read_says("new!");
	g_assert_cmpmem(a.e->bytes, a.e->size, "new!", 4);
	g_assert_true(a.e == b.e);
	g_assert_cmpmem(old.e->bytes, old.e->size, "old", 3); /* what is held never changes */
	g_assert_cmpuint(file_cache_entries(cache), ==, 1);
	put(&old);
	put(&a);
	put(&b);
}

UP_TEST("/hold/gone-is-replaced", &usual)
{
	struct look a;

	know_large("file");
	sim_advance_ms(io, 1000);
	ask(&a, "file");
	fails(SIM_STAT, -ENOENT);
	fails(IO_OPEN, -ENOENT);
	g_assert_cmpint(a.e->err, ==, -ENOENT);
	put(&a);
	g_assert_cmpuint(sim_closed(io, FIRST_FD), ==, 1);
}

/* Waiters are served if the disk is silent, else they get the error.  The file stays as it was. */
TEST("/hold/recheck-fails")
{
	static const struct {
		int err, told;
	} errs[] = { { -EAGAIN, 0 }, { -ETIMEDOUT, 0 }, { -EIO, -EIO }, { -ENOMEM, -ENOMEM },
		{ -EMFILE, -EMFILE } };
	struct look a, b;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(errs); i++) {
		up(&usual);
		know("file", "bytes");
		sim_advance_ms(io, 600);
		ask(&a, "file");
		put(&a);
		fails(SIM_STAT, errs[i].err); /* no request waits */
		g_assert_true(is_known("file"));
		/* ... and it is not asked again at once */
		g_assert_cmpuint(sim_count(io, SIM_STAT), ==, 0);
		sim_advance_ms(io, 1000);
		ask(&a, "file");
		ask(&b, "file");
		fails(SIM_STAT, errs[i].err);
		g_assert_cmpint(a.e->err, ==, errs[i].told);
		put(&a);
		put(&b);
		sim_advance_ms(io, 1000);
		ask(&a, "file");
		stat_says(5, 1000);
		g_assert_cmpint(a.e->err, ==, 0);
		put(&a);
		g_assert_cmpuint(counters.stat_misses, ==, 1);
		down();
	}
}

/* The disk hangs: what is in demand is served all the time, and the check is tried again and
 * again. */
UP_TEST("/hold/recheck-hangs", &usual)
{
	struct look a;
	unsigned i;

	know("file", "bytes");
	for (i = 0; i < 700; i++) { /* 70 s */
		sim_advance_ms(io, 100);
		ask(&a, "file");
		g_assert_cmpint(a.answers, ==, 1);
		g_assert_cmpint(a.e->err, ==, 0);
		put(&a);
		g_assert_cmpuint(sim_count(io, SIM_STAT), <=, 1);
	}
	g_assert_cmpuint(counters.stat_rechecks, ==, 3); /* each of them took its 30 s */
	g_assert_cmpuint(counters.stat_overdue, >, 500);
	stat_says(6, 2000); /* it is back, and something has changed */
	ask(&a, "file");
	open_says(6, 2000, 0);
	read_says("bytes2");
	g_assert_cmpmem(a.e->bytes, a.e->size, "bytes2", 6);
	put(&a);
}

/* A check takes longer than an answer may be old: no request waits, and the next check begins at
 * once. */
UP_TEST("/hold/recheck-slow", &usual)
{
	struct look a;
	unsigned i;

	know("file", "bytes");
	sim_advance_ms(io, 600);
	for (i = 0; i < 20; i++) {
		ask(&a, "file");
		g_assert_cmpint(a.answers, ==, 1);
		put(&a);
		g_assert_cmpuint(sim_count(io, SIM_STAT), ==, 1);
		sim_advance_ms(io, 1500);
		ask(&a, "file");
		g_assert_cmpint(a.answers, ==, 1);
		put(&a);
		stat_says(5, 1000);
	}
	stat_says(5, 1000);
	sim_advance_ms(io, 2000);
	ask(&a, "file"); /* not in demand any more: an old answer is not good enough */
	g_assert_cmpint(a.answers, ==, 0);
	stat_says(5, 1000);
	put(&a);
}

UP_TEST("/hold/recheck-deadline", &usual)
{
	struct look a;

	know("file", "bytes");
	sim_advance_ms(io, 5000);
	ask(&a, "file");
	sim_advance_ms(io, 900);
	g_assert_cmpint(a.answers, ==, 0);
	sim_advance_ms(io, 200); /* patience is over: it is in memory */
	g_assert_cmpmem(a.e->bytes, a.e->size, "bytes", 5);
	put(&a);
	g_assert_true(is_known("file"));
	g_assert_cmpuint(counters.stat_overdue, ==, 1);
	ask(&a, "absent");
	fails(IO_OPEN, -ENOENT);
	put(&a);
	sim_advance_ms(io, 5000);
	ask(&a, "absent"); /* there may be a file by now: no answer from memory */
	sim_advance_ms(io, 30000);
	g_assert_cmpint(a.e->err, ==, -ETIMEDOUT);
	put(&a);
}

/* A file is evicted during its check.  Each waiter gets an answer. */
TEST("/hold/evicted-in-recheck")
{
	struct file_limits few = usual;
	struct look a, b;

	few.entries = 1;
	up(&few);
	know("file", "bytes");
	sim_advance_ms(io, 1000);
	ask(&a, "file");
	know("another", "x");
	g_assert_cmpuint(file_cache_entries(cache), ==, 1);
	ask(&b, "file"); /* unknown now */
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1);
	stat_says(6, 1001); /* the file has changed: both wait for one open */
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1);
	open_says(6, 1001, 0);
	read_says("bytes2");
	g_assert_true(a.e == b.e);
	put(&a);
	put(&b);
	down();
}
