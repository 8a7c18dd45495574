/* t/unit/fcgi-stat-accel/advice.c -- sequences of answers, and what is said about them: each cause,
 * each threshold from both sides, few requests, and an end. */
#include "fcgi-stat-accel/advice_show.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "t/unit/test.h"

#define WINDOW NS_PER_S

static struct advice a;
static uint64_t now;
static unsigned lines;
static GString *said; /* "+absent -absent " */

static void
say(const struct advice *from, enum advice_id id)
{
	g_string_append_printf(said, "%c%s ", from->state[id].on ? '+' : '-', advice_infos[id].id);
	lines++;
}

static void
up(void)
{
	a = (struct advice){ .window_ns = WINDOW, .say = say };
	now = 5 * NS_PER_S;
	lines = 0;
	said = g_string_new(NULL);
}

static void
down(void)
{
	g_string_free(said, TRUE);
}

static void
check_said(const char *want)
{
	g_assert_cmpstr(said->str, ==, want);
	g_string_truncate(said, 0);
}

static void
answer_path(const char *path, int err, uint64_t waited_ns)
{
	const struct advice_answer one = { .path = text_of(path),
		.unnamed = path[0] != '/',
		.err = err,
		.waited_ns = waited_ns };

	advice_answered(&a, &one, now);
}

/* Names differ. */
static void
answers(unsigned n, const char *dir, int err, uint64_t waited_ns)
{
	char path[64];

	for (unsigned i = 0; i < n; i++) {
		g_snprintf(path, sizeof(path), "%s/%u", dir, i);
		answer_path(path, err, waited_ns);
	}
}

/* A window: the last answer comes when its time is over. */
static void
window(unsigned bad, int err, unsigned good)
{
	answers(bad, "/bad", err, 0);
	answers(good - 1, "/good", 0, 0);
	now += WINDOW;
	answers(1, "/last", 0, 0);
}

/* ---------------------------------------------------------------- causes */

static void
check_cause(int err, const char *dir, const char *id)
{
	g_autofree char *want = g_strdup_printf("+%s ", id);

	up();
	answers(99, dir, err, 0);
	now += WINDOW;
	check_said("");
	answers(1, dir, err, 0);
	check_said(want);
	down();
}

TEST("/advice/causes")
{
	check_cause(-ENOENT, "/srv", "absent");
	check_cause(-ENOTDIR, "/srv", "absent");
	check_cause(-ENAMETOOLONG, "/srv", "absent");
	check_cause(-EXDEV, "/srv", "outside-roots");
	check_cause(-EISDIR, "/srv", "directories");
	check_cause(-EACCES, "/srv", "denied");
	check_cause(-EPERM, "/srv", "denied");
	check_cause(-EPERM, "srv", "no-path");
	check_cause(-ETIMEDOUT, "/srv", "failing");
	check_cause(-EAGAIN, "/srv", "failing");
	check_cause(-EIO, "/srv", "failing");
	up();
	for (int i = 0; i < 101; i++, now += WINDOW)
		answer_path("", -E2BIG, 0);
	check_said("+no-path ");
	down();
}

UP_TEST("/advice/threshold")
{
	window(899, -ENOENT, 101);
	check_said("");
	window(900, -ENOENT, 100);
	check_said("+absent ");
	g_assert_cmpuint(a.state[ADVICE_absent].percent, ==, 90);
	g_assert_cmpuint(a.state[ADVICE_absent].answers, ==, 1000);
	g_assert_cmpstr(a.state[ADVICE_absent].example.text, ==, "/bad/0");
	window(750, -ENOENT, 250);
	check_said("");
	g_assert_true(a.state[ADVICE_absent].on);
	window(749, -ENOENT, 251);
	check_said("-absent ");
	g_assert_false(a.state[ADVICE_absent].on);
}

/* Two causes make the accelerator as useless as one: the larger is named with its share. */
TEST("/advice/mix")
{
	up();
	answers(40, "/bad", -EXDEV, 0);
	window(50, -ENOENT, 10);
	check_said("+absent ");
	g_assert_cmpuint(a.state[ADVICE_absent].percent, ==, 50);
	answers(50, "/bad", -EXDEV, 0);
	window(40, -ENOENT, 10);
	check_said("+outside-roots -absent ");
	answers(44, "/bad", -EXDEV, 0);
	window(44, -ENOENT, 12);
	g_assert_true(a.state[ADVICE_outside].on);
	down();
	up();
	answers(44, "/bad", -EXDEV, 0);
	window(45, -ENOENT, 11);
	check_said("");
	down();
}

