/* t/unit/server/stat.c -- the open-file cache, event by event. */
#include "t/unit/server/stat_test.h"

/* ---------------------------------------------------------------- loading */

static void
test_miss_then_hit(void)
{
	struct look a, b;
	struct io_op *op;

	up(&usual);
	ask(&a, "dir/file");
	g_assert_cmpint(a.answers, ==, 0);
	op = next(IO_OPEN);
	g_assert_cmpstr(op->open.path, ==, "dir/file");
	g_assert_cmpint(op->open.root, ==, 77);
	g_assert_false(op->urgent);
	g_assert_cmpuint(op->deadline_ms, ==, 30000);
	open_says(5, 1000, 0);
	g_assert_cmpint(a.answers, ==, 0);
	read_says("hello");
	g_assert_true(a.waited);
	g_assert_cmpint(a.e->err, ==, 0);
	g_assert_cmpmem(a.e->bytes, a.e->size, "hello", 5);
	g_assert_cmpmem(a.e->head.p, a.e->head.n, "ETag: \"1\"", 9);
	g_assert_null(a.e->file);
	g_assert_cmpuint(sim_closed(io, FIRST_FD), ==, 1); /* its bytes are here */
	ask(&b, "dir/file");
	g_assert_cmpint(b.answers, ==, 1);
	g_assert_false(b.waited);
	g_assert_true(a.e == b.e);
	put(&a);
	put(&b);
	g_assert_cmpuint(counters.stat_misses, ==, 1);
	g_assert_cmpuint(counters.stat_hits, ==, 1);
	down();
}

static void
test_joins(void)
{
	struct look l[3], other;
	int i;

	up(&usual);
	for (i = 0; i < 3; i++)
		ask(&l[i], "file");
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1);
	g_assert_null(stat_lookup(cache, &scope, TEXT("file"), NULL));
	open_says(2, 1000, 0);
	ask(&other, "other"); /* not the one that is being read */
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1);
	fails(IO_OPEN, -EIO);
	put(&other);
	read_says("hi");
	g_assert_true(l[0].e == l[1].e && l[1].e == l[2].e);
	for (i = 0; i < 3; i++)
		put(&l[i]);
	g_assert_cmpuint(counters.stat_misses, ==, 2);
	g_assert_cmpuint(counters.stat_joins, ==, 2);
	down();
}

static void
test_scopes_never_meet(void)
{
	struct look a, b;

	up(&usual);
	ask_in(&scope, &a, "file");
	ask_in(&other_scope, &b, "file");
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 2);
	open_says(1 << 20, 1000, 0);
	g_assert_cmpint(b.answers, ==, 0);
	fails(IO_OPEN, -ENOENT);
	g_assert_cmpint(a.e->err, ==, 0);
	g_assert_cmpint(b.e->err, ==, -ENOENT);
	put(&a);
	put(&b);
	down();
}

/* It shrank between statx and read: looked at again, twice, then left to the sender, who cuts. */
static void
test_short_read(void)
{
	struct look l;

	up(&usual);
	ask(&l, "log");
	open_says(10, 1000, 0);
	read_says("short");
	g_assert_cmpuint(sim_closed(io, FIRST_FD), ==, 1);
	open_says(5, 1001, 0);
	read_says("short");
	g_assert_cmpmem(l.e->bytes, l.e->size, "short", 5);
	put(&l);
	ask(&l, "shrinking");
	open_says(10, 1000, 0);
	read_says("123456789");
	open_says(9, 1000, 0);
	read_says("1234567");
	open_says(7, 1000, 0);
	read_says("12345");
	g_assert_cmpint(l.e->err, ==, 0);
	g_assert_null(l.e->bytes);
	g_assert_nonnull(l.e->file);
	put(&l);
	down();
}

static void
test_read_fails(void)
{
	struct look l;

	up(&usual);
	ask(&l, "file");
	open_says(5, 1000, 0);
	fails(IO_READ, -EIO);
	g_assert_cmpint(l.e->err, ==, -EIO);
	put(&l);
	g_assert_cmpuint(sim_closed(io, FIRST_FD), ==, 1);
	g_assert_false(is_known("file")); /* perhaps the disk is better next time */
	down();
}

