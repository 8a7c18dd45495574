/* t/unit/files/warm_windows.c -- long files: which windows are read in which order, before the
 * answer, after it, and without a waiter. */

#include "io/disk/job.h"
#include "t/unit/files/warm_sim.h"

#define WINDOW ((uint64_t)IO_WINDOW)

static char *real; /* a file, and how it is open */
static int real_fd;

static struct io_op *
window_at(uint64_t off)
{
	struct io_op *op;

	for (guint i = 0; (op = sim_nth(io, i)) != NULL; i++) {
		if (sim_kind(op) == SIM_WARM && op->file.off == off)
			return (op);
	}
	return (NULL);
}

static void
finish_window(uint64_t off, int64_t res)
{
	g_assert_nonnull(window_at(off));
	sim_finish(io, window_at(off), res);
	sim_run(io);
}

/* As a thread would: a file of this size, of which it has read this much. */
static void
opened(const char *tail, uint64_t size, uint32_t first)
{
	struct io_op *op = opening(tail);

	g_assert_nonnull(op);
	g_assert_cmpint(op->open.first->warm, ==, first != 0);
	op->open.first->n = first;
	sim_open(io, op, real_fd, size, 1, S_IFREG | 0644);
	sim_run(io);
}

static void
read_up(uint64_t before, uint64_t behind)
{
	conf.how = WARM_READ;
	conf.before = before;
	conf.behind = behind;
	up();
}

READ_TEST("/warm/windows", 12 * WINDOW - 5, 0)
{
	struct asker a;
	guint i;

	g_assert_false(ask(&a, "/a"));
	opened("a", 100 * WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 8);
	for (i = 8; i >= 1; i--)
		finish_window(i * WINDOW, IO_WINDOW);
	for (i = 9; i < 11; i++)
		finish_window(i * WINDOW, IO_WINDOW);
	g_assert_cmpuint(a.done, ==, 0);
	g_assert_cmpuint(window_at(11 * WINDOW)->file.len, ==, WINDOW - 5);
	finish_window(11 * WINDOW, IO_WINDOW - 5);
	g_assert_cmpuint(a.done, ==, 1);
	g_assert_cmpint(a.w.found.err, ==, 0);
	g_assert_cmpuint(counters.bytes_before, ==, 12 * WINDOW - 5);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 1);
}

READ_TEST("/warm/range", 2 * WINDOW, 0)
{
	struct asker a, b, c;
	uint64_t from = 7 * WINDOW + 8192;

	g_assert_false(ask_from(&a, "/a", from + 10));
	g_assert_false(ask_from(&b, "/a", from)); /* the same page */
	g_assert_false(ask(&c, "/a"));            /* the start is another matter */
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 2);
	opened("a", 100 * WINDOW, 0);
	g_assert_cmpuint(window_at(from)->file.len, ==, WINDOW - 8192);
	finish_window(from, WINDOW - 8192);
	finish_window(8 * WINDOW, IO_WINDOW);
	g_assert_cmpuint(window_at(9 * WINDOW)->file.len, ==, 8192 + 4096);
	finish_window(9 * WINDOW, 8192 + 4096);
	g_assert_cmpuint(a.done, ==, 1);
	g_assert_cmpuint(b.done, ==, 1);
	g_assert_cmpuint(c.done, ==, 0);
	opened("a", 5, 5);
	g_assert_cmpuint(c.done, ==, 1);
}

static bool
ask_parts(struct asker *a, const char *path, struct range_set want)
{
	*a = (struct asker){ .w = { .done = asker_done, .want = want } };
	return (warm_file(wm, path, &a->w));
}

/* Requests join only if they want the same parts. */
READ_TEST("/warm/same-parts", WINDOW, 0)
{
	const struct range_set none = { 0 }, a = { 1, { { 0, 4096 } } }, b = { 1, { { 0, 8192 } } },
			       ab = { 2, { { 0, 4096 }, { 0, 8192 } } };
	const struct range_set all[] = { none, a, b, ab };
	struct asker first[G_N_ELEMENTS(all)], second[G_N_ELEMENTS(all)];

	for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
		g_assert_false(ask_parts(&first[i], "/a", all[i]));
		g_assert_cmpuint(sim_count(io, IO_OPEN), ==, i + 1);
		g_assert_false(ask_parts(&second[i], "/a", all[i]));
		g_assert_cmpuint(sim_count(io, IO_OPEN), ==, i + 1);
		g_assert_cmpuint(counters.joined, ==, i + 1);
	}
	for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
		warm_cancel(&first[i].w);
		warm_cancel(&second[i].w);
	}
}

