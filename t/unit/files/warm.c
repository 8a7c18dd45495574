/* t/unit/files/warm.c -- requests of files in each order of events: joins, remembered answers,
 * deadlines, the log. */

#include "t/unit/files/warm_sim.h"

#include "base/log.h"

/* ---------------------------------------------------------------- joining, remembering */

UP_TEST("/warm/join")
{
	struct asker a, b, c;

	g_assert_false(ask(&a, "/a"));
	g_assert_false(ask(&b, "/a"));
	g_assert_false(ask(&c, "/c"));
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 2);
	g_assert_cmpuint(counters.joined, ==, 1);
	g_assert_cmpuint(stages.waiting, ==, 3);
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
	g_assert_cmpuint(counters.cold, ==, 2);
	g_assert_cmpuint(stages.waiting, ==, 0);
	g_assert_cmpuint(sim_closed(io, FD), ==, 1);
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

TEST("/warm/remember")
{
	struct asker a;

	up();
	check_remembered("/file", FD, 0, true);
	check_remembered("/none", -ENOENT, -ENOENT, true);
	check_remembered("/bad", -EIO, -EIO, false);
	check_remembered("/full", -EAGAIN, -EAGAIN, false);
	g_assert_cmpuint(counters.remembered, ==, 2);
	sim_advance_ms(io, 999);
	g_assert_true(ask(&a, "/none"));
	sim_advance_ms(io, 1);
	g_assert_false(ask(&a, "/none"));
	finish("none", FD);
	g_assert_cmpint(a.w.found.err, ==, 0); /* it is there now */
	down();
	conf.remember_ms = 0;
	up();
	check_remembered("/file", FD, 0, false);
	check_remembered("/none", -ENOENT, -ENOENT, false);
	down();
}

static void
check_absent(const char *format, guint i, bool remembered)
{
	g_autofree char *path = g_strdup_printf(format, i);
	struct asker a;

	g_assert_cmpint(ask(&a, path), ==, remembered);
	if (!remembered)
		finish(path + 1, -ENOENT);
}

/* n answers about names like this: the latest is known, the first had to go. */
static void
check_bounded(const char *format, guint n)
{
	up();
	for (guint i = 0; i < n; i++)
		check_absent(format, i, false);
	check_absent(format, n - 1, true);
	check_absent(format, 0, false);
	down();
}

TEST("/warm/bounded")
{
	g_autofree char *long_name = g_strnfill(60000, 'x'),
			*format = g_strdup_printf("/%s%%u", long_name);

	check_bounded("/n%u", 40000);
	check_bounded(format, 300); /* 16,384 of these would be a GiB */
}

static struct asker again, other;

static void
done_asks(struct warm_wait *w)
{
	g_assert_true(ask(&again, "/a"));
	g_assert_cmpint(again.w.found.err, ==, w->found.err);
	warm_cancel(&other.w);
}

TEST("/warm/asking-when-told")
{
	struct asker a;

	conf.remember_ms = 0;
	up();
	g_assert_false(ask(&a, "/a"));
	a.w.done = done_asks;
	g_assert_false(ask(&other, "/a"));
	finish("a", -EIO);
	g_assert_cmpuint(other.done, ==, 0); /* cancelled by the one before it */
	g_assert_cmpuint(stages.waiting, ==, 0);
	down();
}

UP_TEST("/warm/cancel")
{
	struct asker a, b;

	g_assert_false(ask(&a, "/a"));
	g_assert_false(ask(&b, "/a"));
	warm_cancel(&a.w);
	warm_cancel(&a.w);
	finish("a", FD);
	g_assert_cmpuint(a.done, ==, 0);
	g_assert_cmpuint(b.done, ==, 1);
	warm_cancel(&b.w);
	g_assert_false(ask(&a, "/b"));
	warm_cancel(&a.w); /* the look-up goes on for the next request */
	finish("b", FD);
	g_assert_true(ask(&b, "/b"));
}

/* ---------------------------------------------------------------- deadlines */

UP_TEST("/warm/deadline")
{
	struct asker a, b, c;

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
	g_assert_cmpuint(counters.late, ==, 2);
	g_assert_cmpuint(stages.waiting, ==, 0);
	g_assert_false(ask(&c, "/hangs")); /* still the same look-up: no second thread */
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1);
	finish("hangs", FD);
	g_assert_cmpint(c.w.found.err, ==, 0);
	g_assert_true(ask(&a, "/hangs"));
}

static void
late_asks(struct warm_wait *w)
{
	g_assert_cmpint(w->found.err, ==, -ETIMEDOUT);
	g_assert_false(ask(&again, "/a"));
}

/* Two requests are late at the same moment.  The first asks again before the answer to the
 * second. */
UP_TEST("/warm/asking-when-late")
{
	struct asker a, b;

	g_assert_false(ask(&a, "/a"));
	a.w.done = late_asks;
	g_assert_false(ask(&b, "/b"));
	sim_advance_ms(io, 1020);
	g_assert_cmpint(b.w.found.err, ==, -ETIMEDOUT);
	g_assert_cmpuint(again.done, ==, 0);
	sim_advance_ms(io, 1020);
	g_assert_cmpuint(again.done, ==, 1);
	g_assert_cmpuint(counters.late, ==, 3);
}