static void
test_large_and_empty(void)
{
	struct look l;

	up(&usual);
	ask(&l, "large");
	open_says(16385, 1000, 0);
	g_assert_cmpuint(sim_count(io, IO_READ), ==, 0);
	g_assert_nonnull(l.e->file);
	g_assert_null(l.e->bytes);
	g_assert_cmpuint(l.e->head.n, !=, 0);
	put(&l);
	g_assert_cmpuint(sim_closed(io, FIRST_FD), ==, 0);
	ask(&l, "empty");
	open_says(0, 1000, 0);
	g_assert_cmpint(l.e->err, ==, 0);
	g_assert_cmpuint(l.e->size, ==, 0);
	put(&l);
	down();
}

static void
test_directory(void)
{
	struct look l;

	up(&usual);
	ask(&l, "dir");
	open_says(4096, 1000, S_IFDIR | 0755);
	g_assert_true(l.e->is_dir);
	g_assert_null(l.e->file);
	g_assert_cmpuint(l.e->head.n, ==, 0);
	g_assert_cmpuint(sim_closed(io, FIRST_FD), ==, 1);
	put(&l);
	g_assert_true(is_known("dir"));
	down();
}

static void
test_deadline(void)
{
	struct look l;

	up(&usual);
	ask(&l, "hung");
	sim_advance_ms(io, 29999);
	g_assert_cmpint(l.answers, ==, 0);
	sim_advance_ms(io, 1);
	g_assert_cmpint(l.e->err, ==, -ETIMEDOUT);
	put(&l);
	g_assert_cmpuint(stat_cache_entries(cache), ==, 0); /* no news about the file */
	ask(&l, "hung");
	open_says(5, 1000, 0);
	sim_advance_ms(io, 30000);
	g_assert_cmpint(l.e->err, ==, -ETIMEDOUT);
	put(&l);
	down();
}

/* ---------------------------------------------------------------- absences */

static void
test_absence(void)
{
	static const int lasting[] = {
		-ENOENT, -ENOTDIR, -EACCES, -EPERM, -ELOOP, -EXDEV, -ENAMETOOLONG,
	};
	static const int passing[] = {
		-EAGAIN, -EMFILE, -ENFILE, -ENOMEM, -EIO, -ETIMEDOUT, -ECANCELED, -ESTALE,
	};
	struct look l;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(lasting) + G_N_ELEMENTS(passing); i++) {
		bool lasts = i < G_N_ELEMENTS(lasting);
		int err = lasts ? lasting[i] : passing[i - G_N_ELEMENTS(lasting)];

		up(&usual);
		ask(&l, "nothing");
		fails(IO_OPEN, err);
		g_assert_cmpint(l.e->err, ==, err);
		put(&l);
		g_assert_cmpint(is_known("nothing"), ==, lasts);
		g_assert_cmpuint(counters.stat_absent_hits, ==, lasts);
		g_assert_cmpuint(counters.stat_hits, ==, 0);
		down();
	}
}

static void
test_absence_ends(void)
{
	struct look a, b;

	up(&usual);
	ask(&a, "new");
	fails(IO_OPEN, -ENOENT);
	put(&a);
	sim_advance_ms(io, 1000);
	ask(&a, "new");
	g_assert_cmpint(a.answers, ==, 0);
	fails(IO_STAT, -ENOENT); /* still not */
	g_assert_cmpint(a.e->err, ==, -ENOENT);
	put(&a);
	sim_advance_ms(io, 1000);
	ask(&a, "new");
	stat_says(3, 2000);
	g_assert_cmpint(a.answers, ==, 0); /* there it is: opened before anybody is told */
	ask(&b, "new");
	open_says(3, 2000, 0);
	read_says("new");
	g_assert_cmpmem(a.e->bytes, a.e->size, "new", 3);
	g_assert_true(a.e == b.e);
	put(&a);
	put(&b);
	down();
}

