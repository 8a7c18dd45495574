/* t/unit/base/log.c -- the form of a log line; must() and lists. */
#include <errno.h>
#include <pthread.h>
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "t/unit/test.h"

#define THREADS 4
#define EACH    500

static void
keep_line(void *arg, struct text line)
{
	g_string_append_len(arg, line.p, (gssize)line.n);
}

/* After "ts=SECONDS.MICROS ", whose form is checked here. */
static const char *
behind_stamp(const char *line)
{
	const char *rest = strchr(line, ' ');

	g_assert_nonnull(rest);
	g_assert_true(g_regex_match_simple("^ts=[0-9]{10,}\\.[0-9]{6} ", line, 0, 0));
	return (rest + 1);
}

TEST("/log/line")
{
	g_autoptr(GString) got = g_string_new("");

	log_set_sink(keep_line, got);
	errno = EIO;
	log_event(LOG_WARN, "c17.3", "exchange.failed", LF_STR("backend", "unix:/run/a.sock"),
	    LF_ERR("error", -EPIPE), LF_U64("n", UINT64_MAX), LF_I64("i", INT64_MIN),
	    LF_STR("e", ""), LF_STR("none", NULL),
	    LF_TEXT("t", TEXT("a \"b\"\\\r\n\0\x7f\xc3\xa4=")));
	g_assert_cmpint(errno, ==, EIO);
	g_assert_cmpstr(behind_stamp(got->str), ==,
	    "level=warn ev=exchange.failed id=c17.3 backend=unix:/run/a.sock error=\"Broken pipe\" "
	    "n=18446744073709551615 i=-9223372036854775808 e=\"\" none=\"\" "
	    "t=\"a \\x22b\\x22\\x5c\\x0d\\x0a\\x00\\x7f\xc3\xa4=\"\n");
	g_string_truncate(got, 0);
	log_event(LOG_INFO, "c17.3/a=b/c", "named", LF_STR("a", "b"));
	g_assert_cmpstr(behind_stamp(got->str), ==, "level=info ev=named id=\"c17.3/a=b/c\" a=b\n");
	g_string_truncate(got, 0);
	log_event(LOG_INFO, NULL, "started");
	g_assert_cmpstr(behind_stamp(got->str), ==, "level=info ev=started\n");
	g_string_truncate(got, 0);
	log_raw(TEXT("as it is\n"));
	g_assert_cmpstr(got->str, ==, "as it is\n");
	log_set_sink(NULL, NULL);
}

/* Around the bound: a line is whole, or is cut with "..." and still one line. */
TEST("/log/long")
{
	g_autoptr(GString) got = g_string_new("");
	g_autofree char *value = NULL;
	size_t n, cut = 0;

	log_set_sink(keep_line, got);
	for (n = 3900; n < 4200; n++) {
		g_free(value);
		value = g_strnfill(n, n % 2 == 0 ? 'x' : '\n');
		g_string_truncate(got, 0);
		log_event(LOG_INFO, NULL, "long", LF_STR("v", value), LF_STR("w", "1"));
		g_assert_cmpuint(got->len, <=, LOG_LINE_MAX);
		g_assert_true(strchr(got->str, '\n') == got->str + got->len - 1);
		if (g_str_has_suffix(got->str, "...\n"))
			cut++;
		else
			g_assert_true(g_str_has_suffix(got->str, " w=1\n"));
	}
	g_assert_cmpuint(cut, >, 100);
	g_assert_cmpuint(cut, <, 300);
	log_set_sink(NULL, NULL);
}

/* ---------------------------------------------------------------- JSON */

TEST("/log/json")
{
	g_autoptr(GString) got = g_string_new("");
	const char *rest;

	log_set_sink(keep_line, got);
	log_set_json(true);
	log_event(LOG_WARN, "c17.3", "exchange.failed", LF_ERR("error", -EPIPE),
	    LF_U64("n", UINT64_MAX), LF_I64("i", INT64_MIN), LF_STR("none", NULL),
	    LF_TEXT("t", TEXT("a \"b\"\\\r\n\0\x7f\xc3\xa4=\x80\xe2\x80\xae")));
	g_assert_true(g_regex_match_simple("^{\"ts\":[0-9]{10,}\\.[0-9]{6},", got->str, 0, 0));
	rest = strchr(got->str, ',');
	g_assert_cmpstr(rest, ==,
	    ",\"level\":\"warn\",\"ev\":\"exchange.failed\",\"id\":\"c17.3\","
	    "\"error\":\"Broken pipe\",\"n\":18446744073709551615,"
	    "\"i\":-9223372036854775808,\"none\":\"\","
	    "\"t\":\"a \\\"b\\\"\\\\\\r\\n\\u0000\\u007f\xc3\xa4=\xef\xbf\xbd\\u202e\"}\n");
	g_string_truncate(got, 0);
	log_event(LOG_INFO, "c17.3/a/b", "named", LF_STR("a", "b"));
	g_assert_true(g_str_has_suffix(got->str,
	    ",\"ev\":\"named\",\"id\":\"c17.3\",\"request\":\"a/b\",\"a\":\"b\"}\n"));
	g_string_truncate(got, 0);
	log_event(LOG_INFO, NULL, "started",
	    LF_ERR("error", 0)); /* without an error, no "Success" */
	g_assert_true(g_str_has_suffix(got->str, ",\"level\":\"info\",\"ev\":\"started\"}\n"));
	log_set_json(false);
	g_string_truncate(got, 0);
	log_event(LOG_INFO, NULL, "started", LF_ERR("error", 0), LF_ERR("other", -EPERM));
	g_assert_true(g_str_has_suffix(got->str,
	    " level=info ev=started other=\"Operation not permitted\"\n"));
	log_set_json(false);
	log_set_sink(NULL, NULL);
}