TEST("/warm/no-deadline")
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

TEST("/warm/end")
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
	g_assert_null(opening("e/index.html")); /* no request waits for it */
	g_assert_false(ask(&b, "/d"));
	sim_open(io, opening("d"), FD, 0, 1, S_IFDIR | 0755);
	sim_run(io);
	g_assert_nonnull(opening("d/index.html"));
	warm_cancel(&a.w);
	warm_cancel(&b.w);
	down(); /* with both on their way */
	g_assert_cmpuint(a.done + b.done, ==, 0);
}

/* ---------------------------------------------------------------- directories, siblings */

TEST("/warm/index-late")
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
	finish("d/index.html", -ENOENT); /* what was known is too old */
	finish("d/index.htm", FD + 2);   /* joins the one that goes on */
	g_assert_cmpint(b.w.found.err, ==, 0);
	g_assert_true(b.w.found.index == names[1]);
	g_assert_cmpuint(counters.joined, ==, 1);
	g_assert_cmpuint(sim_closed(io, FD) + sim_closed(io, FD + 1) + sim_closed(io, FD + 2), ==,
	    3);
	down();
}

TEST("/warm/siblings")
{
	static const char *const names[] = { ".gz", ".br", NULL };
	struct asker a;

	conf.siblings = names;
	up();
	g_assert_false(ask(&a, "/x.css"));
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 3); /* at the same time */
	finish("x.css", FD);
	finish("x.css.br", -ENOENT);
	g_assert_cmpuint(a.done, ==, 0);
	finish("x.css.gz", -EIO);
	g_assert_cmpuint(a.done, ==, 1);
	g_assert_cmpint(a.w.found.err, ==, 0);
	g_assert_true(ask(&a, "/x.css")); /* all three are known */
	g_assert_cmpuint(counters.cold, ==, 1);
	down();
}

static bool
ask_cached(struct asker *a)
{
	*a = (struct asker){
		.w = { .done = asker_done, .cached = true, .want = { 1, { { 0, UINT64_MAX } } } }
	};
	return (warm_file(wm, "/c", &a->w));
}

/* A cache may have the file a moment later, so the next request looks again. */
TEST("/warm/cached")
{
	static const char *const names[] = { ".gz", NULL };
	struct asker a, b;

	conf.siblings = names;
	up();
	g_assert_false(ask_cached(&a));
	g_assert_false(ask_cached(&b));
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1); /* joined; no siblings */
	finish("c", -ENOENT);
	g_assert_cmpint(a.w.found.err, ==, -ENOENT);
	g_assert_cmpuint(b.done, ==, 1);
	g_assert_false(ask_cached(&a));
	finish("c", FD);
	g_assert_cmpint(a.w.found.err, ==, 0);
	g_assert_true(ask_cached(&a));
	g_assert_cmpuint(counters.remembered, ==, 1);
	down();
}

/* "try_files $uri $uri.html" of nginx. */
TEST("/warm/sibling-of-nothing")
{
	static const char *const names[] = { ".html", NULL };
	struct asker a;

	conf.siblings = names;
	up();
	g_assert_false(ask(&a, "/page"));
	finish("page", -ENOENT);
	g_assert_cmpuint(a.done, ==, 0);
	finish("page.html", FD);
	g_assert_cmpuint(a.done, ==, 1);
	g_assert_cmpint(a.w.found.err, ==, -ENOENT);
	g_assert_cmpuint(sim_closed(io, FD), ==, 1);
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

TEST("/warm/slow-log")
{
	uint64_t suppressed = log_suppressed();
	struct asker a;

	logged = g_string_new("");
	log_set_sink(keep_line, NULL);
	log_suppressed_flush();
	g_string_truncate(logged, 0);
	conf.slow_ms = 100;
	up();
	look_up("/quick", 99, FD);
	g_assert_cmpstr(logged->str, ==, "");
	look_up("/one", 100, FD);
	look_up("/two", 100, -EIO); /* one line a second */
	g_assert_cmpuint(counters.slow, ==, 2);
	g_assert_cmpuint(log_suppressed() - suppressed + (strstr(logged->str, "path=/two") != NULL),
	    ==, 1);
	g_assert_nonnull(strstr(logged->str, "level=warn ev=file.slow path=/one stage="));
	g_assert_nonnull(strstr(logged->str, " ms=100"));
	g_assert_null(strstr(logged->str, "Success"));
	sim_advance_ms(io, 1000);
	log_suppressed_flush();
	g_string_truncate(logged, 0);
	g_assert_false(ask(&a, "/late"));
	sim_advance_ms(io, 1020);
	g_assert_nonnull(strstr(logged->str, "ev=file.slow path=/late stage=stat ms=10"));
	g_string_truncate(logged, 0);
	sim_advance_ms(io, 2000);
	finish("late", FD);
	g_assert_cmpstr(logged->str, ==, ""); /* that is known */
	g_assert_cmpuint(counters.slow, ==, 3);
	down();
	log_set_sink(NULL, NULL);
	g_string_free(logged, TRUE);
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	conf = (struct warm_conf){ .how = WARM_OPEN, .remember_ms = 1000, .deadline_ms = 1000 };
	return (tests_run());
}
