/* fcgi-stat-accel/status.c -- see status.h */

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/prometheus.h"
#include "base/text.h"
#include "fcgi-stat-accel/about.h"
#include "fcgi-stat-accel/accel.h"
#include "fcgi-stat-accel/advice_show.h"
#include "fcgi-stat-accel/counters.h"
#include "fcgi-stat-accel/status.h"
#include "io/disk/pin.h"
#include "io/disk/pools_status.h"
#include "io/log/logfile.h"
#include "io/memory/memory_status.h"
#include "io/memory/process_status.h"

const struct counter_info accel_counter_infos[] = {
#define C(part, name, dotted, doc) { #name, dotted, doc, offsetof(struct all_counters, part.name) },
#include "fcgi-stat-accel/counters.def"
#undef C
	{ NULL },
};
_Static_assert(NELEM(accel_counter_infos) - 1 ==
		   (sizeof(struct accel_events) + sizeof(struct warm_counters) +
		       sizeof(struct io_pins_counters)) /
		       sizeof(uint64_t),
    "each counter has its row in counters.def");

static const struct stage {
	const char *name; /* as in base/timing.h */
	size_t offset;
} stages[] = {
	{ "stat-queue", offsetof(struct all_counters, accel.warm.queue) },
	{ "stat", offsetof(struct all_counters, accel.warm.stat) },
	{ "read", offsetof(struct all_counters, accel.warm.read) },
	{ "total", offsetof(struct all_counters, accel.total) },
};

static const struct histogram *
stage_of(const struct status *s, const struct stage *stage)
{
	return ((const struct histogram *)((const char *)s->counters + stage->offset));
}

static uint64_t
uptime_s(const struct status *s)
{
	return ((clock_mono_ns() - s->started_ns) / NS_PER_S);
}

/* Without any answer: seconds since the start. */
static uint64_t
idle_s(const struct status *s)
{
	uint64_t last = MAX(s->counters->accel.answered_ns, s->started_ns);

	return (clock_between(last, clock_mono_ns()) / NS_PER_S);
}

/* ---------------------------------------------------------------- name: value */

static void
text_line(void *out, const char *name, uint64_t v)
{
	buf_printf(out, "accel.%s: %" PRIu64 "\n", name, v);
}

static void
counter_line(void *out, const char *dotted, uint64_t v)
{
	buf_printf(out, "%s: %" PRIu64 "\n", dotted, v);
}

static void
text_stage(struct buf *out, const char *name, const struct histogram *h)
{
	buf_printf(out, "accel.stage.%s.count: %" PRIu64 "\n", name, histogram_count(h));
	buf_printf(out, "accel.stage.%s.p50-us: %" PRIu64 "\n", name,
	    histogram_percentile(h, 0.5) / 1000);
	buf_printf(out, "accel.stage.%s.p95-us: %" PRIu64 "\n", name,
	    histogram_percentile(h, 0.95) / 1000);
	buf_printf(out, "accel.stage.%s.p99-us: %" PRIu64 "\n", name,
	    histogram_percentile(h, 0.99) / 1000);
	buf_printf(out, "accel.stage.%s.max-us: %" PRIu64 "\n", name, h->max_ns / 1000);
}

static uint64_t
oldest_job_ns(const struct io_pools_status *pools)
{
	uint64_t oldest = 0;

	for (size_t i = 0; i < pools->nlanes; i++)
		oldest = MAX(oldest, pools->lane[i].oldest_ns);
	return (oldest);
}

/* What the program does, what blocks and what it costs, for a person who sees this page for the
 * first time. */
static void
text_summary(struct buf *out, const struct status *s, const struct io_pools_status *pools)
{
	const struct accel_counters *c = &s->counters->accel;
	const struct warm_counters *f = &s->counters->files;
	uint64_t answers = histogram_count(&c->total), cpu_us = clock_process_cpu_ns() / 1000,
		 memory = f->hot + f->remembered, all = memory + f->cold + f->joined;

	buf_printf(out, "accel.summary: ");
	if (answers == 0)
		buf_printf(out, "no web server has asked about a file since the start, ");
	else
		buf_printf(out,
		    "%" PRIu64 " answers, %" PRIu64 " %% needed no thread, the last "
		    "answer was ",
		    answers, memory * 100 / MAX(all, 1));
	buf_printf(out, "%" PRIu64 " s ago; ", idle_s(s));
	buf_printf(out,
	    "%u requests wait now, the oldest job of a thread for %llu ms; %u devices are stuck; "
	    "%" PRIu64 ".%03" PRIu64 " s of CPU, %" PRIu64 " us per answer\n",
	    c->warm.waiting, oldest_job_ns(pools) / NS_PER_MS, io_pools_status_stuck(pools),
	    cpu_us / 1000000, cpu_us / 1000 % 1000, cpu_us / MAX(answers, 1));
}