/* Each length around the bound, for bytes that become one, two, three or six: the line is whole, or
 * ends in a whole object that says so. */
TEST("/log/json-long")
{
	static const char *const bytes[] = { "x", "\"", "\n", "\x80", "\x01", "\xc3\xa4",
		"\xf0\x9f\x98\x80", "\xe2\x80\xae" };
	GString *got = g_string_new(""), *value = g_string_new("");
	size_t i, n, whole = 0, cut = 0, left_out = 0;

	log_set_sink(keep_line, got);
	log_set_json(true);
	for (i = 0; i < G_N_ELEMENTS(bytes); i++)
		for (n = 0; n < 4200; n += n < 600 || n > 3900 ? 1 : 37) {
			g_string_set_size(value, 0);
			while (value->len < n)
				g_string_append(value, bytes[i]);
			g_string_truncate(got, 0);
			log_event(LOG_INFO, NULL, "long", LF_STR("v", value->str), LF_U64("w", 1));
			g_assert_cmpuint(got->len, <=, LOG_LINE_MAX);
			g_assert_true(g_utf8_validate(got->str, (gssize)got->len, NULL));
			if (g_str_has_suffix(got->str, "\",\"w\":1}\n"))
				whole++;
			else if (g_str_has_suffix(got->str, "...\",\"cut\":true}\n"))
				cut++;
			else if (g_str_has_suffix(got->str, "\",\"cut\":true}\n"))
				left_out++; /* only the number */
			else
				g_error("%s", got->str);
			if (!strstr(got->str, "\"w\":"))
				g_assert_cmpuint(got->len, >, LOG_LINE_MAX - 40);
		}
	g_assert_cmpuint(whole, >, 1000);
	g_assert_cmpuint(cut, >, 1000);
	g_assert_cmpuint(left_out, >, 0);
	log_set_json(false);
	log_set_sink(NULL, NULL);
	g_string_free(got, TRUE);
	g_string_free(value, TRUE);
}

/* A field that a client filled cannot pretend to be the level. */
TEST("/log/level")
{
	static const enum log_level levels[] = { LOG_INFO, LOG_WARN, LOG_ERROR, LOG_ALERT };
	g_autoptr(GString) got = g_string_new("");
	int json;
	size_t i;

	log_set_sink(keep_line, got);
	for (json = 0; json < 2; json++)
		for (i = 0; i < G_N_ELEMENTS(levels); i++) {
			log_set_json(json != 0);
			g_string_truncate(got, 0);
			log_event(levels[i], NULL, "x", LF_STR("v", " level=alert "));
			g_assert_cmpint(log_level_of((struct text){ got->str, got->len }), ==,
			    levels[i]);
		}
	g_assert_cmpint(log_level_of(TEXT("network_writev.c.7: (trace) write-start: 1.2")), ==,
	    LOG_INFO);
	g_assert_cmpint(log_level_of(TEXT("")), ==, LOG_INFO);
	g_assert_cmpint(log_level_of(TEXT("ts=1.1 level=")), ==, LOG_INFO);
	log_set_json(false);
	log_set_sink(NULL, NULL);
}

/* Warnings and worse of this thread, as text in either form. */
TEST("/log/overhear")
{
	g_autoptr(GString) got = g_string_new("");
	struct buf said, other;

	buf_init(&said, 0);
	buf_init(&other, 0);
	log_set_sink(keep_line, got);
	log_set_json(true);
	g_assert_null(log_overhear(&said));
	log_event(LOG_INFO, NULL, "quiet");
	log_event(LOG_WARN, "c1", "loud", LF_STR("why", "a b"));
	g_assert_true(log_overhear(&other) == &said);
	g_assert_true(log_overhear(NULL) == &other);
	log_event(LOG_ERROR, NULL, "later");
	g_assert_cmpmem(said.p, said.n, "loud id=c1 why=\"a b\"\n", 21);
	g_assert_cmpuint(other.n, ==, 0);
	log_set_json(false);
	log_set_sink(NULL, NULL);
	buf_free(&said);
}

