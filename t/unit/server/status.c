/* t/unit/server/status.c -- what workers count, and its formats: connections by state, stages,
 * retired counters, names with special characters. */
#include "t/unit/server/simworker.h"
#include "server/status/status.h"

/* ---- counters_list */

TEST("/status/counters-are-handed-on")
{
	struct counters_list all;
	struct worker_counters *a, *b;

	counters_list_init(&all);
	a = worker_counters_take(&all);
	b = worker_counters_take(&all);
	g_assert_true(a != b);
	g_assert_true(worker_counters_first(&all) == b && b->next == a && a->next == NULL);
	count_add(&a->events->conn, requests, 7);
	shared_set(a->cached, 3);
	worker_counters_return(a);
	g_assert_false(a->used);
	g_assert_cmpuint(a->cached, ==, 0);
	g_assert_true(worker_counters_take(&all) == a); /* no third one */
	g_assert_cmpuint(a->events->conn.requests, ==, 7);
	g_assert_true(worker_counters_take(&all) != b);
	for (a = worker_counters_first(&all); a != NULL; a = a->next)
		worker_counters_return(a);
	counters_list_free(&all);
	g_assert_null(worker_counters_first(&all));
}

/* Each field of a room has one row, and no field of another room moves with it. */
TEST("/status/counters-have-a-row-each")
{
	struct server_counters c = { 0 };
	const struct counter_info *info;
	size_t n = 0;

	count(&c.conn, requests);
	count_add(&c.conn, requests, 4);
	for (info = server_counter_infos; info->name != NULL; info++, n++)
		g_assert_cmpuint(counter_get(&c, info), ==,
		    strcmp(info->name, "requests") == 0 ? 5 : 0);
	g_assert_cmpuint(n * sizeof(uint64_t), ==, sizeof(c));
}

/* ---- connections by state */

/* "head 1 write 2": those that are not 0. */
static void
phases_are(const char *want)
{
	g_autoptr(GString) got = g_string_new(NULL);
	unsigned i;

	for (i = 0; i < NPHASES; i++)
		if (w->base.counters->phase[i] != 0)
			g_string_append_printf(got, "%s%s %u", got->len ? " " : "",
			    phase_infos[i].name, (unsigned)w->base.counters->phase[i]);
	g_assert_cmpstr(got->str, ==, want);
}

