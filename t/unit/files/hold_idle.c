/* t/unit/files/hold_idle.c -- names without requests are forgotten, files without are closed. */
#include "t/unit/files/hold_test.h"

static const struct file_limits forgets = {
	.entries = 4000,
	.fds = 50,
	.bytes = 1 << 20,
	.max_file = 16384,
	.cache = true,
	.open_ms = 30000,
	.idle_ms = 8000,
	.forget_ms = 80000,
};

static void
absent(const char *path)
{
	struct look l;

	ask(&l, path);
	fails(IO_OPEN, -ENOENT);
	put(&l);
}

UP_TEST("/hold/each-has-its-time", &forgets)
{
	know("small", "bytes");
	know_large("large");
	absent("none");
	g_assert_cmpuint(file_cache_entries(cache), ==, 3);
	g_assert_cmpuint(file_cache_memory(cache), >, 3 * sizeof(struct file_entry));
	sim_advance_ms(io, 9100);
	g_assert_cmpuint(counters.stat_idle_closed, ==, 1);
	g_assert_cmpuint(file_cache_entries(cache), ==, 2);
	sim_advance_ms(io, 91000 - 9100);
	g_assert_cmpuint(counters.stat_forgotten, ==, 2);
	g_assert_cmpuint(file_cache_entries(cache), ==, 0);
	g_assert_cmpuint(file_cache_memory(cache), ==, 0);
	g_assert_false(io_busy(io)); /* no timer ticks for nothing */
}

UP_TEST("/hold/in-demand", &forgets)
{
	struct look l;
	unsigned i;

	know("asked", "bytes");
	know("not", "bytes");
	for (i = 0; i < 3; i++) {
		sim_advance_ms(io, 45000);
		ask(&l, "asked");
		stat_says(5, 1000);
		put(&l);
	}
	g_assert_cmpuint(counters.stat_forgotten, ==, 1);
	g_assert_true(is_known("asked"));
}

TEST_IN("/hold/never", (lim = forgets, lim.forget_ms = lim.idle_ms = 0, up(&lim)), down())
{
	know("small", "bytes");
	know_large("large");
	g_assert_false(io_busy(io));
	sim_advance_ms(io, 1000000);
	g_assert_cmpuint(file_cache_entries(cache), ==, 2);
}

/* A burst is dropped in several rounds, so other requests do not wait for all of it. */
UP_TEST("/hold/burst", &forgets)
{
	char name[16];
	unsigned i, before;

	for (i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		know(name, "x");
	}
	g_assert_cmpuint(file_cache_entries(cache), ==, 3000);
	sim_advance_ms(io, 80000 + 80000 / 8 + 2);
	before = (unsigned)counters.stat_forgotten;
	g_assert_cmpuint(before, >, 0);
	g_assert_cmpuint(before, <, 3000);
	for (i = 0; i < 3; i++)
		sim_advance_ms(io, 11);
	g_assert_cmpuint(counters.stat_forgotten, ==, 3000);
}