static void
text_mounts(struct buf *out, const struct io_pools_status *pools)
{
	char name[IO_DEVICE_NAME];

	for (size_t i = 0; i < pools->ndevices; i++) {
		const struct io_device_status *d = &pools->device[i];

		buf_printf(out, "accel.devices.%s.mount: ", io_device_name(d, name));
		buf_log_quoted(out, text_of(d->mount));
		buf_char(out, '\n');
	}
}

/* The last measurement, at most a second old while files come from a disk.  Asks for the next. */
static void
take_memory(struct io_memory_status *m)
{
	pressure_ask();
	io_memory_status_take(m, NULL);
}

static void
as_text(struct buf *out, const struct status *s, const struct io_pools_status *pools)
{
	const struct accel_counters *c = &s->counters->accel;
	struct io_memory_status memory;
	struct io_pins_status pins;

	buf_printf(out, "accel.version: %s\naccel.mode: %s\n", STAT_ACCEL_VERSION, s->mode);
	text_summary(out, s, pools);
	advice_text(out, s->advice);
	text_line(out, "uptime-s", uptime_s(s));
	text_line(out, "cpu-ms", clock_process_cpu_ns() / NS_PER_MS);
	text_line(out, "sandbox.landlock-abi", (uint64_t)s->sandbox.landlock);
	text_line(out, "sandbox.seccomp", s->sandbox.seccomp);
	text_line(out, "connections.open", c->conns);
	text_line(out, "connections.limit", c->conns_max);
	text_line(out, "requests.waiting", c->warm.waiting);
	text_line(out, "requests.idle-s", idle_s(s));
	text_line(out, "descriptors.held", c->fds);
	text_line(out, "roots.open-asks", s->open_asks);
	io_pins_status(&pins);
	text_line(out, "pins.bytes", pins.bytes);
	text_line(out, "pins.limit", pins.budget);
	text_line(out, "pins.locked", pins.windows);
	counters_each(s->counters, accel_counter_infos, counter_line, out);
	for (size_t i = 0; i < G_N_ELEMENTS(stages); i++)
		text_stage(out, stages[i].name, stage_of(s, &stages[i]));
	text_mounts(out, pools);
	io_pools_status_each(pools, text_line, out);
	take_memory(&memory);
	io_memory_status_each(&memory, text_line, out);
	text_line(out, "devices-stuck", io_pools_status_stuck(pools));
}

/* ---------------------------------------------------------------- JSON */

static void
as_json(struct buf *out, const struct status *s, const struct io_pools_status *pools,
    void (*put)(struct buf *, const struct histogram *))
{
	const struct accel_counters *c = &s->counters->accel;
	struct io_memory_status memory;
	struct io_pins_status pins;

	buf_printf(out,
	    "{\"version\":\"%s\",\"mode\":\"%s\",\"uptime_seconds\":%" PRIu64
	    ",\"landlock_abi\":%d,\"seccomp\":%d,\n",
	    STAT_ACCEL_VERSION, s->mode, uptime_s(s), s->sandbox.landlock, s->sandbox.seccomp);
	advice_json(out, s->advice);
	buf_printf(out,
	    ",\n\"cpu_ns\":%" PRIu64 ",\n\"connections\":{\"open\":%u,\"limit\":%u},\n"
	    "\"requests\":{\"waiting\":%u,\"idle_seconds\":%" PRIu64 "},\n"
	    "\"descriptors\":{\"held\":%u},\n\"stages\":{",
	    clock_process_cpu_ns(), c->conns, c->conns_max, c->warm.waiting, idle_s(s), c->fds);
	for (size_t i = 0; i < G_N_ELEMENTS(stages); i++) {
		buf_printf(out, "%s\"%s\":", i > 0 ? ",\n" : "", stages[i].name);
		put(out, stage_of(s, &stages[i]));
	}
	io_pins_status(&pins);
	buf_printf(out,
	    "},\n\"roots_open_asks\":%u,\n\"pins\":{\"bytes\":%" PRIu64 ",\"limit\":%" PRIu64
	    ",\"locked\":%" PRIu64 "},\n",
	    s->open_asks, pins.bytes, pins.budget, pins.windows);
	io_pools_status_json(out, pools);
	buf_printf(out, ",\n\"devices_stuck\":%u,\n", io_pools_status_stuck(pools));
	take_memory(&memory);
	io_memory_status_json(out, &memory);
	buf_str(out, ",\n");
	counters_json(out, s->counters, accel_counter_infos);
	buf_str(out, "}\n");
}

