/* t/unit/base/timing.c -- the timing line, byte for byte: scripts older than this program read
 * it. */
#include "base/buf.h"
#include "base/timing.h"
#include "t/unit/test.h"

static const struct timing sample = {
	.tag = "network_gthread_aio.c.78:",
	.id = "c17.3",
	.status = 200,
	.hot = false,
	.bytes = 102400,
	.write_start_wall_ns = 1173101341237616999ull,
	.stat_queue_ns = 1000,
	.stat_ns = 2999,
	.proxy_queue_ns = 0,
	.proxy_ns = 4000,
	.read_queue_ns = 680999999,
	.read_ns = 999999,
	.handover_ns = 600000,
	.write_ns = 20500000,
	.total_ns = 703106998,
	.path = TEXT("/a b\"c\n\\.gif"),
};

static char *
text_from(void (*put)(struct buf *, const struct timing *), const struct timing *t)
{
	struct buf b;
	char *s;

	buf_init(&b, 0);
	put(&b, t);
	g_assert_false(b.failed);
	s = g_strndup(b.p, b.n);
	buf_free(&b);
	return (s);
}

TEST("/timing/line-is-the-documented-one")
{
	g_autofree char *s = text_from(timing_line, &sample);

	g_assert_cmpstr(s, ==,
	    "network_gthread_aio.c.78: (trace) write-start: 1173101341.237616 read-queue-wait: 680 "
	    "ms read-time: 0 ms write-time: 21 ms id=c17.3 status=200 bytes=102400 hot=0 "
	    "stat-queue-us=1 stat-us=2 proxy-queue-us=0 proxy-us=4 read-queue-us=680999 "
	    "read-us=999 handover-us=600 write-us=20500 total-us=703106 path=\"/a "
	    "b\\x22c\\x0a\\x5c.gif\"\n");
}

TEST("/timing/words-4-6-9-12-are-those-of-2007")
{
	g_autofree char *s = text_from(timing_line, &sample);
	char **word = g_strsplit(s, " ", 0);

	g_assert_cmpstr(word[3], ==, "1173101341.237616");
	g_assert_cmpstr(word[5], ==, "680");
	g_assert_cmpstr(word[8], ==, "0");
	g_assert_cmpstr(word[11], ==, "21");
	g_assert_cmpstr(word[12], ==, "ms");
	g_strfreev(word);
}

TEST("/timing/write-start-has-six-digits")
{
	struct timing t = sample;
	char *s;

	t.write_start_wall_ns = 1700000000000042000ull;
	s = text_from(timing_line, &t);
	g_assert_nonnull(strstr(s, " write-start: 1700000000.000042 "));
	g_free(s);
}

TEST("/timing/json-has-the-same-names")
{
	struct timing t = sample;
	char *s;

	t.hot = true;
	t.path = TEXT("/a\"\xff");
	s = text_from(timing_json, &t);
	g_assert_cmpstr(s, ==,
	    "{\"write-start\":1173101341.237616,\"backend\":\"network_gthread_aio.c.78\",\"id\":"
	    "\"c17.3\",\"status\":200,\"bytes\":102400,\"hot\":true,\"stat-queue-us\":1,\"stat-"
	    "us\":2,\"proxy-queue-us\":0,\"proxy-us\":4,\"read-queue-us\":680999,\"read-us\":999,"
	    "\"handover-us\":600,\"write-us\":20500,\"total-us\":703106,\"path\":\"/"
	    "a\\\"\xef\xbf\xbd\"}\n");
	g_free(s);
}

TEST("/timing/a-handshake-is-told-after-the-total")
{
	struct timing t = sample;
	char *s;

	t.handshake_ns = 1234999;
	t.cut = true;
	s = text_from(timing_line, &t);
	g_assert_nonnull(strstr(s, " total-us=703106 handshake-us=1234 cut=1 path="));
	g_free(s);
	s = text_from(timing_json, &t);
	g_assert_nonnull(strstr(s, ",\"total-us\":703106,\"handshake-us\":1234,\"cut\":true,"));
	g_free(s);
}

TEST("/timing/cut-is-told-before-the-path")
{
	struct timing t = sample;
	char *line, *object;

	t.cut = true;
	line = text_from(timing_line, &t);
	object = text_from(timing_json, &t);
	g_assert_nonnull(strstr(line, " total-us=703106 cut=1 path=\"/a"));
	g_assert_nonnull(strstr(object, ",\"total-us\":703106,\"cut\":true,\"path\":"));
	g_free(line);
	g_free(object);
}
