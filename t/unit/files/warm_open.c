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
	finish("share/f", FD);
	ends_with(FD);
	begin("/usr/share/f");
	finish("f", -EXDEV);
	finish("share/f", -EXDEV);
	ends_with(-EXDEV);
	begin("/usr/share/f");
	finish("f", -EXDEV);
	sim_advance_ms(io, 500);
	ends_with(-ETIMEDOUT);
}

/* ---------------------------------------------------------------- bytes of another machine */

static int real_fd;

static void
reading_up(void)
{
	conf.how = WARM_READ;
	conf.before = 3 * (uint64_t)IO_WINDOW;
	real_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	up();
}

static void
reading_down(void)
{
	down();
	close(real_fd);
}

static struct warm_open *
begin_range(const char *path, uint64_t from, uint64_t to)
{
	result = calls = 0;
	return (warm_open(wm, path,
	    &(struct warm_opening){ .since_ns = io_now(io),
		.client = 3,
		.want = { 1, { { from, to } } },
		.done = on_open,
		.arg = &result }));
}

/* As a thread would, which has read the first window. */
static void
opened(uint64_t size)
{
	struct io_op *op = opening("f");

	g_assert_true(op->open.resolve & IO_GIVEN);
	op->open.first->n = op->open.first->warm ? MIN(size, IO_WINDOW) : 0;
	g_assert_cmpuint(op->open.first->shut, ==, 0);
	sim_open(io, op, real_fd, size, 1, S_IFREG | 0644);
	sim_run(io);
}

static struct io_op *
window(void)
{
	struct io_op *op;

	for (guint i = 0; (op = sim_nth(io, i)) != NULL; i++)
		if (sim_kind(op) == SIM_WARM)
			return (op);
	return (NULL);
}

/* Ends the windows on their way and those that follow; their bytes. */
static uint64_t
read_windows(void)
{
	struct io_op *op;
	uint64_t n = 0;

	while ((op = window()) != NULL) {
		g_assert_cmpint(calls, ==, 0);
		g_assert_cmpuint(op->client, ==, 3);
		g_assert_cmpint(op->file.file->fd, !=, real_fd);
		n += op->file.len;
		sim_finish(io, op, op->file.len);
		sim_run(io);
	}
	return (n);
}

TEST_IN("/warm/open/reads-what-is-wanted-first", reading_up(), reading_down())
{
	begin_range("/f", 0, UINT64_MAX);
	opened(1000);
	ends_with(real_fd);
	begin_range("/f", 0, UINT64_MAX);
	opened(9 * IO_WINDOW);
	g_assert_cmpint(calls, ==, 0);
	g_assert_cmpuint(read_windows(), ==, 2 * IO_WINDOW);
	ends_with(real_fd);
	begin_range("/f", 4096, 8192);
	opened(9 * IO_WINDOW);
	g_assert_cmpuint(read_windows(), ==, 4096);
	ends_with(real_fd);
	begin("/f"); /* no bytes, as for HEAD */
	opened(9 * IO_WINDOW);
	ends_with(real_fd);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 0);
}

/* It is given to nobody, and closed once. */
static void
lost(void)
{
	sim_run(io);
	g_assert_null(window());
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 1);
}

TEST_IN("/warm/open/reads-for-nobody", reading_up(), reading_down())
{
	struct warm_open *o = begin_range("/f", 0, UINT64_MAX);

	opened(9 * IO_WINDOW);
	warm_open_cancel(&o);
	g_assert_cmpuint(stages.waiting, ==, 0);
	g_assert_cmpint(calls, ==, 0);
	lost();
}

TEST_IN("/warm/open/reads-are-late", reading_up(), reading_down())
{
	begin_range("/f", 0, UINT64_MAX);
	opened(9 * IO_WINDOW);
	sim_advance_ms(io, 1000);
	ends_with(-ETIMEDOUT);
	lost();
}

TEST_IN("/warm/open/reads-fail", reading_up(), reading_down())
{
	begin_range("/f", 0, UINT64_MAX);
	opened(9 * IO_WINDOW);
	sim_finish(io, window(), -EIO); /* for the client, too */
	sim_run(io);
	read_windows();
	ends_with(real_fd);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 0);
	begin_range("/f", 0, UINT64_MAX);
	opened(9 * IO_WINDOW);
	sim_finish(io, window(), -EAGAIN); /* the disk hangs */
	sim_run(io);
	read_windows();
	ends_with(-EAGAIN);
	lost();
}

TEST_IN("/warm/open/reads-at-the-end", reading_up(), reading_down())
{
	begin_range("/f", 0, UINT64_MAX);
	opened(9 * IO_WINDOW); /* down() finds its windows on their way */
}