/* ---------------------------------------------------------------- re-checks */

static void
test_recheck_while_served(void)
{
	struct look l;

	up(&usual);
	know("hot", "bytes");
	sim_advance_ms(io, 500);
	ask(&l, "hot");
	put(&l);
	g_assert_cmpuint(sim_count(io, IO_STAT), ==, 0);
	sim_advance_ms(io, 1);
	ask(&l, "hot");
	put(&l);
	g_assert_true(next(IO_STAT)->urgent);
	sim_advance_ms(io, 498);
	ask(&l, "hot"); /* 999 ms old: the last moment */
	g_assert_false(l.waited);
	put(&l);
	g_assert_cmpuint(sim_count(io, IO_STAT), ==, 1);
	stat_says(5, 1000);
	sim_advance_ms(io, 500); /* it took half a second: half the life of its answer is over */
	ask(&l, "hot");
	put(&l);
	g_assert_cmpuint(sim_count(io, IO_STAT), ==, 1);
	stat_says(5, 1000);
	g_assert_cmpuint(counters.stat_rechecks, ==, 2);
	g_assert_cmpuint(counters.stat_misses, ==, 1);
	down();
}

static void
test_stale_waits(void)
{
	struct look a, b;

	up(&usual);
	know("file", "bytes");
	sim_advance_ms(io, 1000);
	g_assert_false(is_known("file"));
	g_assert_cmpuint(sim_count(io, IO_STAT), ==, 0); /* a peek starts nothing */
	ask(&a, "file");
	ask(&b, "file");
	g_assert_cmpuint(sim_count(io, IO_STAT), ==, 1);
	g_assert_cmpint(a.answers + b.answers, ==, 0);
	sim_advance_ms(io, 200);
	stat_says(5, 1000);
	g_assert_cmpmem(a.e->bytes, a.e->size, "bytes", 5);
	put(&a);
	put(&b);
	g_assert_true(is_known("file"));
	down();
}

static void
test_changed_is_replaced(void)
{
	struct look old, a, b;

	up(&usual);
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
	g_assert_cmpuint(stat_cache_entries(cache), ==, 1);
	put(&old);
	put(&a);
	put(&b);
	down();
}

static void
test_gone_is_replaced(void)
{
	struct look a;

	up(&usual);
	know_large("file");
	sim_advance_ms(io, 1000);
	ask(&a, "file");
	fails(IO_STAT, -ENOENT);
	fails(IO_OPEN, -ENOENT);
	g_assert_cmpint(a.e->err, ==, -ENOENT);
	put(&a);
	g_assert_cmpuint(sim_closed(io, FIRST_FD), ==, 1);
	down();
}

