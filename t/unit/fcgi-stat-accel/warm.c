/* Who asks for files, and in which order things happen: joining, remembering, deadlines, windows, the log. */

#include "t/unit/fcgi-stat-accel/warm_test.h"

#include <string.h>
#include "base/log.h"
#include "io/loop/sim.h"

#define WINDOW ((uint64_t)IO_WINDOW)
#define FD 4711

static char *real;			/* a file, and how it is open */
static int real_fd;

/* Nothing can be known here: whatever is asked for needs a thread. */
int
statx(int at, const char *restrict path, int flags, unsigned mask, struct statx *restrict stx)
{
	long err = syscall(SYS_statx, at, path, flags, mask, stx);

	stx->stx_mask &= ~STATX_MNT_ID;
	return ((int)err);
}

static void
up(void)
{
	io = sim_new();
	warm_up();
}

static void
down(void)
{
	warm_free(&wm);
	g_assert_false(io_busy(io));
	io_free(io);
	conf = (struct warm_conf){ .how = WARM_OPEN, .remember_ms = 1000, .deadline_ms = 1000 };
}

static struct io_op *
opening(const char *tail)
{
	struct io_op *op;

	for (guint i = 0; (op = sim_nth(io, i)) != NULL; i++) {
		if (op->kind == IO_OPEN && strcmp(op->open.path, tail) == 0)
			return (op);
	}
	return (NULL);
}

static void
finish(const char *tail, int64_t res)
{
	struct io_op *op = opening(tail);

	g_assert_nonnull(op);
	if (res < 0)
		sim_finish(io, op, res);
	else
		sim_open(io, op, (int)res, 100, 1, S_IFREG | 0644);
	sim_run(io);
}

/* ---------------------------------------------------------------- joining, remembering */

static void
test_join(void)
{
	struct asker a, b, c;

	up();
	g_assert_false(ask(&a, "/a"));
	g_assert_false(ask(&b, "/a"));
	g_assert_false(ask(&c, "/c"));
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 2);
	g_assert_cmpuint(stats.joined, ==, 1);
	g_assert_cmpuint(stats.waiting, ==, 3);
	finish("c", -ENOENT);
	g_assert_cmpuint(a.done + b.done, ==, 0);
	g_assert_cmpint(c.w.found.err, ==, -ENOENT);
	finish("a", FD);
	g_assert_cmpuint(a.done, ==, 1);
	g_assert_cmpuint(b.done, ==, 1);
	g_assert_cmpuint(a.turn, <, b.turn);
	g_assert_cmpint(b.w.found.err, ==, 0);
	g_assert_false(b.w.found.hot);
	g_assert_cmpuint(b.w.found.stx.stx_size, ==, 100);
	g_assert_cmpuint(stats.cold, ==, 2);
	g_assert_cmpuint(stats.waiting, ==, 0);
	g_assert_cmpuint(sim_closed(io, FD), ==, 1);
	down();
}

static void
check_remembered(const char *path, int64_t res, int err, bool is)
{
	struct asker a;

	g_assert_false(ask(&a, path));
	finish(path + 1, res);
	g_assert_cmpuint(a.done, ==, 1);
	g_assert_cmpint(a.w.found.err, ==, err);
	g_assert_cmpint(ask(&a, path), ==, is);
	if (!is)
		finish(path + 1, res);
	g_assert_cmpint(a.w.found.err, ==, err);
	g_assert_cmpint(a.w.found.hot, ==, is);
}

static void
test_remember(void)
{
	struct asker a;

	up();
	check_remembered("/file", FD, 0, true);
	check_remembered("/none", -ENOENT, -ENOENT, true);
	check_remembered("/bad", -EIO, -EIO, false);
	check_remembered("/full", -EAGAIN, -EAGAIN, false);
	g_assert_cmpuint(stats.remembered, ==, 2);
	sim_advance_ms(io, 999);
	g_assert_true(ask(&a, "/none"));
	sim_advance_ms(io, 1);
	g_assert_false(ask(&a, "/none"));
	finish("none", FD);
	g_assert_cmpint(a.w.found.err, ==, 0);	/* it is there now */
	down();
	conf.remember_ms = 0;
	up();
	check_remembered("/file", FD, 0, false);
	check_remembered("/none", -ENOENT, -ENOENT, false);
	down();
}