TEST("/advice/few-requests")
{
	up();
	for (int i = 0; i < 99; i++, now += 100 * WINDOW)
		answers(1, "/bad", -ENOENT, 0);
	check_said("");
	down();
	up();
	answers(100000, "/bad", -ENOENT, 0); /* many, in no time */
	check_said("");
	now += WINDOW - 1;
	answers(1, "/bad", -ENOENT, 0);
	check_said("");
	now++;
	answers(1, "/bad", -ENOENT, 0);
	check_said("+absent ");
	down();
}

UP_TEST("/advice/off")
{
	a.window_ns = 0;
	for (int i = 0; i < 1000; i++, now += WINDOW) {
		answers(1, "/bad", -ENOENT, 0);
		advice_connected(&a, false, now);
	}
	check_said("");
}

/* ---------------------------------------------------------------- the log */

UP_TEST("/advice/again-after-an-hour")
{
	window(999, -ENOENT, 1);
	window(0, 0, 1000);
	check_said("+absent -absent ");
	window(999, -ENOENT, 1);
	g_assert_true(a.state[ADVICE_absent].on); /* shown, not logged */
	window(0, 0, 1000);
	g_assert_false(a.state[ADVICE_absent].on);
	check_said("");
	now += ADVICE_AGAIN_NS;
	window(999, -ENOENT, 1);
	check_said("+absent ");
	window(999, -EXDEV, 1);
	check_said("+outside-roots -absent ");
}

/* ---------------------------------------------------------------- one name */

static void
equal_window(unsigned same, int err, unsigned others)
{
	answers(others, "/other", err, 0);
	for (unsigned i = 0; i + 1 < same; i++)
		answer_path("/srv/www/stat-accel", err, 0);
	now += WINDOW;
	answer_path("/srv/www/stat-accel", err, 0);
}

UP_TEST("/advice/equal-and-absent")
{
	equal_window(979, -ENOENT, 21);
	check_said("+absent ");
	equal_window(1000, -ENOENT, 0);
	check_said("+equal-names -absent ");
	g_assert_cmpuint(a.state[ADVICE_equal].percent, ==, 100);
	g_assert_cmpuint(a.state[ADVICE_equal].example.n, ==, strlen("/srv/www/stat-accel"));
	window(0, 0, 1000);
	check_said("-equal-names ");
}

UP_TEST("/advice/equal-threshold")
{
	equal_window(978, -ENOENT, 22);
	check_said("+absent ");
	equal_window(980, -ENOENT, 20);
	check_said("+equal-names -absent ");
	equal_window(900, -ENOENT, 100);
	check_said("");
	equal_window(898, -ENOENT, 102);
	check_said("-equal-names ");
	g_assert_true(a.state[ADVICE_absent].on);
}

/* A benchmark of one file is usual. */
UP_TEST("/advice/equal-and-present")
{
	for (unsigned i = 0; i + 1 < ADVICE_LONG; i++)
		equal_window(100, 0, 0);
	check_said("");
	equal_window(100, 0, 0);
	check_said("+equal-names ");
}

UP_TEST("/advice/one-favourite-says-nothing")
{
	for (unsigned i = 0; i < 2 * ADVICE_LONG; i++) {
		answers(30, "/other", 0, 5 * NS_PER_MS);
		equal_window(970, 0, 0);
	}
	check_said("");
}

/* A cache begins with misses only. */
UP_TEST("/advice/misses")
{
	for (unsigned i = 0; i < 100 * ADVICE_LONG - 1; i++) {
		char key[16];

		g_snprintf(key, sizeof(key), "/c/%u", i);
		now += WINDOW / 50;
		advice_answered(&a,
		    &(struct advice_answer){ .path = text_of(key),
			.cached = true,
			.err = i % 100 == 0 ? 0 : -ENOENT },
		    now);
	}
	check_said("");
	advice_answered(&a,
	    &(struct advice_answer){ .path = TEXT("/c/x"), .cached = true, .err = -ENOENT }, now);
	check_said("+cache-misses ");
	window(0, 0, 1000);
	check_said("-cache-misses ");
}

/* ---------------------------------------------------------------- all warm */