/* ---------------------------------------------------------------- Prometheus */

static void
as_metrics(struct buf *out, const struct status *s, const struct io_pools_status *pools)
{
	const struct prom p = { out, "fcgi_stat_accel" };
	const struct accel_counters *c = &s->counters->accel;
	struct io_memory_status memory;
	struct io_pins_status pins;

	prom_family(&p, "build_info", "gauge", "Version and mode, as labels.");
	prom_name(&p, "build_info");
	buf_printf(out, "{version=\"%s\",mode=\"%s\"} 1\n", STAT_ACCEL_VERSION, s->mode);
	advice_metrics(&p, s->advice);
	process_status_metrics(out, s->started_s);
	prom_gauge(&p, "landlock_abi", "Version of the sandbox; 0: none.",
	    (uint64_t)s->sandbox.landlock);
	prom_gauge(&p, "seccomp", "1: system calls are filtered.", s->sandbox.seccomp);
	prom_gauge(&p, "connections", "Connections of web servers that are open.", c->conns);
	prom_gauge(&p, "connections_limit", "How many may be.", c->conns_max);
	prom_gauge(&p, "requests_waiting", "Requests that wait for their file.", c->warm.waiting);
	prom_gauge(&p, "idle_seconds", "Since the last answer about a file, or the start.",
	    idle_s(s));
	prom_gauge(&p, "descriptors_held",
	    "Files opened for clients (WARM_OPEN) that do not have them yet.", c->fds);
	prom_gauge(&p, "roots_open_asks",
	    "Mounts of roots whose open() asks another machine or process.", s->open_asks);
	io_pins_status(&pins);
	prom_gauge(&p, "pins_bytes", "Bytes of files locked in memory.", pins.bytes);
	prom_gauge(&p, "pins_limit_bytes", "How many may be.", pins.budget);
	prom_gauge(&p, "pins_locked", "Windows of files locked in memory.", pins.windows);
	for (const struct counter_info *info = accel_counter_infos; info->name != NULL; info++)
		prom_counter(&p, info->dotted + strlen("accel."), info->doc,
		    counter_get(s->counters, info));
	prom_counter(&p, "log.suppressed",
	    "Log lines suppressed because there were too many of their kind in a second.",
	    log_suppressed());
	prom_counter(&p, "log.dropped",
	    "Log lines dropped because the disk did not take them in time.", logfile_dropped());
	prom_family(&p, "stage_seconds", "histogram",
	    "Where the time of requests went; total is of all, the others of those that were not "
	    "hot.");
	for (size_t i = 0; i < G_N_ELEMENTS(stages); i++)
		prom_histogram(&p, "stage_seconds", "stage", stages[i].name,
		    stage_of(s, &stages[i]));
	io_pools_status_metrics(&p, pools);
	take_memory(&memory);
	io_memory_status_metrics(&p, &memory);
}

/* ---------------------------------------------------------------- the answer */

static bool
is_path(char **params, const char *path)
{
	const char *name = path != NULL ? accel_param(params, "SCRIPT_NAME") : NULL;

	return (name != NULL && strcmp(name, path) == 0);
}

/* Prometheus adds '=' to a parameter without a value. */
static bool
query_has(char **params, const char *word)
{
	struct text rest = text_of(accel_param(params, "QUERY_STRING")), one;

	while (text_next(&rest, '&', &one)) {
		one.n -= one.n > 0 && one.p[one.n - 1] == '=';
		if (text_eq(one, text_of(word)))
			return (true);
	}
	return (false);
}

/* The page changes all the time, so it must not be kept. */
static void
answer(char **params, const char *type, struct text body, GString *reply)
{
	const char *method = accel_param(params, "REQUEST_METHOD");

	g_string_append_printf(reply,
	    "Status: 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: "
	    "no-store\r\n\r\n",
	    type, body.n);
	if (method == NULL || strcmp(method, "HEAD") != 0)
		g_string_append_len(reply, body.p, (gssize)body.n);
}

static void
answer_status(const struct status *s, char **params, GString *reply)
{
	const char *type = "text/plain; charset=utf-8";
	struct io_pools_status pools;
	struct buf page;

	io_pools_status_take(&pools, s->pools);
	buf_init(&page, 0);
	if (query_has(params, "json")) {
		type = "application/json";
		as_json(&page, s, &pools,
		    query_has(params, "buckets") ? histogram_json_buckets : histogram_json);
	} else if (query_has(params, "metrics") || query_has(params, "prometheus")) {
		type = "text/plain; version=0.0.4; charset=utf-8";
		as_metrics(&page, s, &pools);
	} else {
		as_text(&page, s, &pools);
	}
	answer(params, type, buf_as_text(&page), reply);
	buf_free(&page);
}