static void
test_bounded(void)
{
	struct asker a;
	char path[32];

	up();
	for (guint i = 0; i <= 16384; i++) {
		g_snprintf(path, sizeof(path), "/n%u", i);
		g_assert_false(ask(&a, path));
		finish(path + 1, -ENOENT);
	}
	g_assert_true(ask(&a, "/n1"));
	g_assert_false(ask(&a, "/n0"));		/* the oldest had to go */
	finish("n0", -ENOENT);
	down();
}

static struct asker again, other;

static void
done_asks(struct warm_wait *w)
{
	g_assert_true(ask(&again, "/a"));
	g_assert_cmpint(again.w.found.err, ==, w->found.err);
	warm_cancel(&other.w);
}

static void
test_asking_when_told(void)
{
	struct asker a;

	conf.remember_ms = 0;
	up();
	g_assert_false(ask(&a, "/a"));
	a.w.done = done_asks;
	g_assert_false(ask(&other, "/a"));
	finish("a", -EIO);
	g_assert_cmpuint(other.done, ==, 0);	/* cancelled by the one before it */
	g_assert_cmpuint(stats.waiting, ==, 0);
	down();
}

static void
test_cancel(void)
{
	struct asker a, b;

	up();
	g_assert_false(ask(&a, "/a"));
	g_assert_false(ask(&b, "/a"));
	warm_cancel(&a.w);
	warm_cancel(&a.w);
	finish("a", FD);
	g_assert_cmpuint(a.done, ==, 0);
	g_assert_cmpuint(b.done, ==, 1);
	warm_cancel(&b.w);
	g_assert_false(ask(&a, "/b"));
	warm_cancel(&a.w);			/* the look-up goes on, for who asks next */
	finish("b", FD);
	g_assert_true(ask(&b, "/b"));
	down();
}

/* ---------------------------------------------------------------- deadlines */

static void
test_deadline(void)
{
	struct asker a, b, c;

	up();
	g_assert_false(ask(&a, "/hangs"));
	sim_advance_ms(io, 600);
	g_assert_false(ask(&b, "/hangs"));
	sim_advance_ms(io, 390);
	g_assert_cmpuint(a.done, ==, 0);
	sim_advance_ms(io, 30);
	g_assert_cmpuint(a.done, ==, 1);
	g_assert_cmpint(a.w.found.err, ==, -ETIMEDOUT);
	g_assert_cmpuint(b.done, ==, 0);
	sim_advance_ms(io, 600);
	g_assert_cmpint(b.w.found.err, ==, -ETIMEDOUT);
	g_assert_cmpuint(stats.late, ==, 2);
	g_assert_cmpuint(stats.waiting, ==, 0);
	g_assert_false(ask(&c, "/hangs"));	/* still the same look-up: no second thread */
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1);
	finish("hangs", FD);
	g_assert_cmpint(c.w.found.err, ==, 0);
	g_assert_true(ask(&a, "/hangs"));
	down();
}

static void
late_asks(struct warm_wait *w)
{
	g_assert_cmpint(w->found.err, ==, -ETIMEDOUT);
	g_assert_false(ask(&again, "/a"));
}

/* Two are late at the same moment, and the first asks again before the second is told. */
static void
test_asking_when_late(void)
{
	struct asker a, b;

	up();
	g_assert_false(ask(&a, "/a"));
	a.w.done = late_asks;
	g_assert_false(ask(&b, "/b"));
	sim_advance_ms(io, 1020);
	g_assert_cmpint(b.w.found.err, ==, -ETIMEDOUT);
	g_assert_cmpuint(again.done, ==, 0);
	sim_advance_ms(io, 1020);
	g_assert_cmpuint(again.done, ==, 1);
	g_assert_cmpuint(stats.late, ==, 3);
	down();
}