static void
warm_windows(unsigned n, unsigned cold, uint64_t waited_ns)
{
	while (n-- > 0) {
		answers(cold, "/cold", 0, waited_ns);
		window(0, 0, 1000 - cold);
	}
}

UP_TEST("/advice/warm")
{
	warm_windows(ADVICE_LONG - 1, 0, 0);
	check_said("");
	warm_windows(1, 0, 0);
	check_said("+warm-or-late ");
	g_assert_cmpuint(a.state[ADVICE_unclear].answers, ==, 1000 * ADVICE_LONG);
	warm_windows(1, 1, NS_PER_MS);
	check_said("");
	warm_windows(1, 2, NS_PER_MS);
	check_said("-warm-or-late ");
}

/* Threads that wait for a processor on a busy machine: no disk, and no end of the row. */
UP_TEST("/advice/busy-machine")
{
	const struct advice_answer late = { .path = TEXT("/late"),
		.waited_ns = 50 * NS_PER_MS,
		.awake = true };

	for (unsigned i = 0; i < ADVICE_LONG; i++) {
		for (unsigned n = 0; n < 20; n++)
			advice_answered(&a, &late, now);
		window(0, 0, 1000);
	}
	check_said("+warm-or-late ");
	g_assert_cmpuint(a.state[ADVICE_unclear].waited_ns, ==, 0);
}

TEST("/advice/not-warm-enough")
{
	up();
	warm_windows(ADVICE_LONG - 1, 0, 0);
	warm_windows(1, 2, NS_PER_MS); /* begins anew */
	warm_windows(ADVICE_LONG - 1, 0, 0);
	check_said("");
	down();
	up(); /* few wait, and longer than all questions cost */
	warm_windows(2 * ADVICE_LONG, 1, 1000 * ADVICE_ASK_NS);
	check_said("");
	down();
	up(); /* a fast disk: each one waits a little, and that is more than it costs */
	warm_windows(2 * ADVICE_LONG, 500, 2 * ADVICE_ASK_NS);
	check_said("");
	down();
}

/* ---------------------------------------------------------------- proof of the order */

static char dropped[ADVICE_NAME_MAX + 1];
static unsigned drops;

static bool
drop(struct advice *for_a, const char *path)
{
	g_assert_true(for_a == &a);
	g_strlcpy(dropped, path, sizeof(dropped));
	drops++;
	return (true);
}

static bool
cannot_drop(struct advice *for_a, const char *path)
{
	drops++;
	return (false);
}

static void
up_to_drop(bool (*how)(struct advice *, const char *))
{
	up();
	a.forget = how;
	drops = 0;
	warm_windows(ADVICE_LONG - 1, 0, 0);
	g_assert_cmpuint(drops, ==, 0);
	warm_windows(1, 0, 0);
	g_assert_cmpuint(drops, ==, 1);
	check_said("");
}

static void
ask_dropped(bool fresh, uint64_t waited_ns)
{
	advice_answered(&a,
	    &(struct advice_answer){ .path = text_of(dropped),
		.fresh = fresh,
		.waited_ns = waited_ns },
	    now);
}

TEST("/advice/asked-in-time")
{
	up_to_drop(drop);
	g_assert_cmpstr(dropped, ==, "/good/0");
	ask_dropped(true, NS_PER_S); /* not dropped yet */
	advice_forgotten(&a, true);
	ask_dropped(false, 0); /* remembered */
	g_assert_cmpuint(a.probe.warm + a.probe.cold, ==, 0);
	ask_dropped(true, NS_PER_S);
	g_assert_cmpuint(a.probe.cold, ==, 1);
	down();
	up_to_drop(drop);
	advice_forgotten(&a, true);
	/* does not make the window cold: the accelerator itself dropped the file */
	ask_dropped(true, NS_PER_S);
	warm_windows(1, 0, 0);
	check_said("+always-warm ");
	warm_windows(3, 0, 0);
	g_assert_cmpuint(drops, ==, 1);
	warm_windows(1, 2, NS_PER_MS);
	check_said("-always-warm ");
	down();
}

TEST("/advice/asked-late")
{
	up_to_drop(drop);
	for (unsigned i = 1; i <= ADVICE_PROBES; i++) {
		g_assert_cmpuint(drops, ==, i);
		check_said("");
		advice_forgotten(&a, true);
		ask_dropped(true, 0);
		warm_windows(1, 0, 0);
	}
	check_said("+asked-late ");
	g_assert_cmpuint(drops, ==, ADVICE_PROBES);
	down();
}