UP_TEST("/status/phases", "")
{
	struct io_sock *s, *t;

	phases_are("");
	s = client();
	phases_are("head 1");
	say(s, "GET /a HT");
	phases_are("head 1");
	say(s, "TP/1.1\r\n" HOST "\r\n");
	phases_are("handle 1");
	disk();
	phases_are("write 1");
	t = client();
	phases_are("head 1 write 1");
	take(s, SIZE_MAX);
	phases_are("idle 1 head 1");
	say(t, "POST /a HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\n12345");
	phases_are("idle 1 body 1");
	say(t, "6789");
	take(t, SIZE_MAX);
	phases_are("idle 2");
	leave(t, 0);
	phases_are("idle 1");
	say(s, "GET /a HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
	take(s, SIZE_MAX);
	phases_are("");
}

UP_TEST("/status/phases-of-a-stopped-worker", "")
{
	say(client(), GET("/a"));
	say(client(), "GET /");
	client();
	phases_are("head 2 handle 1");
	worker_tell(w, WORKER_STOP);
	worker_round(w);
	sim_run(io);
	phases_are("");
}

/* ---- stages */

static uint64_t
stage_count(enum stage stage)
{
	return (histogram_count(&w->base.counters->stage[stage]));
}

UP_TEST("/status/stages-of-cold-requests", "")
{
	struct io_sock *s = client();

	say(s, GET("/a"));
	disk();
	take(s, SIZE_MAX);
	g_assert_cmpuint(stage_count(stage_stat_queue), ==, 1);
	g_assert_cmpuint(stage_count(stage_stat), ==, 1);
	g_assert_cmpuint(stage_count(stage_write), ==, 1);
	g_assert_cmpuint(stage_count(stage_read), ==, 0);
	g_assert_cmpuint(stage_count(stage_proxy), ==, 0);
	g_assert_cmpuint(stage_count(stage_total), ==, 1);
	say(s, GET("/a") GET("/a"));
	take(s, SIZE_MAX);
	g_assert_cmpuint(stage_count(stage_stat), ==, 1);
	g_assert_cmpuint(stage_count(stage_write), ==, 1);
	g_assert_cmpuint(stage_count(stage_total), ==, 3);
	g_assert_cmpuint(w->base.counts.reply->replies_2xx, ==, 3);
	say(s, GET("/none"));
	disk();
	take(s, SIZE_MAX);
	g_assert_cmpuint(w->base.counts.reply->replies_4xx, ==, 1);
	g_assert_cmpuint(w->base.counts.reply->replies, ==, 4);
	g_assert_cmpuint(stage_count(stage_stat), ==, 2);
}

/* ---- forms */

static struct status *
sample(void)
{
	static struct status s;
	static struct status_worker worker = { .connections = 3, .requests = 9 };
	static struct status_backend backend[2] = {
		{ .block = 0,
		    .name = "a\"b\\c\nd<e>\xff",
		    .requests = 5,
		    .replies = 20,
		    .replies_5xx = 6,
		    .cut = 7,
		    .own_5xx = { [OWN_5XX_hang_up] = 8, [OWN_5XX_reply_late] = 9 },
		    .faults = { [BACKEND_FAULT_timeout] = 10 },
		    .retried = 11,
		    .health = { BACKEND_CHECK_FAILED, 1, "HTTP 500" },
		    .since_s = 1173101335,
		    .checked_s = 1173101338,
		    .good_s = 1173101332,
		    .waiting = 1 },
		{ .block = 0, .name = "unix:/z", .waiting = 2 },
	};
	static struct hosts hosts;

	if (hosts.n == 0) {
		hosts_add(&hosts, TEXT("www.example.org"));
		hosts_add(&hosts, TEXT("[2001:db8::1]:8080"));
	}

	memset(&s, 0, sizeof(s));
	s.host = TEXT("<i>\"&");
	s.address = TEXT("127.0.0.1:80");
	s.uptime_s = 10;
	s.started_s = 1173101331;
	s.loaded_s = 1173101341;
	s.reloads = 2;
	s.upgrades_failed = 3;
	s.reload_refused = true;
	s.draining = 1;
	s.helper_lost = true;
	s.helpers_lost = 4;
	s.helper_since_s = 1173101340;
	s.certificates = 2;
	s.certificates_refused = 1;
	s.certificates_end_s = s.now_s + 20 * 86400;
	s.renewals = 5;
	s.renewals_refused = 6;
	s.first_started_s = 1173101330;
	s.upgrades = 3;
	s.hosts = &hosts;
	s.by.status[200 - STATUS_MIN + 1] = 12;
	s.by.status[0] = 13;
	s.by.host[1].class[2] = 14;
	s.by.host[1].bytes = 15;
	s.by.host[HOSTS_MAX].class[5] = 16;
	s.sum.request.own_5xx_file = 17;
	s.sum.conn.requests = 1000;
	s.sum.conn.bytes_sent = 20480;
	s.sum.hold.stat_hits = 6;
	s.sum.hold.stat_absent_hits = 3;
	s.sum.hold.stat_misses = 1;
	s.sum.io.linux_aio_async = 1261;
	s.phase[phase_idle] = 3;
	s.phase[phase_head] = 1;
	s.phase[phase_write] = 2;
	s.connections = 6;
	s.busy = 3;
	s.worker = &worker;
	s.nworkers = 1;
	s.backend = backend;
	s.nbackends = 2;
	s.threads.lane[0] = (struct io_lane_status){ .name = "stat",
		.threads = 4,
		.busy = 1,
		.queued = 2,
		.oldest_ns = 1500000 };
	s.threads.nlanes = 1;
	s.threads.device[0] = (struct io_device_status){ .major = 8,
		.minor = 1,
		.refused = 4,
		.refused_stuck = 3,
		.mount = "/srv/<a \"b\"\n" };
	s.threads.device[1] = (struct io_device_status){ .major = UINT_MAX, .minor = UINT_MAX };
	s.threads.ndevices = 2;
	s.memory = (struct io_memory_status){ .holds = true,
		.pressure = { .psi = { { 1234, 7, 5600000, 1100000 },
				  { PRESSURE_NONE, PRESSURE_NONE, PRESSURE_NONE, PRESSURE_NONE } },
		    .refault_bytes = 8192,
		    .refaults_of = PRESSURE_CGROUP,
		    .used_bytes = PRESSURE_NONE,
		    .limit_bytes = 48u << 20 },
		.held = { .bytes = 3u << 18,
		    .budget = 1u << 20,
		    .windows = 3,
		    .longest_wait_ns = 41 * NS_PER_MS } };
	s.sum.io.loop_waits = 2;
	s.sum.io.pages_gone = 5;
	histogram_add(&s.stage[stage_total], 3000);
	histogram_add(&s.stage[stage_stat], 20 * NS_PER_MS);
	return (&s);
}

static char *
written(void (*write)(struct buf *, const struct status *))
{
	struct buf out;
	char *s;

	buf_init(&out, 0);
	write(&out, sample());
	g_assert_false(out.failed);
	s = g_strndup(out.p, out.n);
	buf_free(&out);
	return (s);
}

static void
has(const char *all, const char *part)
{
	if (strstr(all, part) == NULL)
		g_test_message("%s", all);
	g_assert_nonnull(strstr(all, part));
}

TEST("/status/auto")
{
	g_autofree char *s = written(status_auto);

	g_assert_cmpstr(s, ==,
	    "Total Accesses: 1000\nTotal kBytes: 20\nUptime: 10\nBusyServers: 3\nIdleServers: 3\n"
	    "Traffic: 2048\nTraffic5s: 0\nScoreboard: rWW___\n");
}

TEST("/status/statistics")
{
	char *s = written(status_statistics), **line = g_strsplit(s, "\n", 0);
	unsigned i, n = g_strv_length(line);

	has(s, "\nproxy-core.0.backends.\"a\\x22b\\x5cc\\x0ad<e>");
	has(s, "\nproxy-core.0.backends.\"unix:/z\".load: 0\n");
	has(s, "proxy-core.0.backlogged: 3\n");
	has(s, "\nserver.io.linux-aio.async-read: 1261\n");
	has(s, "\nserver.stage.stat.max-us: 20000\n");
	has(s, "\nserver.threads.stat.queued: 2\n");
	has(s,
	    "\nserver.helper.changed-s: 1173101340\nserver.helper.lost: 4\nserver.helper.up: 0\n");
	has(s, "\nserver.tls.certificate-ends-in-s: 1728000\nserver.tls.certificates: 2\n"
	       "server.tls.certificates-refused: 1\n");
	has(s, "\nserver.tls.renewals: 5\nserver.tls.renewals-refused: 6\n");
	has(s, "\nserver.devices.8:1.refused: 4\n");
	has(s, "\nserver.devices.unknown.busy: 0\n");
	has(s, "\nserver.memory.limit-bytes: 50331648\n");
	has(s, "\nserver.memory.pressure.machine.full-us: 1100000\n"
	       "server.memory.pressure.machine.some-us: 5600000\n");
	has(s, "\nserver.memory.refaults.cgroup.bytes: 8192\n");
	has(s, "\nserver.hotset.bytes: 786432\nserver.hotset.bytes-limit: 1048576\n");
	has(s, "\nserver.io.longest-loop-wait-us: 41000\nserver.io.loop-waits: 2\n");
	has(s, "\"unix:/z\".state.check-failed: 0\n");
	has(s, "d<e>\\xff\".state.check-failed: 1\n");
	has(s, "d<e>\\xff\".own_5xx.hang-up: 8\n");
	has(s, "d<e>\\xff\".faults.timeout: 10\n");
	has(s, "d<e>\\xff\".state_since-s: 1173101335\n");
	has(s, "\nserver.hosts.\"[2001:db8::1]\".replied-2xx: 14\n");
	has(s, "\nserver.hosts.\"(other)\".replied-5xx: 16\n");
	has(s, "\nserver.requests.replied.200: 12\n");
	has(s, "\nserver.upgrades: 3\n");
	g_assert_null(strstr(s, "pressure.cgroup")); /* not known, and not 0 */
	g_assert_null(strstr(s, "used-bytes"));
	for (i = 0; i + 1 < n; i++)
		g_assert_true(g_regex_match_simple("\\A\\S+: [0-9]+\\z", line[i], G_REGEX_RAW, 0));
	g_strfreev(line);
	g_free(s);
}

TEST("/status/json")
{
	char *s = written(status_json);

	has(s, "\"name\":\"<i>\\\"&\"");
	has(s, "\"name\":\"a\\\"b\\\\c\\nd<e>\357\277\275\""); /* U+FFFD for what is not UTF-8 */
	has(s, "\"hit_ratio\":0.900000");
	has(s, "\"certificates\":{\"n\":2,\"refused\":1,\"first_end\":1728000,"
	       "\"renewals\":5,\"renewals_refused\":6},\n");
	has(s, "\"helper\":{\"up\":0,\"lost\":4,\"changed\":1173101340},\n");
	has(s, "\"stat\":{\"threads\":4,\"busy\":1,\"queued\":2,\"jobs\":0,\"oldest_ns\":1500000}");
	has(s, "{\"device\":\"8:1\",\"mount\":\"/srv/<a \\\"b\\\"\\n\",\"busy\":0,");
	has(s, "{\"device\":\"unknown\",\"mount\":\"\",\"busy\":0,");
	has(s, "\"memory\":{\"pressure\":{\"machine\":{\"some_10s\":0.1234,\"full_10s\":0.0007,"
	       "\"some_ns\":5600000000,\"full_ns\":1100000000}},\"limit_bytes\":50331648,"
	       "\"refault_bytes\":8192,\"refaults_of\":\"cgroup\",\"hotset_bytes\":786432,"
	       "\"hotset_bytes_limit\":1048576,\"hotset_windows\":3,"
	       "\"longest_loop_wait_ns\":41000000},\n");
	has(s, "\"state\":\"check-failed\",\"since\":1173101335,\"reason\":\"HTTP 500\","
	       "\"checked\":1173101338,\"check_passed\":1173101332,\"retried\":11,"
	       "\"faults\":{\"refused\":0,\"hang-up\":0,\"timeout\":10,\"bad-reply\":0,"
	       "\"bad-status\":0}");
	has(s, "\"replies\":20,\"replies_5xx\":6,\"cut\":7,\"own_5xx_sum\":17,\"own_5xx\":{"
	       "\"bad-reply\":0,\"hang-up\":8,");
	has(s, "\"replies_by_status\":{\"0\":13,\"200\":12},\n");
	has(s, "{\"name\":\"[2001:db8::1]\",\"1xx\":0,\"2xx\":14,\"3xx\":0,\"4xx\":0,\"5xx\":0,"
	       "\"sent_bytes\":15}");
	has(s, "\"first_started_unix_seconds\":1173101330,\"upgrades\":3,");
	g_assert_null(strstr(s, "buckets"));
	g_free(s);
	s = written(status_json_buckets);
	has(s, "\"stat\":{\"count\":1,");
	has(s, "\"max_ns\":20000000,\"buckets\":[[20000000,1]]}");
	has(s, "\"first-byte\":{\"count\":0,");
	g_free(s);
}

TEST("/status/metrics")
{
	char *s = written(status_metrics);

	has(s, "\naccel_io_reads_total{backend=\"linux-aio\",mode=\"async\"} 1261\n");
	has(s, "\naccel_cache_absent_hits_total 3\n");
	has(s, "backend=\"a\\\"b\\\\c\\nd<e>?\"} 5\n");
	has(s, "\naccel_stage_seconds_bucket{stage=\"stat\",le=\"0.01\"} 0\n");
	has(s, "\naccel_stage_seconds_bucket{stage=\"stat\",le=\"0.025\"} 1\n");
	has(s, "\naccel_stage_seconds_bucket{stage=\"stat\",le=\"+Inf\"} 1\n");
	has(s, "\naccel_stage_seconds_sum{stage=\"stat\"} 0.020000000\n");
	has(s, "\naccel_threads_oldest_job_seconds{lane=\"stat\"} 0.001500\n");
	has(s, "\naccel_device_refused_total{device=\"8:1\",reason=\"hangs\"} 3\n");
	has(s, "\naccel_device_refused_total{device=\"8:1\",reason=\"full\"} 1\n");
	has(s, "\naccel_config_last_reload_successful 0\n");
	has(s, "\naccel_config_last_reload_success_timestamp_seconds 1173101341\n");
	has(s, "\naccel_config_reloads_total 2\n");
	has(s, "\naccel_upgrades_failed_total 3\n");
	has(s, "\naccel_generations_draining 1\n");
	has(s, "\naccel_helper_up 0\n");
	has(s, "\naccel_helper_changed_timestamp_seconds 1173101340\n");
	has(s, "\naccel_helpers_lost_total 4\n");
	has(s, "\naccel_tls_certificates 2\n");
	has(s, "\naccel_tls_certificates_refused 1\n");
	has(s, "\naccel_tls_certificate_end_timestamp_seconds 1728000\n");
	has(s, "\naccel_tls_renewals_total 5\n");
	has(s, "\naccel_tls_renewals_refused_total 6\n");
	has(s, "\nprocess_start_time_seconds 1173101331\n");
	has(s, "\naccel_memory_limit_bytes 50331648\n");
	has(s, "\naccel_memory_stalled_seconds_total{scope=\"machine\",stalled=\"some\"} "
	       "5.600000\n"
	       "accel_memory_stalled_seconds_total{scope=\"machine\",stalled=\"full\"} "
	       "1.100000\n");
	has(s, "\naccel_memory_refault_bytes_total{scope=\"cgroup\"} 8192\n");
	has(s, "\naccel_hotset_bytes 786432\n");
	has(s, "\naccel_hotset_bytes_limit 1048576\n");
	has(s, "\naccel_hotset_windows 3\n");
	has(s, "\naccel_loop_wait_longest_seconds 0.041000000\n");
	has(s, "\naccel_io_loop_waits_total 2\n");
	has(s, "\naccel_io_pages_gone_total 5\n");
	g_assert_null(strstr(s, "accel_memory_used_bytes"));
	has(s,
	    "\naccel_backend_replies_5xx_total{block=\"0\",backend=\"a\\\"b\\\\c\\nd<e>?\"} 6\n");
#define ILL "{block=\"0\",backend=\"a\\\"b\\\\c\\nd<e>?\""
	has(s, "\naccel_backend_replies_total" ILL "} 20\n");
	has(s, "\naccel_backend_cut_total" ILL "} 7\n");
	has(s, "\naccel_backend_own_5xx_total" ILL ",status=\"502\",cause=\"hang-up\"} 8\n");
	has(s, "\naccel_backend_own_5xx_total" ILL ",status=\"504\",cause=\"reply-timeout\"} 9\n");
	has(s, "\naccel_backend_own_5xx_total" ILL ",status=\"503\",cause=\"no-backend\"} 0\n");
	has(s, "\naccel_backend_faults_total" ILL ",kind=\"timeout\"} 10\n");
	has(s, "\naccel_backend_retried_total" ILL "} 11\n");
	has(s, "\naccel_backend_state" ILL ",state=\"up\"} 0\n");
	has(s, "\naccel_backend_state" ILL ",state=\"check-failed\"} 1\n");
	has(s, "\naccel_backend_state{block=\"0\",backend=\"unix:/z\",state=\"up\"} 1\n");
	has(s, "\naccel_backend_out_info" ILL ",state=\"check-failed\",reason=\"HTTP 500\"} 1\n");
	g_assert_null(strstr(s, "accel_backend_out_info{block=\"0\",backend=\"unix:/z\""));
	has(s, "\naccel_backend_state_since_timestamp_seconds" ILL "} 1173101335\n");
	has(s, "\naccel_backend_check_timestamp_seconds" ILL "} 1173101338\n");
	has(s, "\naccel_backend_check_success_timestamp_seconds" ILL "} 1173101332\n");
	has(s, "\naccel_own_5xx_total{cause=\"file\"} 17\n");
	has(s, "\naccel_first_start_time_seconds 1173101330\n");
	has(s, "\naccel_upgrades_total 3\n");
	has(s, "\naccel_replies_by_status_total{status=\"200\"} 12\n");
	has(s, "\naccel_replies_by_status_total{status=\"other\"} 13\n");
	g_assert_null(strstr(s, "accel_replies_by_status_total{status=\"404\"}"));
	has(s, "\naccel_host_replies_total{host=\"www.example.org\",class=\"1xx\"} 0\n");
	has(s, "\naccel_host_replies_total{host=\"[2001:db8::1]\",class=\"2xx\"} 14\n");
	has(s, "\naccel_host_replies_total{host=\"(other)\",class=\"5xx\"} 16\n");
	has(s, "\naccel_host_sent_bytes_total{host=\"[2001:db8::1]\"} 15\n");
	has(s, "\naccel_device_info{device=\"8:1\",mount=\"/srv/<a?\\\"b\\\"\\n\"} 1\n");
	g_free(s);
}

TEST("/status/html")
{
	g_autofree char *s = written(status_html);

	has(s, "<b id=\"host_name\">&lt;i&gt;&quot;&amp;</b>");
	has(s,
	    "<p id=\"helper\">helper process: <b>lost</b> since 2007-03-05 13:29:00 UTC, died 4");
	has(s, "<p id=\"certificates\">certificates: the first one ends in 20 days; <b>new files "
	       "of 1 cannot be used</b>");
	has(s, "<td>a&quot;b\\c\\x0ad&lt;e&gt;\\xff");
	has(s, "id=\"requests\" data-k=\"requests/read\" data-f=\"n\">1</b><i "
	       "id=\"requests_mult\">k</i>");
	has(s, "id=\"traffic\" data-k=\"traffic/sent_bytes\" data-f=\"b\">20</b><i "
	       "id=\"traffic_mult\">kB</i>");
	has(s, "data-k=\"stages/total/max_ns\" data-f=\"t\">&lt;10</b><i>\302\265s</i>");
	has(s, "data-k=\"stages/stat/max_ns\" data-f=\"t\">20</b><i>ms</i>");
	has(s, "data-k=\"stages/read/max_ns\" data-f=\"t\">\342\200\223</b><i></i>");
	has(s, "data-k=\"cache/hit_ratio\" data-f=\"p\">90</b><i>%</i>");
	has(s, "<main data-rows=\"1,2,2,check-failed,up\">");
	has(s, "<td title=\"since 2007-03-05 13:28:55 UTC\"><b class=\"bad\">check-failed</b> "
	       "<small>HTTP 500</small></td>");
	has(s, "data-k=\"backends/0/own_5xx_sum\" data-f=\"z\" class=\"bad\">17</b>");
	has(s, "<td>8:1 /srv/&lt;a &quot;b&quot;");
	has(s, "data-k=\"devices/0/refused\" data-f=\"z\" class=\"bad\">4</b>");
	has(s, "data-k=\"memory/limit_bytes\" data-f=\"b\">48</b><i>MB</i>");
	has(s, "data-k=\"memory/hotset_bytes\" data-f=\"b\">768</b><i>kB</i>");
	has(s, "<tr><td>machine</td><td><b data-k=\"memory/pressure/machine/some_10s\" "
	       "data-f=\"p\">12.3</b><i>%</i>");
	has(s, "data-k=\"counters/server.io.loop-waits\" data-f=\"z\" class=\"bad\">2</b>");
	g_assert_null(strstr(s, "memory/used_bytes"));
	g_assert_null(strstr(s, "memory/pressure/cgroup"));
	g_assert_null(strstr(s, "<i>\"&"));
}

/* The places of values on the page, in their order. */
TEST("/status/html-values")
{
	static const char *const row[] = {
		"stages/stat/count stages/stat/p50_ns stages/stat/p99_ns stages/stat/max_ns ",
		"threads/stat/threads threads/stat/busy threads/stat/queued threads/stat/jobs "
		"threads/stat/oldest_ns ",
		"devices/1/busy devices/1/queued devices/1/refused devices/1/oldest_ns ",
		"backends/1/requests backends/1/failed backends/1/load backends/1/waiting "
		"backends/1/sockets backends/1/sockets_idle backends/1/own_5xx_sum ",
		"workers/0/connections workers/0/requests workers/0/requests_per_second_5s "
		"workers/0/sent_bytes workers/0/bytes_per_second_5s ",
	};
	char *s = written(status_html), **part = g_strsplit(s, "data-k=\"", 0);
	g_autoptr(GString) all = g_string_new(NULL);
	unsigned i;

	for (i = 1; part[i] != NULL; i++)
		g_string_append_printf(all, "%.*s ", (int)strcspn(part[i], "\""), part[i]);
	g_assert_true(g_str_has_prefix(all->str,
	    "uptime_seconds requests/per_second_5s requests/read requests/per_second "
	    "traffic/bytes_per_second_5s traffic/sent_bytes traffic/bytes_per_second "
	    "stages/total/p99_ns stages/total/p50_ns cache/hit_ratio cache/entries "
	    "cache/entries_limit conditions/sets disk/jobs disk/oldest_ns "
	    "counters/server.requests.replied-5xx counters/server.requests.replied-4xx "
	    "counters/server.connections.client-gone connections/open connections/limit "));
	for (i = 0; i < NELEM(row); i++)
		has(all->str, row[i]);
	g_strfreev(part);
	g_free(s);
}

/* A client sends any name; the table takes the first HOSTS_MAX of a configuration. */
TEST("/status/hosts")
{
	static struct hosts h;
	char name[32];
	unsigned i;

	for (i = 0; i < HOSTS_MAX + 50; i++) {
		snprintf(name, sizeof(name), "h%u.example", i);
		hosts_add(&h, text_of(name));
		hosts_add(&h, text_of(name)); /* twice is once */
	}
	g_assert_cmpuint(hosts_count(&h), ==, HOSTS_MAX);
	for (i = 0; i < HOSTS_MAX + 50; i++) {
		snprintf(name, sizeof(name), "h%u.example:8080", i);
		g_assert_cmpuint(hosts_find(&h, text_of(name)), ==, i < HOSTS_MAX ? i : HOSTS_MAX);
	}
	g_assert_cmpuint(hosts_find(&h, TEXT("")), ==, HOSTS_MAX);
	g_assert_cmpuint(hosts_find(&h, TEXT("[::1]:80")), ==, HOSTS_MAX);
	hosts_free(&h);
}