static void
test_no_deadline(void)
{
	struct asker a;

	conf.deadline_ms = 0;
	up();
	g_assert_false(ask(&a, "/a"));
	sim_advance_ms(io, 3600 * 1000);
	g_assert_cmpuint(a.done, ==, 0);
	finish("a", FD);
	g_assert_cmpuint(a.done, ==, 1);
	down();
}

static void
test_end(void)
{
	struct asker a, b;
	static const char *const names[] = { "index.html", NULL };

	conf.index = names;
	up();
	g_assert_false(ask(&a, "/a"));
	g_assert_false(ask(&b, "/e"));
	warm_cancel(&b.w);
	sim_open(io, opening("e"), FD + 1, 0, 1, S_IFDIR | 0755);
	sim_run(io);
	g_assert_null(opening("e/index.html"));	/* nobody wants to know */
	g_assert_false(ask(&b, "/d"));
	sim_open(io, opening("d"), FD, 0, 1, S_IFDIR | 0755);
	sim_run(io);
	g_assert_nonnull(opening("d/index.html"));
	warm_cancel(&a.w);
	warm_cancel(&b.w);
	down();					/* with both on their way */
	g_assert_cmpuint(a.done + b.done, ==, 0);
}

/* ---------------------------------------------------------------- directories, siblings */

static void
test_index_late(void)
{
	static const char *const names[] = { "index.html", "index.htm", NULL };
	struct asker a, b;

	conf.index = names;
	up();
	g_assert_false(ask(&a, "/d"));
	sim_open(io, opening("d"), FD, 0, 1, S_IFDIR | 0755);
	sim_run(io);
	finish("d/index.html", -ENOENT);
	g_assert_nonnull(opening("d/index.htm"));
	sim_advance_ms(io, 1020);
	g_assert_cmpint(a.w.found.err, ==, -ETIMEDOUT);
	g_assert_false(ask(&b, "/d"));
	sim_open(io, opening("d"), FD + 1, 0, 1, S_IFDIR | 0755);
	sim_run(io);
	finish("d/index.html", -ENOENT);	/* what was known is too old */
	finish("d/index.htm", FD + 2);		/* joins the one that goes on */
	g_assert_cmpint(b.w.found.err, ==, 0);
	g_assert_true(b.w.found.index == names[1]);
	g_assert_cmpuint(stats.joined, ==, 1);
	g_assert_cmpuint(sim_closed(io, FD) + sim_closed(io, FD + 1) + sim_closed(io, FD + 2), ==, 3);
	down();
}

static void
test_siblings(void)
{
	static const char *const names[] = { ".gz", ".br", NULL };
	struct asker a;

	conf.siblings = names;
	up();
	g_assert_false(ask(&a, "/x.css"));
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 3);	/* at the same time */
	finish("x.css", FD);
	finish("x.css.br", -ENOENT);
	g_assert_cmpuint(a.done, ==, 0);
	finish("x.css.gz", -EIO);
	g_assert_cmpuint(a.done, ==, 1);
	g_assert_cmpint(a.w.found.err, ==, 0);
	g_assert_true(ask(&a, "/x.css"));	/* all three are known */
	g_assert_cmpuint(stats.cold, ==, 1);
	down();
}

/* ---------------------------------------------------------------- windows */