/* Nothing of it will be sent: it is opened, and closed by the thread. */
READ_TEST("/warm/no-bytes", 16 * WINDOW, 64 * WINDOW)
{
	struct asker a;

	g_assert_false(ask_parts(&a, "/a", (struct range_set){ 0 }));
	g_assert_cmpint(opening("a")->open.first->warm, ==, 0);
	g_assert_cmpuint(opening("a")->open.first->shut, ==, UINT64_MAX);
	opened("a", 100 * WINDOW, 0);
	g_assert_cmpuint(a.done, ==, 1);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 0);
	g_assert_cmpuint(counters.bytes_before + counters.bytes_behind, ==, 0);
}

/* The last page and two in the middle: three reads, nothing after them. */
READ_TEST("/warm/parts", 16 * WINDOW, 64 * WINDOW)
{
	struct asker a, b;

	g_assert_false(ask_parts(&a, "/a",
	    (struct range_set){ 3, { { RANGE_TAIL, 4096 }, { 8 * WINDOW - 4096, 8 * WINDOW + 4096 },
				       { 8192, 12288 } } }));
	opened("a", 100 * WINDOW, 0);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 4);
	finish_window(8192, 4096);
	finish_window(8 * WINDOW - 4096, 4096);
	finish_window(8 * WINDOW, 4096);
	g_assert_cmpuint(a.done, ==, 0);
	finish_window(100 * WINDOW - 4096, 4096);
	g_assert_cmpuint(a.done, ==, 1);
	g_assert_cmpuint(counters.bytes_before, ==, 4 * 4096);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 0);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 1);

	/* More than --warm: the rest after the answer, up to the end of the part. */
	g_assert_false(ask_parts(&b, "/b",
	    (struct range_set){ 2, { { WINDOW, 2 * WINDOW }, { 20 * WINDOW, 40 * WINDOW } } }));
	opened("b", 100 * WINDOW, 0);
	finish_window(WINDOW, IO_WINDOW);
	for (guint i = 20; i < 35; i++)
		finish_window(i * WINDOW, IO_WINDOW);
	/* --warm counts from the first byte, not from its page */
	finish_window(35 * WINDOW, 4096);
	g_assert_cmpuint(b.done, ==, 1);
	finish_window(35 * WINDOW + 4096, WINDOW - 4096);
	for (guint i = 36; i < 40; i++)
		finish_window(i * WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 0);
}

READ_TEST("/warm/window-fails", WARM_ALL, 0)
{
	struct asker a;

	g_assert_false(ask(&a, "/a"));
	opened("a", 20 * WINDOW, IO_WINDOW);
	finish_window(3 * WINDOW, -EIO);
	for (guint i = 1; i <= 8; i++) {
		if (i != 3)
			finish_window(i * WINDOW, IO_WINDOW);
	}
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 0);
	g_assert_cmpint(a.w.found.err, ==, -EIO);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 1);
	g_assert_false(ask(&a, "/a")); /* not for long, perhaps */
	opened("a", 20 * WINDOW, IO_WINDOW);
	for (guint i = 8; i >= 2; i--)
		finish_window(i * WINDOW, 0); /* the file was truncated */
	finish_window(1 * WINDOW, 10);
	g_assert_cmpint(a.w.found.err, ==, 0);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 0);
}

/* ---------------------------------------------------------------- after */

READ_TEST("/warm/behind", WINDOW, 2 * WINDOW)
{
	struct asker a;

	g_assert_false(ask(&a, "/a"));
	opened("a", 100 * WINDOW, IO_WINDOW);
	g_assert_cmpuint(a.done, ==, 1); /* before any of it */
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 2);
	g_assert_true(window_at(WINDOW)->spare);
	finish_window(WINDOW, -EAGAIN); /* threads are busy */
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 1);
	sim_advance_ms(io, 50);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 2); /* the other one is not read twice */
	finish_window(WINDOW, IO_WINDOW);
	g_assert_cmpuint(counters.bytes_behind, ==, WINDOW);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 0);
	finish_window(2 * WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 0);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 1);
}

/* Nothing of it before the answer. */
TEST("/warm/only-behind")
{
	const enum warm_how hows[] = { WARM_OPEN, WARM_READ };
	struct asker a;

	for (guint i = 0; i < G_N_ELEMENTS(hows); i++) {
		read_up(0, WINDOW);
		conf.how = hows[i];
		g_assert_false(ask(&a, "/a"));
		/* else the thread closes it */
		g_assert_cmpuint(opening("a")->open.first->shut, <=, 1);
		opened("a", 100 * WINDOW, 0);
		g_assert_cmpuint(a.done, ==, 1);
		finish_window(0, IO_WINDOW);
		g_assert_cmpuint(counters.bytes_behind, ==, WINDOW);
		g_assert_cmpuint(sim_closed(io, real_fd), ==, 1);
		down();
	}
}

static void
begin_many(guint n)
{
	struct asker a;
	char path[16];

	for (guint i = 0; i < n; i++) {
		g_snprintf(path, sizeof(path), "/%u", i);
		g_assert_false(ask(&a, path));
		opened(path + 1, 100 * WINDOW, IO_WINDOW);
		g_assert_cmpuint(a.done, ==, 1);
	}
}

