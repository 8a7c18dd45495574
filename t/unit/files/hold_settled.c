/* t/unit/files/hold_settled.c -- the cache of open files, and files that were read too soon after
 * a change. */
#include "t/unit/files/hold_test.h"

static void
tag_is(const struct look *l, const char *tag, const char *bytes)
{
	g_assert_cmpmem(l->e->head.p, l->e->head.n, tag, strlen(tag));
	g_assert_cmpmem(l->e->bytes, l->e->size, bytes, strlen(bytes));
}

#define WEAK   "ETag: W/\"1\""
#define STRONG "ETag: \"1\""

/* Written twice within a tick, with a look between: the second contents have the times of the
 * first. */
UP_TEST("/hold/unsettled-waits", &usual)
{
	struct look l;
	int64_t now;

	now = (int64_t)io_wall_s(io);
	ask(&l, "young");
	open_says(1, now, 0);
	read_says("a");
	tag_is(&l, WEAK, "a");
	put(&l);
	g_assert_cmpuint(counters.stat_unsettled, ==, 1);
	sim_advance_ms(io, 4000);
	ask(&l, "young");
	stat_says(1, now);
	g_assert_cmpint(l.answers, ==, 0); /* these times say nothing */
	open_says(1, now, 0);
	read_says("b");
	tag_is(&l, STRONG, "b");
	put(&l);
	sim_advance_ms(io, 4000);
	ask(&l, "young");
	stat_says(1, now); /* and now they do */
	tag_is(&l, STRONG, "b");
	put(&l);
	g_assert_cmpuint(counters.stat_unsettled, ==, 1);
}

/* One check of a file in demand: the bytes that are served while it is read again, and
 * afterwards. */
static void
recheck_reads(int64_t mtime, const char *before, const char *after)
{
	struct look l;

	sim_advance_ms(io, FILE_RECHECK_MS + 1);
	ask(&l, "young");
	tag_is(&l, WEAK, before);
	put(&l);
	stat_says(1, mtime);
	ask(&l, "young");
	g_assert_false(l.waited); /* served meanwhile, and read once */
	tag_is(&l, WEAK, before);
	put(&l);
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1);
	open_says(1, mtime, 0);
	read_says(after);
}

/* Times in the future: settled when they were watched for as long as the longest tick, at the cost
 * of some reads. */
UP_TEST("/hold/unsettled-in-demand", &usual)
{
	struct look l;
	int64_t mtime;
	unsigned i;

	mtime = (int64_t)io_wall_s(io) + 1000000;
	ask(&l, "young");
	open_says(1, mtime, 0);
	read_says("0");
	put(&l);
	for (i = 0; i < 4; i++)
		recheck_reads(mtime, i % 2 == 0 ? "0" : "1", i % 2 == 0 ? "1" : "0");
	ask(&l, "young");
	tag_is(&l, STRONG, "0");
	put(&l);
	g_assert_cmpuint(file_cache_entries(cache), ==, 1);
	sim_advance_ms(io, FILE_RECHECK_MS + 1);
	ask(&l, "young");
	stat_says(1, mtime);
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 0);
	put(&l);
}

/* The disk hangs or fails when it is to be read again: what is known serves on. */
UP_TEST("/hold/unsettled-reload-fails", &usual)
{
	struct look l;
	int64_t now;

	now = (int64_t)io_wall_s(io);
	ask(&l, "young");
	open_says(1, now, 0);
	read_says("a");
	put(&l);
	sim_advance_ms(io, FILE_RECHECK_MS + 1);
	ask(&l, "young");
	put(&l);
	stat_says(1, now);
	sim_advance_ms(io, 5000);
	ask(&l, "young");
	tag_is(&l, WEAK, "a");
	put(&l);
	fails(IO_OPEN, -EIO);
	ask(&l, "young");
	tag_is(&l, WEAK, "a");
	put(&l);
	sim_advance_ms(io, FILE_RECHECK_MS + 1);
	ask(&l, "young");
	put(&l);
	stat_says(1, now);
	fails(IO_OPEN, -ENOENT);
	ask(&l, "young");
	g_assert_cmpint(l.e->err, ==, -ENOENT);
	put(&l);
}
