/* t/unit/fcgi-stat-accel/status.c -- the page about the process: its requests, its formats, and
 * each counter in each of them. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "fcgi-stat-accel/about.h"
#include "fcgi-stat-accel/counters.h"
#include "fcgi-stat-accel/status.h"
#include "io/disk/pools.h"
#include "io/memory/pressure.h"
#include "t/unit/test.h"

static struct all_counters counters;
static struct advice advice;
static struct status status;
static GString *page;

static void
up(void)
{
	const struct io_pools_conf conf = { .stat_threads = 2, .read_threads = 3, .max_queue = 10 };

	counters = (struct all_counters){ .accel.conns = 5,
		.accel.conns_max = 100,
		.accel.answered_ns = clock_mono_ns() - 5 * NS_PER_S,
		.accel.warm.waiting = 2,
		.accel.events.files = 41,
		.files.behind_skipped = 43 };
	for (int i = 0; i < 100; i++)
		histogram_add(&counters.accel.total, i < 97 ? NS_PER_MS : NS_PER_S);
	status = (struct status){
		.status_path = "/accel-status",
		.ping_path = "/accel-ping",
		.mode = "auth",
		.counters = &counters,
		.advice = &advice,
		.started_ns = clock_mono_ns() - 12 * NS_PER_S,
		.started_s = 1173101331,
		.sandbox = { 0, true },
	};
	g_assert_cmpint(io_pools_new(&conf, &status.pools), ==, 0);
	page = g_string_new(NULL);
}

static void
down(void)
{
	g_string_free(page, TRUE);
	io_pools_free(status.pools, 1000);
}

static bool
ask(const char *method, const char *name, const char *query)
{
	char *params[] = { g_strconcat("REQUEST_METHOD=", method, NULL),
		g_strconcat("QUERY_STRING=", query, NULL), g_strconcat("SCRIPT_NAME=", name, NULL),
		NULL };
	bool answered;

	g_string_truncate(page, 0);
	answered = status_answer(&status, params, page);
	for (int i = 0; params[i] != NULL; i++)
		g_free(params[i]);
	return (answered);
}

static void
has(const char *what)
{
	if (strstr(page->str, what) == NULL)
		g_error("no \"%s\" in: %s", what, page->str);
}

static const char *
body(void)
{
	return (strstr(page->str, "\r\n\r\n") + 4);
}

/* The whole answer. */
static void
is(const char *type, const char *want)
{
	g_autofree char *all =
	    g_strdup_printf("Status: 200 OK\r\nContent-Type: %s\r\nContent-Length: "
			    "%zu\r\nCache-Control: no-store\r\n\r\n%s",
		type, strlen(want), want);

	g_assert_cmpstr(page->str, ==, all);
}

static void
only_its_own_paths(void)
{
	g_assert_true(ask("GET", "/accel-status", ""));
	g_assert_true(ask("GET", "/accel-ping", ""));
	g_assert_false(ask("GET", "/accel-status/", ""));
	g_assert_false(ask("GET", "/accel", ""));
	g_assert_false(ask("GET", "", ""));
	g_assert_cmpstr(page->str, ==, "");
	status.status_path = status.ping_path = NULL;
	g_assert_false(ask("GET", "/accel-status", ""));
	g_assert_false(ask("GET", "/accel-ping", ""));
	g_assert_cmpstr(page->str, ==, "");
}

static void
ping(void)
{
	ask("GET", "/accel-ping", "");
	is("text/plain; charset=utf-8", "pong\n");
	ask("GET", "/accel-ping", "json");
	is("application/json", "{\"ok\":true}\n");
	ask("GET", "/accel-ping", "jsonx&xjson");
	is("text/plain; charset=utf-8", "pong\n");
}

static void
head_has_no_body(void)
{
	char *length;

	ask("GET", "/accel-ping", "json");
	g_assert_cmpstr(body(), !=, "");
	ask("HEAD", "/accel-ping", "json");
	g_assert_cmpstr(body(), ==, "");
	has("Content-Length: 12\r\n");
	ask("GET", "/accel-status", "");
	length = g_strdup_printf("Content-Length: %zu\r\n", strlen(body()));
	has(length);
	g_free(length);
	ask("HEAD", "/accel-status", "");
	g_assert_cmpstr(body(), ==, "");
}