/* At most FILES are open after their answers; accel.files.behind-skipped counts the others. */
TEST("/warm/behind-bounded")
{
	read_up(WINDOW, WARM_ALL);
	begin_many(66);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 8);
	g_assert_cmpuint(counters.behind_skipped, ==, 2);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 2);
	finish_window(WINDOW, -EIO);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 8);
	for (guint i = 2; i <= 8; i++)
		finish_window(i * WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 3);
	finish_window(WINDOW, 0); /* the next one is cut off */
	for (guint i = 2; i <= 8; i++)
		finish_window(i * WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 4);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 8);
	down(); /* the rest is dropped */
}

/* All of it is in memory: no thread reads. */
TEST("/warm/behind-in-memory")
{
	const size_t size = 2 * WINDOW;
	g_autofree char *bytes = g_malloc0(size);
	uint64_t from = 50 * WINDOW;
	struct asker a;

	g_assert_cmpint(pwrite(real_fd, bytes, size, (off_t)(from + WINDOW)), ==, size);
	if (io_pages_counted(real_fd, from + WINDOW, size) != 1) {
		g_test_skip("this kernel or file system does not count pages in memory");
		return;
	}
	read_up(WINDOW, WINDOW);
	g_assert_false(ask_from(&a, "/a", from));
	opened("a", 100 * WINDOW, 0);
	finish_window(from + WINDOW, 4096);
	finish_window(from, IO_WINDOW);
	g_assert_cmpuint(a.done, ==, 1);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 0);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 1);
	g_assert_cmpuint(counters.bytes_behind, ==, 0);
	down();
}

/* The kernel took pages while the last ones were read: they are read once more. */
TEST("/warm/lost-bytes")
{
	g_autofree char *bytes = g_malloc0(WINDOW);
	uint64_t last = 60 * WINDOW;
	struct asker a;

	g_assert_cmpint(pwrite(real_fd, bytes, WINDOW, (off_t)last), ==, WINDOW);
	if (io_pages_counted(real_fd, last, WINDOW) != 1) {
		g_test_skip("this kernel or file system does not count pages in memory");
		return;
	}
	read_up(3 * WINDOW, 0);
	g_assert_false(ask_from(&a, "/a", last - 2 * WINDOW));
	opened("a", 61 * WINDOW, 0);
	for (guint round = 0; round < 2; round++) {
		g_assert_cmpuint(a.done, ==, 0);
		finish_window(last - WINDOW, IO_WINDOW);
		finish_window(last - 2 * WINDOW, IO_WINDOW);
		if (round == 0)
			finish_window(last, IO_WINDOW);
	}
	g_assert_cmpuint(a.done, ==, 1);
	g_assert_cmpint(a.w.found.err, ==, 0);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 0);
	down();
}

/* The rest of a file is read in the background: the server that got "go on" will read it. */
READ_TEST("/warm/late-reading", WARM_ALL, 0)
{
	struct asker a;

	g_assert_false(ask(&a, "/a"));
	opened("a", 20 * WINDOW, IO_WINDOW);
	sim_advance_ms(io, 1020);
	g_assert_cmpint(a.w.found.err, ==, -ETIMEDOUT);
	for (guint i = 1; i <= 8; i++)
		finish_window(i * WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 8);
	g_assert_true(window_at(9 * WINDOW)->spare);
	g_assert_false(ask(&a, "/a")); /* it is not warm */
	warm_cancel(&a.w);
	opened("a", 20 * WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 8); /* a cancelled request needs no window */
	for (guint i = 9; i <= 19; i++)
		finish_window(i * WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 0);
	g_assert_false(ask(&a, "/b"));
	sim_advance_ms(io, 1020);
	opened("b", 20 * WINDOW, IO_WINDOW);
	/* late requests come when there is time */
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 8);
	g_assert_true(window_at(WINDOW)->spare);
}

/* Last: it removes the file. */
READ_TEST("/warm/behind-ends", WINDOW, WARM_ALL)
{
	struct asker a;

	g_assert_false(ask(&a, "/a"));
	opened("a", 100 * WINDOW, IO_WINDOW);
	g_assert_cmpint(g_unlink(real), ==, 0);
	for (guint i = 1; i <= 8; i++)
		finish_window(i * WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_count(io, SIM_WARM), ==, 0);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 1);
}

int
main(int argc, char **argv)
{
	int result;

	g_test_init(&argc, &argv, NULL);
	conf = (struct warm_conf){ .how = WARM_OPEN, .remember_ms = 1000, .deadline_ms = 1000 };
	real_fd = g_file_open_tmp("warm-XXXXXX", &real, NULL);
	g_assert_cmpint(real_fd, >=, 0);
	g_assert_cmpint(ftruncate(real_fd, 100 * WINDOW), ==, 0);
	result = tests_run();
	close(real_fd);
	g_free(real);
	return (result);
}