static struct io_op *
window_at(uint64_t off)
{
	struct io_op *op;

	for (guint i = 0; (op = sim_nth(io, i)) != NULL; i++) {
		if (op->kind == IO_WARM && op->file.off == off)
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

/* As a thread would: so long, and so much of it read on the way. */
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

static void
test_windows(void)
{
	struct asker a;
	guint i;

	read_up(12 * WINDOW - 5, 0);
	g_assert_false(ask(&a, "/a"));
	opened("a", 100 * WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_count(io, IO_WARM), ==, 8);
	for (i = 8; i >= 1; i--)
		finish_window(i * WINDOW, IO_WINDOW);
	for (i = 9; i < 11; i++)
		finish_window(i * WINDOW, IO_WINDOW);
	g_assert_cmpuint(a.done, ==, 0);
	g_assert_cmpuint(window_at(11 * WINDOW)->file.len, ==, WINDOW - 5);
	finish_window(11 * WINDOW, IO_WINDOW - 5);
	g_assert_cmpuint(a.done, ==, 1);
	g_assert_cmpint(a.w.found.err, ==, 0);
	g_assert_cmpuint(stats.bytes_before, ==, 12 * WINDOW - 5);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 1);
	down();
}

static void
test_range(void)
{
	struct asker a, b, c;
	uint64_t from = 7 * WINDOW + 8192;

	read_up(2 * WINDOW, 0);
	g_assert_false(ask_from(&a, "/a", from + 10));
	g_assert_false(ask_from(&b, "/a", from));	/* the same page */
	g_assert_false(ask(&c, "/a"));			/* the start is another matter */
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
	down();
}

static void
test_window_fails(void)
{
	struct asker a;

	read_up(WARM_ALL, 0);
	g_assert_false(ask(&a, "/a"));
	opened("a", 20 * WINDOW, IO_WINDOW);
	finish_window(3 * WINDOW, -EIO);
	for (guint i = 1; i <= 8; i++) {
		if (i != 3)
			finish_window(i * WINDOW, IO_WINDOW);
	}
	g_assert_cmpuint(sim_count(io, IO_WARM), ==, 0);
	g_assert_cmpint(a.w.found.err, ==, -EIO);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 1);
	g_assert_false(ask(&a, "/a"));		/* not for long, perhaps */
	opened("a", 20 * WINDOW, IO_WINDOW);
	for (guint i = 8; i >= 2; i--)
		finish_window(i * WINDOW, 0);	/* somebody has cut it off */
	finish_window(1 * WINDOW, 10);
	g_assert_cmpint(a.w.found.err, ==, 0);
	g_assert_cmpuint(sim_count(io, IO_WARM), ==, 0);
	down();
}

/* ---------------------------------------------------------------- behind */

static void
test_behind(void)
{
	struct asker a;

	read_up(WINDOW, 2 * WINDOW);
	g_assert_false(ask(&a, "/a"));
	opened("a", 100 * WINDOW, IO_WINDOW);
	g_assert_cmpuint(a.done, ==, 1);	/* before any of it */
	g_assert_cmpuint(sim_count(io, IO_WARM), ==, 1);
	g_assert_true(window_at(WINDOW)->spare);
	finish_window(WINDOW, -EAGAIN);		/* threads are busy */
	g_assert_cmpuint(sim_count(io, IO_WARM), ==, 0);
	sim_advance_ms(io, 50);
	finish_window(WINDOW, IO_WINDOW);
	g_assert_cmpuint(stats.bytes_behind, ==, WINDOW);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 0);
	finish_window(2 * WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_count(io, IO_WARM), ==, 0);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 1);
	down();
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

static void
test_behind_bounded(void)
{
	read_up(WINDOW, WARM_ALL);
	begin_many(66);
	g_assert_cmpuint(sim_count(io, IO_WARM), ==, 4);
	g_assert_cmpuint(stats.behind_skipped, ==, 2);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 2);
	finish_window(WINDOW, 0);		/* cut off */
	finish_window(WINDOW, -EIO);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 4);
	g_assert_cmpuint(sim_count(io, IO_WARM), ==, 4);
	down();					/* the rest is dropped */
}

static void
test_behind_ends(void)
{
	struct asker a;

	read_up(WINDOW, WARM_ALL);
	g_assert_false(ask(&a, "/a"));
	opened("a", 100 * WINDOW, IO_WINDOW);
	g_assert_cmpint(g_unlink(real), ==, 0);
	finish_window(WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_count(io, IO_WARM), ==, 0);
	g_assert_cmpuint(sim_closed(io, real_fd), ==, 1);
	down();
}