static void
lines(void)
{
	ask("GET", "/accel-status", "full");
	has("Content-Type: text/plain; charset=utf-8\r\n");
	has("\r\n\r\naccel.version: " STAT_ACCEL_VERSION
	    "\naccel.mode: auth\naccel.summary: 100 answers, 0 % needed no thread, the "
	    "last answer was 5 s ago; 2 requests wait now, the oldest job of a thread for 0 ms; 0 "
	    "devices are stuck; ");
	has(" us per answer\naccel.advice: none\naccel.uptime-s: 12\naccel.cpu-ms: ");
	has("\naccel.requests.idle-s: 5\n");
	has("\naccel.sandbox.landlock-abi: 0\n");
	has("\naccel.sandbox.seccomp: 1\n");
	has("\naccel.connections.open: 5\n");
	has("\naccel.connections.limit: 100\n");
	has("\naccel.requests.waiting: 2\n");
	has("\naccel.stage.total.count: 100\n");
	has("\naccel.stage.total.p99-us: 995000\n");
	has("\naccel.stage.total.max-us: 1000000\n");
	has("\naccel.stage.stat-queue.count: 0\n");
	has("\naccel.threads.stat.busy: 0\n");
	has("\naccel.threads.read.oldest-us: 0\n");
	has("\naccel.devices-stuck: 0\n");
	has("\naccel.memory.limit-bytes: ");
	has("\naccel.memory.refaults.");
	g_assert_null(strstr(page->str, "hotset")); /* it holds no windows */
	for (const struct counter_info *si = accel_counter_infos; si->name != NULL; si++) {
		g_autofree char *line = g_strdup_printf("\n%s: %d\n", si->dotted,
		    strcmp(si->dotted, "accel.answers.file") == 0           ? 41
		    : strcmp(si->dotted, "accel.files.behind-skipped") == 0 ? 43
									    : 0);

		has(line);
	}
}

static void
summary(void)
{
	counters.files.hot = counters.files.remembered = 1;
	counters.files.cold = counters.files.joined = 3;
	ask("GET", "/accel-status", "");
	has("\naccel.summary: 100 answers, 25 % needed no thread, the last answer was 5 "
	    "s ");
	counters = (struct all_counters){ 0 };
	ask("GET", "/accel-status", "");
	has("\naccel.summary: no web server has asked about a file since the start, 12 s ago; 0 "
	    "requests wait now");
}

static void
json(void)
{
	ask("GET", "/accel-status", "a=b&json");
	has("Content-Type: application/json\r\n");
	has("{\"version\":\"" STAT_ACCEL_VERSION
	    "\",\"mode\":\"auth\",\"uptime_seconds\":12,\"landlock_abi\":0,\"seccomp\":1,\n");
	has("\"connections\":{\"open\":5,\"limit\":100},\n\"requests\":{\"waiting\":2,\"idle_"
	    "seconds\":5},\n");
	has("\"total\":{\"count\":100,\"sum_ns\":3097000000,");
	has("\"stat\":{\"threads\":2,\"busy\":0,");
	has("\"devices\":[],\n\"devices_stuck\":0,\n");
	has("\"memory\":{\"pressure\":{");
	has(",\"limit_bytes\":");
	g_assert_null(strstr(page->str, "buckets"));
	ask("GET", "/accel-status", "json&buckets");
	has("\"max_ns\":1000000000,\"buckets\":[[1000000,97],[1000000000,3]]}");
	has("\"accel.answers.file\":41");
	has("\"accel.files.behind-skipped\":43,");
}

