/* t/unit/fcgi-stat-accel/timing.c -- the line about a request, as accel-graph reads it, and its
 * destination. */
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#include "base/log.h"
#include "fcgi-stat-accel/log.h"
#include "fcgi-stat-accel/timing.h"
#include "t/unit/test.h"

static GString *logged;

static void
keep(void *arg, struct text line)
{
	g_string_append_len(arg, line.p, (gssize)line.n);
}

static void
note(enum timing_format format, const struct warm_found *found, const char *reply)
{
	g_autoptr(GString) r = g_string_new(reply);
	const struct timing_request request = {
		.conn = 17,
		.number = 3,
		.path = "/srv/a b",
		.found = found,
		.reply = r,
		.total_ns = 703106998,
	};

	logged = g_string_new(NULL);
	log_set_sink(keep, logged);
	timing_note(format, &request);
	log_set_sink(NULL, NULL);
}

/* Logged after its write-start, which is now. */
static void
is(const char *want)
{
	gint64 now = g_get_real_time() / G_USEC_PER_SEC;
	char *start = strstr(logged->str, "write-start");
	gint64 at = g_ascii_strtoll(start + strcspn(start, "0123456789"), NULL, 10);

	g_assert_cmpint(at, >=, now - 5);
	g_assert_cmpint(at, <=, now);
	start += strcspn(start, "0123456789");
	g_string_erase(logged, start - logged->str, (gssize)strspn(start, "0123456789."));
	g_assert_cmpstr(logged->str, ==, want);
	g_string_free(logged, TRUE);
}

static const struct warm_found cold = {
	.stx.stx_size = 102400,
	.queue_ns = 1000,
	.stat_ns = 2999,
	.read_ns = 680999999,
};

TEST("/timing/one-line")
{
	note(TIMING_LINE, &cold, "Status: 200 OK\r\nX-Sendfile: /srv/a b\r\n\r\n");
	is("network_fcgi_stat_accel.c.78: (trace) write-start:  read-queue-wait: 0 ms read-time: "
	   "680 ms write-time: 0 ms id=c17.3 status=200 bytes=102400 hot=0 stat-queue-us=1 "
	   "stat-us=2 proxy-queue-us=0 proxy-us=0 read-queue-us=0 read-us=680999 handover-us=0 "
	   "write-us=0 total-us=703106 path=\"/srv/a b\"\n");
}

TEST("/timing/as-json")
{
	note(TIMING_JSON, &cold, "Status: 204 No Content\r\n\r\n");
	is("{\"write-start\":,\"backend\":\"network_fcgi_stat_accel.c.78\",\"id\":\"c17.3\","
	   "\"status\":204,\"bytes\":102400,\"hot\":false,\"stat-queue-us\":1,\"stat-us\":2,"
	   "\"proxy-queue-us\":0,\"proxy-us\":0,\"read-queue-us\":0,\"read-us\":680999,\"handover-"
	   "us\":0,\"write-us\":0,\"total-us\":703106,\"path\":\"/srv/a b\"}\n");
}

TEST("/timing/a-file-that-is-not-there")
{
	const struct warm_found gone = { .err = -2, .hot = true, .stx.stx_size = 7 };

	note(TIMING_LINE, &gone, "Status: 404 Not Found\r\n\r\n");
	g_assert_nonnull(strstr(logged->str, " status=404 bytes=0 hot=1 "));
	g_string_free(logged, TRUE);
}

TEST("/timing/only-when-asked")
{
	note(TIMING_OFF, &cold, "Status: 200 OK\r\n\r\n");
	g_assert_cmpstr(logged->str, ==, "");
	g_string_free(logged, TRUE);
}

/* ---- the log */

static char *dir;

static void
file_has(const char *name, const char *what)
{
	char *path = g_build_filename(dir, name, NULL), *all;

	g_assert_true(g_file_get_contents(path, &all, NULL, NULL));
	g_assert_nonnull(strstr(all, what));
	g_assert_true(g_str_has_suffix(all, "\n"));
	g_assert_cmpint(g_unlink(path), ==, 0);
	g_free(all);
	g_free(path);
}

TEST("/log/a-log-that-is-rotated")
{
	char *path, *old;

	dir = g_dir_make_tmp("accel-log-XXXXXX", NULL);
	path = g_build_filename(dir, "log", NULL);
	old = g_build_filename(dir, "log.1", NULL);
	g_assert_cmpint(accel_log_open(path), ==, 0);
	log_event(LOG_WARN, NULL, "first");
	g_assert_cmpint(g_rename(path, old), ==, 0);
	accel_log_reopen();
	log_event(LOG_WARN, NULL, "second");
	accel_log_close();
	file_has("log", " ev=second\n");
	g_unlink(old);
	g_assert_cmpint(g_rmdir(dir), ==, 0);
	g_assert_cmpint(accel_log_open(path), ==, -ENOENT);
	g_free(path);
	g_free(old);
	g_free(dir);
}
