/* t/unit/files/hold.c -- the cache of open files: misses, hits, joins, failures, absences. */
#include "t/unit/files/hold_test.h"

UP_TEST("/hold/miss-then-hit", &usual)
{
	struct look a, b;
	struct io_op *op;

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
}

UP_TEST("/hold/equal-misses-join", &usual)
{
	struct look l[3], other;
	int i;

	for (i = 0; i < 3; i++)
		ask(&l[i], "file");
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1);
	g_assert_null(file_lookup(cache, &scope, TEXT("file"), NULL));
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
}

UP_TEST("/hold/scopes-never-meet", &usual)
{
	struct look a, b;

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
}

/* The file shrank between statx and read.  It is read again, twice.  Then the sender cuts the
 * reply. */
UP_TEST("/hold/short-read-looks-again", &usual)
{
	struct look l;

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
}

UP_TEST("/hold/read-fails", &usual)
{
	struct look l;

	ask(&l, "file");
	open_says(5, 1000, 0);
	fails(IO_READ, -EIO);
	g_assert_cmpint(l.e->err, ==, -EIO);
	put(&l);
	g_assert_cmpuint(sim_closed(io, FIRST_FD), ==, 1);
	g_assert_false(is_known("file")); /* perhaps the disk is better next time */
}

UP_TEST("/hold/large-keeps-descriptor", &usual)
{
	struct look l;

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
}

UP_TEST("/hold/directory", &usual)
{
	struct look l;

	ask(&l, "dir");
	open_says(4096, 1000, S_IFDIR | 0755);
	g_assert_true(l.e->is_dir);
	g_assert_null(l.e->file);
	g_assert_cmpuint(l.e->head.n, ==, 0);
	g_assert_cmpuint(sim_closed(io, FIRST_FD), ==, 1);
	put(&l);
	g_assert_true(is_known("dir"));
}

UP_TEST("/hold/deadline", &usual)
{
	struct look l;

	ask(&l, "hung");
	sim_advance_ms(io, 29999);
	g_assert_cmpint(l.answers, ==, 0);
	sim_advance_ms(io, 1);
	g_assert_cmpint(l.e->err, ==, -ETIMEDOUT);
	put(&l);
	g_assert_cmpuint(file_cache_entries(cache), ==, 0); /* no news about the file */
	ask(&l, "hung");
	open_says(5, 1000, 0);
	sim_advance_ms(io, 30000);
	g_assert_cmpint(l.e->err, ==, -ETIMEDOUT);
	put(&l);
}

TEST("/hold/absence-is-cached")
{
	static const int lasting[] = {
		-ENOENT,
		-ENOTDIR,
		-EACCES,
		-EPERM,
		-ELOOP,
		-EXDEV,
		-ENAMETOOLONG,
	};
	static const int passing[] = {
		-EAGAIN,
		-EMFILE,
		-ENFILE,
		-ENOMEM,
		-EIO,
		-ETIMEDOUT,
		-ECANCELED,
		-ESTALE,
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

UP_TEST("/hold/absence-ends", &usual)
{
	struct look a, b;

	ask(&a, "new");
	fails(IO_OPEN, -ENOENT);
	put(&a);
	sim_advance_ms(io, 1000);
	ask(&a, "new");
	g_assert_cmpint(a.answers, ==, 0);
	fails(SIM_STAT, -ENOENT); /* still not */
	g_assert_cmpint(a.e->err, ==, -ENOENT);
	put(&a);
	sim_advance_ms(io, 1000);
	ask(&a, "new");
	stat_says(3, 2000);
	g_assert_cmpint(a.answers, ==, 0); /* opened before the first answer */
	ask(&b, "new");
	open_says(3, 2000, 0);
	read_says("new");
	g_assert_cmpmem(a.e->bytes, a.e->size, "new", 3);
	g_assert_true(a.e == b.e);
	put(&a);
	put(&b);
}

TEST("/hold/disabled")
{
	struct file_limits off = usual;
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
