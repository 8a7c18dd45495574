/* t/unit/io/version.c -- what the times of a file say about its contents. */
#include "base/clock.h"
#include "io/start/version.h"
#include "t/unit/test.h"

#define T 1000000000ll

static struct io_version
version(int64_t mtime_s, uint32_t mtime_ns, int64_t ctime_s, uint32_t ctime_ns)
{
	return ((struct io_version){
	    .size = 1,
	    .nlink = 1,
	    .mode = 0100644,
	    .mtime_s = mtime_s,
	    .mtime_ns = mtime_ns,
	    .ctime_s = ctime_s,
	    .ctime_ns = ctime_ns,
	});
}

static bool
settled(struct io_version v, int64_t after_ms, uint64_t watched_ms, bool own_clock)
{
	uint64_t wall = (uint64_t)T * NS_PER_S + (uint64_t)(after_ms * (int64_t)NS_PER_MS);

	return (io_version_settled(&v, wall, watched_ms * NS_PER_MS, own_clock));
}

TEST("/version/ticks")
{
	struct io_version v = version(T, 1, T, 1), old = version(1, 5, T, 1),
			  forged = version(1, 0, T, 1);

	g_assert_false(settled(v, 0, 0, true));
	g_assert_false(settled(v, 20, 0, true));
	g_assert_true(settled(v, 21, 0, true));
	g_assert_false(settled(old, 20, 0, true)); /* utimes(2) sets the other time only */
	g_assert_true(settled(old, 21, 0, true));
	g_assert_false(settled(forged, 20, 0, true));
	g_assert_true(settled(forged, 21, 0, true));
	g_assert_false(settled(version(T, 1, 0, 0), 20, 0, true)); /* no time of change there */
	g_assert_true(settled(version(T, 1, 0, 0), 21, 0, true));
}

TEST("/version/whole-seconds")
{
	struct io_version v = version(T, 0, T, 0);

	g_assert_false(settled(v, 1999, 0, true));
	g_assert_false(settled(v, 2000, 0, true));
	g_assert_true(settled(v, 2001, 0, true));
}

TEST("/version/other-clocks")
{
	struct io_version v = version(T, 1, T, 1), future = version(T + 100, 1, T, 1),
			  never = version(INT64_MAX, 1, INT64_MIN, 1);

	g_assert_false(settled(v, 60000, 0, false));
	g_assert_true(settled(v, 60021, 0, false));
	g_assert_false(settled(future, 99000, 0, true));
	g_assert_false(settled(future, 99000, 20, true));
	g_assert_true(settled(future, 99000, 21, false)); /* unchanged while it was watched */
	g_assert_false(settled(version(T + 100, 0, T, 1), 99000, 2000, true));
	g_assert_true(settled(version(T + 100, 0, T, 1), 99000, 2001, true));
	g_assert_false(settled(never, 0, 0, true));
	g_assert_true(settled(version(-5, 0, -5, 0), 0, 0, true));
}

TEST("/version/holds")
{
	struct io_version v = version(T, 1, T, 1), w = v;

	g_assert_true(io_version_holds(&v, &w));
	w.size = 2;
	g_assert_false(io_version_holds(&v, &w));
	w = version(T, 2, T, 2);
	g_assert_false(io_version_holds(&v, &w));
	w = version(T, 1, T, 2); /* written, and the time set back */
	g_assert_false(io_version_holds(&v, &w));
	w.nlink = 0; /* another file has its name */
	g_assert_true(io_version_holds(&v, &w));
	w = version(T, 1, T, 2);
	w.mode = 0100600;
	g_assert_true(io_version_holds(&v, &w));
	w = version(T, 1, T, 2);
	w.uid = 1;
	g_assert_true(io_version_holds(&v, &w));
	w.mtime_ns = 2; /* and written as well */
	g_assert_false(io_version_holds(&v, &w));
}