/* Those who wait are served if the disk is silent, else they hear what went wrong; the file is what it was. */
static void
test_recheck_fails(void)
{
	static const struct {
		int err, told;
	} errs[] = {{-EAGAIN, 0}, {-ETIMEDOUT, 0}, {-EIO, -EIO}, {-ENOMEM, -ENOMEM}, {-EMFILE, -EMFILE}};
	struct look a, b;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(errs); i++) {
		up(&usual);
		know("file", "bytes");
		sim_advance_ms(io, 600);
		ask(&a, "file");
		put(&a);
		fails(IO_STAT, errs[i].err); /* nobody waits */
		g_assert_true(is_known("file"));
		g_assert_cmpuint(sim_count(io, IO_STAT), ==, 0); /* ... and it is not asked again at once */
		sim_advance_ms(io, 1000);
		ask(&a, "file");
		ask(&b, "file");
		fails(IO_STAT, errs[i].err);
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

/* The disk hangs: what is in demand is served all the time, and the check is tried again and again. */
static void
test_recheck_hangs(void)
{
	struct look a;
	unsigned i;

	up(&usual);
	know("file", "bytes");
	for (i = 0; i < 700; i++) { /* 70 s */
		sim_advance_ms(io, 100);
		ask(&a, "file");
		g_assert_cmpint(a.answers, ==, 1);
		g_assert_cmpint(a.e->err, ==, 0);
		put(&a);
		g_assert_cmpuint(sim_count(io, IO_STAT), <=, 1);
	}
	g_assert_cmpuint(counters.stat_rechecks, ==, 3); /* each of them took its 30 s */
	g_assert_cmpuint(counters.stat_overdue, >, 500);
	stat_says(6, 2000); /* it is back, and something has changed */
	ask(&a, "file");
	open_says(6, 2000, 0);
	read_says("bytes2");
	g_assert_cmpmem(a.e->bytes, a.e->size, "bytes2", 6);
	put(&a);
	down();
}

/* A check takes longer than an answer may be old: nobody waits, and the next check begins at once. */
static void
test_recheck_slow(void)
{
	struct look a;
	unsigned i;

	up(&usual);
	know("file", "bytes");
	sim_advance_ms(io, 600);
	for (i = 0; i < 20; i++) {
		ask(&a, "file");
		g_assert_cmpint(a.answers, ==, 1);
		put(&a);
		g_assert_cmpuint(sim_count(io, IO_STAT), ==, 1);
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
	down();
}

static void
test_recheck_deadline(void)
{
	struct look a;

	up(&usual);
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
	down();
}

/* Evicted while it is being checked: whoever waits still gets an answer. */
static void
test_evicted_in_recheck(void)
{
	struct stat_limits few = usual;
	struct look a, b;

	few.entries = 1;
	up(&few);
	know("file", "bytes");
	sim_advance_ms(io, 1000);
	ask(&a, "file");
	know("another", "x");
	g_assert_cmpuint(stat_cache_entries(cache), ==, 1);
	ask(&b, "file"); /* unknown now */
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1);
	stat_says(6, 1001); /* and changed: both wait for the same */
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1);
	open_says(6, 1001, 0);
	read_says("bytes2");
	g_assert_true(a.e == b.e);
	put(&a);
	put(&b);
	down();
}

static void
test_disabled(void)
{
	struct stat_limits off = usual;
	struct look l;

	off.cache = false;
	up(&off);
	ask(&l, "file");
	open_says(5, 1000, 0);
	g_assert_null(l.e->bytes);
	put(&l);
	ask(&l, "file"); /* at once, and still asked */
	g_assert_cmpint(l.answers, ==, 0);
	stat_says(5, 1000);
	put(&l);
	down();
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/stat/miss-then-hit", test_miss_then_hit);
	g_test_add_func("/stat/equal-misses-join", test_joins);
	g_test_add_func("/stat/scopes-never-meet", test_scopes_never_meet);
	g_test_add_func("/stat/short-read-looks-again", test_short_read);
	g_test_add_func("/stat/read-fails", test_read_fails);
	g_test_add_func("/stat/large-keeps-descriptor", test_large_and_empty);
	g_test_add_func("/stat/directory", test_directory);
	g_test_add_func("/stat/deadline", test_deadline);
	g_test_add_func("/stat/absence-is-cached", test_absence);
	g_test_add_func("/stat/absence-ends", test_absence_ends);
	g_test_add_func("/stat/recheck-while-served", test_recheck_while_served);
	g_test_add_func("/stat/stale-waits", test_stale_waits);
	g_test_add_func("/stat/changed-is-replaced", test_changed_is_replaced);
	g_test_add_func("/stat/gone-is-replaced", test_gone_is_replaced);
	g_test_add_func("/stat/recheck-fails", test_recheck_fails);
	g_test_add_func("/stat/recheck-hangs", test_recheck_hangs);
	g_test_add_func("/stat/recheck-slow", test_recheck_slow);
	g_test_add_func("/stat/recheck-deadline", test_recheck_deadline);
	g_test_add_func("/stat/evicted-in-recheck", test_evicted_in_recheck);
	g_test_add_func("/stat/disabled", test_disabled);
	return (g_test_run());
}
