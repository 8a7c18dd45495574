/* t/unit/files/warm_open.c -- a file is opened for another process each time it is asked for, and
 * its descriptor has one owner at each end. */

#include "t/unit/files/warm_sim.h"

static int result, calls;

static void
on_open(void *arg, int res)
{
	g_assert_true(arg == &result);
	result = res;
	calls++;
}

static struct warm_open *
begin(const char *path)
{
	result = calls = 0;
	conf.deadline_ms = 1000;
	sim_advance_ms(io, 500);
	return (warm_open(wm, path,
	    &(struct warm_opening){ .since_ns = io_now(io) - 500 * NS_PER_MS,
		.client = 3,
		.done = on_open,
		.arg = &result }));
}

static void
ends_with(int res)
{
	g_assert_cmpint(calls, ==, 1);
	g_assert_cmpint(result, ==, res);
	g_assert_cmpuint(stages.waiting, ==, 0);
}

static void
remembering_up(void)
{
	conf.remember_ms = 1000;
	up();
}

TEST_IN("/warm/open/a-remembered-file-is-opened-again", remembering_up(), down())
{
	struct asker a;

	ask(&a, "/f");
	finish("f", FD);
	g_assert_true(ask(&a, "/f"));
	for (int i = 1; i <= 2; i++) {
		g_assert_nonnull(begin("/f"));
		g_assert_cmpuint(opening("f")->client, ==, 3);
		g_assert_true(opening("f")->open.resolve & IO_GIVEN);
		g_assert_cmpuint(stages.waiting, ==, 1);
		finish("f", FD + i);
		ends_with(FD + i);
		g_assert_cmpuint(sim_closed(io, FD + i), ==, 0); /* it is ours */
	}
}

TEST_IN("/warm/open/errors-and-other-kinds", up(), down())
{
	const int errors[] = { -ENOENT, -EACCES, -EAGAIN, -EIO, -EXDEV };

	for (guint i = 0; i < G_N_ELEMENTS(errors); i++) {
		begin("/f");
		finish("f", errors[i]);
		ends_with(errors[i]);
	}
	begin("/fifo");
	opening("fifo")->open.stx->stx_mode = S_IFIFO;
	finish("fifo", -EACCES);
	ends_with(-EPERM);
}

TEST_IN("/warm/open/deadline", up(), down())
{
	begin("/f");
	sim_advance_ms(io, 499);
	g_assert_cmpint(calls, ==, 0);
	sim_advance_ms(io, 1);
	ends_with(-ETIMEDOUT);
	g_assert_cmpuint(counters.late, ==, 1);
}

/* The descriptor may be there already. */
TEST_IN("/warm/open/cancelled", up(), down())
{
	struct warm_open *o = begin("/f");

	warm_open_cancel(&o);
	g_assert_null(o);
	warm_open_cancel(&o);
	sim_run(io);
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 0);
	o = begin("/f");
	sim_open(io, opening("f"), FD, 100, 1, S_IFREG | 0644);
	warm_open_cancel(&o);
	g_assert_cmpuint(stages.waiting, ==, 0);
	sim_run(io);
	g_assert_cmpint(calls, ==, 0);
	g_assert_cmpuint(sim_closed(io, FD), ==, 1);
	o = begin("/f");
	warm_open_cancel(&o); /* down() finds it on its way */
}

static const char *const roots[] = { "/usr/share", "/usr", NULL };

static void
up_below_roots(void)
{
	conf.roots = roots;
	up();
}

TEST_IN("/warm/open/a-link-may-lead-into-the-next-root", up_below_roots(), down())
{
	g_assert_null(begin("/etc/passwd"));
	g_assert_cmpuint(stages.waiting, ==, 0);
	begin("/usr/share/f");
	g_assert_true(opening("f")->open.resolve & IO_BENEATH);
	finish("f", -EXDEV);
	g_assert_cmpint(calls, ==, 0);
	g_assert_cmpuint(opening("share/f")->client, ==, 3);
	g_assert_cmpuint(opening("share/f")->deadline_ms, ==, 500);
	finish("share/f", FD);
	ends_with(FD);
	begin("/usr/share/f");
	finish("f", -EXDEV);
	finish("share/f", -EXDEV);
	ends_with(-EXDEV);
}