static void
count_line(void *arg, struct text line)
{
	__atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
}

static void *
log_often(void *arg)
{
	int i;

	for (i = 0; i < EACH; i++)
		log_event(LOG_INFO, "c1", "tick", LF_U64("i", i));
	return (NULL);
}

TEST("/log/threads")
{
	pthread_t t[THREADS];
	int lines = 0, i;

	log_set_sink(count_line, &lines);
	for (i = 0; i < THREADS; i++)
		g_assert_cmpint(pthread_create(&t[i], NULL, log_often, NULL), ==, 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	log_set_sink(NULL, NULL);
	g_assert_cmpint(lines, ==, THREADS * EACH);
}

static unsigned
lines_of(const char *all, const char *part)
{
	unsigned n = 0;

	for (; (all = strstr(all, part)) != NULL; all++)
		n++;
	return (n);
}

/* Whatever comes above the limit is counted, and told once: by the next line, or when that is asked
 * for. */
TEST("/log/limited")
{
	g_autoptr(GString) got = g_string_new("");
	uint64_t before = log_suppressed(), end = clock_mono_ns() + 1200 * NS_PER_MS;
	unsigned tried = 0, told = 0, lines;
	const char *at;

	log_set_sink(keep_line, got);
	for (; clock_mono_ns() < end; tried++) { /* so a second ends while lines come */
		log_limited(3, LOG_WARN, "c1", "storm", LF_U64("n", tried));
		g_usleep(1000);
	}
	log_limited(3, LOG_WARN, NULL, "other");
	lines = lines_of(got->str, "ev=storm");
	g_assert_cmpuint(lines, >=, 6);
	g_assert_cmpuint(lines, <=, 9); /* in two seconds, three if the machine is slow */
	g_assert_cmpuint(lines_of(got->str, "ev=other\n"), ==, 1);
	g_assert_cmpuint(log_suppressed() - before, ==, tried - lines);
	g_assert_cmpuint(lines_of(got->str, " suppressed="), >=, 1);
	log_suppressed_flush();
	for (at = got->str; (at = strstr(at, " suppressed=")) != NULL; at++)
		told += (unsigned)strtoul(at + strlen(" suppressed="), NULL, 10);
	for (at = got->str; (at = strstr(at, "ev=log.suppressed of=storm lines=")) != NULL; at++)
		told +=
		    (unsigned)strtoul(at + strlen("ev=log.suppressed of=storm lines="), NULL, 10);
	g_assert_cmpuint(told, ==, tried - lines);
	g_string_truncate(got, 0);
	log_suppressed_flush();
	g_assert_cmpstr(got->str, ==, "");
	log_set_sink(NULL, NULL);
}

static void *
storm(void *arg)
{
	int i;

	for (i = 0; i < EACH; i++)
		log_limited(5, LOG_INFO, NULL, "tick.limited", LF_U64("i", i));
	return (NULL);
}

TEST("/log/limited-threads")
{
	uint64_t before = log_suppressed();
	pthread_t t[THREADS];
	int lines = 0, i;

	log_set_sink(count_line, &lines);
	for (i = 0; i < THREADS; i++)
		g_assert_cmpint(pthread_create(&t[i], NULL, storm, NULL), ==, 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	log_set_sink(NULL, NULL);
	g_assert_cmpint(lines, >=, 5);
	g_assert_cmpuint((uint64_t)lines + log_suppressed() - before, ==, THREADS * EACH);
}

/* ---------------------------------------------------------------- must, lists */

TEST("/must")
{
	if (g_test_subprocess()) {
		must(1 == 1);
		must(1 == 2);
		return;
	}
	g_test_trap_subprocess(NULL, 0, 0);
	g_test_trap_assert_failed();
	g_test_trap_assert_stderr("*level=alert ev=must.failed*1 == 2*");
}

struct member {
	int v;
	struct list link;
};

TEST("/list")
{
	struct member m[4] = { { 1 }, { 2 }, { 3 }, { 4 } };
	struct list a, b;
	struct member *at;
	int i, seen = 0;

	list_init(&a);
	list_init(&b);
	g_assert_null(list_pop(&a));
	list_add_tail(&a, &m[0].link);
	list_add_tail(&b, &m[1].link);
	list_add_tail(&b, &m[2].link);
	list_add_head(&a, &m[3].link);
	list_splice_tail(&a, &b);
	g_assert_true(list_empty(&b));
	list_each(at, &a, link) {
		seen = seen * 10 + at->v;
		list_del(&at->link);
		list_del(&at->link);
	}
	g_assert_cmpint(seen, ==, 4123);
	g_assert_true(list_empty(&a));
	for (i = 0; i < 4; i++)
		g_assert_false(list_linked(&m[i].link));
}