static void
answer_ping(char **params, GString *reply)
{
	if (query_has(params, "json"))
		answer(params, "application/json", TEXT("{\"ok\":true}\n"), reply);
	else
		answer(params, "text/plain; charset=utf-8", TEXT("pong\n"), reply);
}

bool
status_answer(const struct status *s, char **params, GString *reply)
{
	if (is_path(params, s->status_path))
		answer_status(s, params, reply);
	else if (is_path(params, s->ping_path))
		answer_ping(params, reply);
	else
		return (about_answer(s->accel, s->warm, params, reply));
	return (true);
}

/* ---------------------------------------------------------------- the log */

#define GROUP_MAX 16

/* "accel.connections.accepted" is "accepted" of the group "accel.connections". */
static size_t
group_length(const struct counter_info *info)
{
	return ((size_t)(strrchr(info->dotted, '.') - info->dotted));
}

/* Logs the counters of one group, from info on; returns the first of the next group. */
static const struct counter_info *
log_group(const struct all_counters *c, const struct counter_info *info)
{
	struct log_field f[GROUP_MAX];
	size_t n = 0, length = group_length(info);
	char *group = g_strndup(info->dotted, length);

	for (; info->name != NULL && group_length(info) == length &&
	       strncmp(info->dotted, group, length) == 0;
	     info++)
		if (n < GROUP_MAX)
			f[n++] = LF_U64(info->dotted + length + 1, counter_get(c, info));
	log_event_fields(LOG_INFO, NULL, group, f, n);
	g_free(group);
	return (info);
}

static void
log_stage(const char *name, const struct histogram *h)
{
	log_event(LOG_INFO, NULL, "accel.stage", LF_STR("name", name),
	    LF_U64("count", histogram_count(h)),
	    LF_U64("p50-us", histogram_percentile(h, 0.5) / 1000),
	    LF_U64("p95-us", histogram_percentile(h, 0.95) / 1000),
	    LF_U64("p99-us", histogram_percentile(h, 0.99) / 1000),
	    LF_U64("max-us", h->max_ns / 1000));
}

static void
log_pools(const struct io_pools_status *pools)
{
	char name[IO_DEVICE_NAME];

	for (size_t i = 0; i < pools->nlanes; i++) {
		const struct io_lane_status *l = &pools->lane[i];

		log_event(LOG_INFO, NULL, "accel.threads", LF_STR("name", l->name),
		    LF_U64("threads", l->threads), LF_U64("busy", l->busy),
		    LF_U64("queued", l->queued), LF_U64("jobs", l->jobs),
		    LF_U64("oldest-us", l->oldest_ns / 1000));
	}
	for (size_t i = 0; i < pools->ndevices; i++) {
		const struct io_device_status *d = &pools->device[i];

		log_event(LOG_INFO, NULL, "accel.device", LF_STR("name", io_device_name(d, name)),
		    LF_STR("mount", d->mount), LF_U64("busy", d->busy), LF_U64("queued", d->queued),
		    LF_U64("refused", d->refused), LF_U64("oldest-us", d->oldest_ns / 1000),
		    LF_U64("stuck", d->stuck));
	}
}

static void
log_memory(void)
{
	struct log_field f[IO_MEMORY_FIELDS];
	struct io_memory_status memory;

	take_memory(&memory);
	log_event_fields(LOG_INFO, NULL, "accel.memory", f,
	    io_memory_status_fields(&memory.pressure, f));
}

void
status_log(const struct status *s)
{
	const struct accel_counters *c = &s->counters->accel;
	struct io_pools_status pools;

	log_event(LOG_INFO, NULL, "accel.stats", LF_STR("mode", s->mode),
	    LF_U64("uptime-s", uptime_s(s)), LF_U64("connections", c->conns),
	    LF_U64("connections-limit", c->conns_max), LF_U64("waiting", c->warm.waiting),
	    LF_U64("idle-s", idle_s(s)), LF_U64("cpu-ms", clock_process_cpu_ns() / NS_PER_MS));
	advice_log_all(s->advice);
	for (const struct counter_info *info = accel_counter_infos; info->name != NULL;)
		info = log_group(s->counters, info);
	for (size_t i = 0; i < G_N_ELEMENTS(stages); i++)
		log_stage(stages[i].name, stage_of(s, &stages[i]));
	io_pools_status_take(&pools, s->pools);
	log_pools(&pools);
	log_memory();
}