/* What nobody has waited for is read on in the background: the server that was told to go on will want it. */
static void
test_late_reading(void)
{
	struct asker a;

	read_up(WARM_ALL, 0);
	g_assert_false(ask(&a, "/a"));
	opened("a", 20 * WINDOW, IO_WINDOW);
	sim_advance_ms(io, 1020);
	g_assert_cmpint(a.w.found.err, ==, -ETIMEDOUT);
	for (guint i = 1; i <= 8; i++)
		finish_window(i * WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_count(io, IO_WARM), ==, 1);
	g_assert_true(window_at(9 * WINDOW)->spare);
	g_assert_false(ask(&a, "/a"));		/* it is not warm, whatever was found */
	warm_cancel(&a.w);
	opened("a", 20 * WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_count(io, IO_WARM), ==, 1);	/* who is gone wants nothing */
	g_assert_false(ask(&a, "/b"));
	sim_advance_ms(io, 1020);
	opened("b", 20 * WINDOW, IO_WINDOW);
	g_assert_cmpuint(sim_count(io, IO_WARM), ==, 2);	/* who is late, when there is time */
	g_assert_true(window_at(WINDOW)->spare);
	down();
}

/* ---------------------------------------------------------------- the log */

static GString *logged;

static void
keep_line(void *arg, struct text line)
{
	g_string_append_len(logged, line.p, (gssize)line.n);
}

static void
look_up(const char *path, guint ms, int64_t res)
{
	struct asker a;

	g_assert_false(ask(&a, path));
	sim_advance_ms(io, ms);
	finish(path + 1, res);
}

static void
test_slow_log(void)
{
	struct asker a;

	logged = g_string_new("");
	log_set_sink(keep_line, NULL);
	conf.slow_ms = 100;
	up();
	look_up("/quick", 99, FD);
	g_assert_cmpstr(logged->str, ==, "");
	look_up("/one", 100, FD);
	look_up("/two", 100, -EIO);		/* one line a second */
	g_assert_cmpuint(stats.slow, ==, 2);
	g_assert_nonnull(strstr(logged->str, "level=warn ev=file.slow path=/one stage="));
	g_assert_nonnull(strstr(logged->str, " ms=100 "));
	g_assert_null(strstr(logged->str, "path=/two"));
	sim_advance_ms(io, 1000);
	g_string_truncate(logged, 0);
	g_assert_false(ask(&a, "/late"));
	sim_advance_ms(io, 1020);
	g_assert_nonnull(strstr(logged->str, "ev=file.slow path=/late stage=stat ms=10"));
	g_assert_nonnull(strstr(logged->str, "left-out=1"));
	g_string_truncate(logged, 0);
	sim_advance_ms(io, 2000);
	finish("late", FD);
	g_assert_cmpstr(logged->str, ==, "");	/* that is known */
	g_assert_cmpuint(stats.slow, ==, 3);
	down();
	log_set_sink(NULL, NULL);
	g_string_free(logged, TRUE);
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
	g_test_add_func("/warm/join", test_join);
	g_test_add_func("/warm/remember", test_remember);
	g_test_add_func("/warm/bounded", test_bounded);
	g_test_add_func("/warm/asking-when-told", test_asking_when_told);
	g_test_add_func("/warm/cancel", test_cancel);
	g_test_add_func("/warm/deadline", test_deadline);
	g_test_add_func("/warm/asking-when-late", test_asking_when_late);
	g_test_add_func("/warm/no-deadline", test_no_deadline);
	g_test_add_func("/warm/end", test_end);
	g_test_add_func("/warm/index-late", test_index_late);
	g_test_add_func("/warm/siblings", test_siblings);
	g_test_add_func("/warm/windows", test_windows);
	g_test_add_func("/warm/range", test_range);
	g_test_add_func("/warm/window-fails", test_window_fails);
	g_test_add_func("/warm/behind", test_behind);
	g_test_add_func("/warm/behind-bounded", test_behind_bounded);
	g_test_add_func("/warm/late-reading", test_late_reading);
	g_test_add_func("/warm/slow-log", test_slow_log);
	g_test_add_func("/warm/behind-ends", test_behind_ends);	/* last: removes the file */
	result = g_test_run();
	close(real_fd);
	g_free(real);
	return (result);
}