static void
metrics(void)
{
	ask("GET", "/accel-status", "prometheus");
	has("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
	has("\nfcgi_stat_accel_build_info{version=\"" STAT_ACCEL_VERSION "\",mode=\"auth\"} 1\n");
	has("\nprocess_start_time_seconds 1173101331\n");
	has("\nprocess_max_fds ");
	has("\nfcgi_stat_accel_log_dropped_total 0\n");
	has("\nfcgi_stat_accel_connections 5\n");
	has("\n# TYPE fcgi_stat_accel_answers_file_total "
	    "counter\nfcgi_stat_accel_answers_file_total 41\n");
	has("\nfcgi_stat_accel_files_behind_skipped_total 43\n");
	has("\nfcgi_stat_accel_stage_seconds_bucket{stage=\"total\",le=\"0.0025\"} 97\n");
	has("\nfcgi_stat_accel_stage_seconds_count{stage=\"total\"} 100\n");
	has("\nfcgi_stat_accel_threads{lane=\"read\"} 3\n");
	has("\nfcgi_stat_accel_memory_limit_bytes ");
	has("\nfcgi_stat_accel_memory_refault_bytes_total{scope=\"");
	ask("GET", "/accel-status", "metrics=");
	has("\nfcgi_stat_accel_connections 5\n");
	ask("GET", "/accel-status", "=&metrics==");
	g_assert_null(strstr(page->str, "fcgi_stat_accel_connections"));
	ask("GET", "/accel-status", "metrics");
	has("\nfcgi_stat_accel_connections 5\n");
}

static void
keep(void *arg, struct text line)
{
	g_string_append_len(page, line.p, (gssize)line.n);
}

static void
to_the_log(void)
{
	log_set_sink(keep, NULL);
	status_log(&status);
	log_set_sink(NULL, NULL);
	has(" ev=accel.stats mode=auth uptime-s=12 connections=5 connections-limit=100 "
	    "waiting=2 idle-s=5 cpu-ms=");
	has(" ev=accel.connections accepted=0 refused=0 ");
	has(" ev=accel.answers file=41 ");
	has(" behind-skipped=43\n");
	has(" ev=accel.stage name=total count=100 p50-us=");
	has(" ev=accel.threads name=stat threads=2 busy=0 ");
	has(" ev=accel.memory memory_limit=");
	for (const struct counter_info *si = accel_counter_infos; si->name != NULL; si++) {
		g_autofree char *field = g_strdup_printf(" %s=", strrchr(si->dotted, '.') + 1);

		has(field);
	}
}

/* No URL is "stat-accel:about": it has no slash. */
static void
about(void)
{
	static const char *const roots[] = { "/srv/a \"b\"\n", "/srv/c", NULL };
	const struct accel_conf accel = { .mode = MODE_AUTH, .header = "X-Sendfile" };
	const struct warm_conf warm = { .roots = roots };

	g_assert_false(ask("GET", ABOUT_NAME, ""));
	status.accel = &accel;
	status.warm = &warm;
	g_assert_false(ask("GET", "/" ABOUT_NAME, ""));
	g_assert_true(ask("GET", ABOUT_NAME, ""));
	has("Content-Type: application/json\r\n");
	has("{\"program\":\"fcgi-stat-accel\",\"version\":\"" STAT_ACCEL_VERSION
	    "\",\"mode\":\"auth\"");
	has("\"roots\":[\"/srv/a \\\"b\\\"\\n\",\"/srv/c\"]");
	has("\"index\":[]");
}

static void
test(gconstpointer fn)
{
	up();
	((void (*)(void))fn)();
	down();
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	pressure_open();
	g_test_add_data_func("/status/only-its-own-paths", (gconstpointer)only_its_own_paths, test);
	g_test_add_data_func("/status/ping", (gconstpointer)ping, test);
	g_test_add_data_func("/status/head-has-no-body", (gconstpointer)head_has_no_body, test);
	g_test_add_data_func("/status/lines", (gconstpointer)lines, test);
	g_test_add_data_func("/status/summary", (gconstpointer)summary, test);
	g_test_add_data_func("/status/json", (gconstpointer)json, test);
	g_test_add_data_func("/status/metrics", (gconstpointer)metrics, test);
	g_test_add_data_func("/status/about", (gconstpointer)about, test);
	g_test_add_data_func("/status/to-the-log", (gconstpointer)to_the_log, test);
	return (tests_run());
}