/* One cold answer is a proof; warm ones may have another cause. */
TEST("/advice/asked-in-time-beside-a-backup")
{
	up_to_drop(drop);
	for (unsigned i = 1; i <= ADVICE_PROBES; i++) {
		advice_forgotten(&a, true);
		ask_dropped(true, i == ADVICE_PROBES ? 1 : 0);
		warm_windows(1, 0, 0);
	}
	check_said("+always-warm ");
	down();
}

static void
check_not_proved(bool (*how)(struct advice *, const char *), bool ends)
{
	up_to_drop(how);
	for (unsigned i = 1; i < ADVICE_PROBE_WINDOWS; i++) {
		if (ends)
			advice_forgotten(&a, false);
		warm_windows(1, 0, 0);
		check_said("");
	}
	warm_windows(1, 0, 0);
	check_said("+warm-or-late ");
	g_assert_cmpuint(drops, <=, ADVICE_PROBE_WINDOWS);
	down();
}

TEST("/advice/not-proved")
{
	check_not_proved(cannot_drop, false);
	check_not_proved(drop, false); /* its end never comes */
	g_assert_cmpuint(drops, ==, 1);
	check_not_proved(drop, true); /* the kernel keeps them */
	g_assert_cmpuint(drops, ==, ADVICE_PROBE_WINDOWS);
}

/* ---------------------------------------------------------------- connections */

static void
conns(unsigned refused, unsigned welcome)
{
	for (unsigned i = 0; i < refused + welcome; i++) {
		now += i + 1 == refused + welcome ? WINDOW : 0;
		advice_connected(&a, i >= refused, now);
	}
}

UP_TEST("/advice/peers")
{
	conns(19, 0);
	check_said("");
	conns(1, 0);
	check_said("+peers-refused ");
	conns(75, 25);
	check_said("");
	conns(74, 26);
	check_said("-peers-refused ");
	conns(89, 11);
	check_said("");
}

/* ---------------------------------------------------------------- pages */

static char line[LOG_LINE_MAX + 1];

static void
take_line(void *arg, struct text t)
{
	memcpy(line, t.p, t.n);
	line[t.n] = '\0';
	lines++;
}

static char *
all_pages(void)
{
	struct buf out;
	char *text;

	buf_init(&out, 0);
	advice_text(&out, &a);
	advice_json(&out, &a);
	advice_metrics(&(struct prom){ &out, "x" }, &a);
	text = g_strndup(out.p, out.n);
	buf_free(&out);
	return (text);
}

UP_TEST("/advice/hostile-name")
{
	char name[1000] = "/a\"\r\nev=x \x1b[2J\\";
	char *page;

	a.say = advice_log;
	log_set_sink(take_line, NULL);
	memset(name + strlen(name), 'A', sizeof(name) - strlen(name) - 1);
	for (int i = 0; i < 101; i++, now += WINDOW)
		answer_path(name, -ENOENT, 0);
	log_set_sink(NULL, NULL);
	g_assert_cmpuint(lines, ==, 1);
	g_assert_nonnull(strstr(line, "ev=advice.begins id=equal-names percent=100 of=100 "));
	g_assert_nonnull(strstr(line, "example=\"/a\\x22\\x0d\\x0aev=x \\x1b[2J\\x5cAAA"));
	g_assert_cmpuint(strlen(line), <, 1200);
	g_assert_cmpuint(strcspn(line, "\r\n"), ==, strlen(line) - 1);
	page = all_pages();
	g_assert_null(strpbrk(page, "\r\x1b"));
	g_assert_null(strstr(page, "\nev=x"));
	g_assert_null(strstr(page, "AAAA\" ")); /* it was cut */
	g_assert_nonnull(strstr(page, "AAAA...\""));
	g_assert_nonnull(strstr(page, "\"id\":\"equal-names\",\"percent\":100,"));
	g_assert_nonnull(strstr(page, "x_advice{id=\"equal-names\"} 1\n"));
	g_assert_nonnull(strstr(page, "x_advice{id=\"absent\"} 0\n"));
	g_free(page);
}

UP_TEST("/advice/nothing-to-say")
{
	char *page;

	window(10, -ENOENT, 990);
	page = all_pages();
	g_assert_true(g_str_has_prefix(page, "accel.advice: none\n\"advice\":[]#"));
	g_assert_null(strstr(page, "} 1"));
	g_free(page);
}
