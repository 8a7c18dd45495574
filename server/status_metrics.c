/* server/status_metrics.c -- status for Prometheus: text format 0.0.4.
 *
 *   server.cache.hits               accel_cache_hits_total
 *   server.io.linux-aio.async-read  accel_io_reads_total{backend="linux-aio",mode="async"}
 *   stages                          accel_stage_seconds, a histogram with label stage
 */
#include <inttypes.h>
#include <stdio.h>

#include "server/status.h"

static void
family(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP accel_%s %s\n# TYPE accel_%s %s\n", name, help, name, type);
}

/* Backslash, quote and line end are escaped; what is no UTF-8 would make the whole page unreadable, so of other bytes
 * only ASCII stays. */
static void
label(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, "%s=\"", name);
	for (; *value != '\0'; value++) {
		if (*value == '\\' || *value == '"')
			buf_char(out, '\\');
		if (*value == '\n')
			buf_str(out, "\\n");
		else
			buf_char(out, *value > ' ' && *value < 127 ? *value : '?');
	}
	buf_char(out, '"');
}

static void
gauge(struct buf *out, const char *name, const char *help, uint64_t v)
{
	family(out, name, "gauge", help);
	buf_printf(out, "accel_%s %" PRIu64 "\n", name, v);
}

/* ---- counters */

static const char *
without_server(const char *dotted)
{
	return (strncmp(dotted, "server.", 7) == 0 ? dotted + 7 : dotted);
}

/* "io.linux-aio.async-read" is one of a family; *mode is what follows the backend. */
static const char *
io_mode(const char *name)
{
	return (strncmp(name, "io.", 3) == 0 ? strchr(name + 3, '.') : NULL);
}

static void
counter(struct buf *out, const char *dotted, const char *help, uint64_t v)
{
	char name[64], *p;

	snprintf(name, sizeof(name), "%s_total", dotted);
	for (p = name; *p != '\0'; p++)
		if (*p == '.' || *p == '-')
			*p = '_';
	family(out, name, "counter", help);
	buf_printf(out, "accel_%s %" PRIu64 "\n", name, v);
}

static void
counters(struct buf *out, const struct status *s)
{
	const struct counter_info *ci;

	for (ci = counter_infos; ci->name != NULL; ci++)
		if (io_mode(without_server(ci->dotted)) == NULL)
			counter(out, without_server(ci->dotted), ci->doc, counter_get(&s->sum, ci));
}

static void
io_counters_of_backends(struct buf *out, const struct status *s)
{
	const struct counter_info *ci;

	family(out, "io_reads_total", "counter", "windows of files: async, brought in off the loop; sync, served on it or by a fallback");
	for (ci = counter_infos; ci->name != NULL; ci++) {
		const char *name = without_server(ci->dotted), *mode = io_mode(name);

		if (mode != NULL)
			buf_printf(out, "accel_io_reads_total{backend=\"%.*s\",mode=\"%.*s\"} %" PRIu64 "\n", (int)(mode - name - 3),
			    name + 3, (int)strcspn(mode + 1, "-"), mode + 1, counter_get(&s->sum, ci));
	}
}

/* ---- histograms */

static const uint64_t bounds_us[] = {
	10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000,
	1000000, 2500000, 5000000, 10000000, 25000000, 50000000, 100000000,
};

static void
stage(struct buf *out, const char *name, const struct histogram *h)
{
	uint64_t count = histogram_count(h);
	unsigned i;

	for (i = 0; i < NELEM(bounds_us); i++)
		buf_printf(out, "accel_stage_seconds_bucket{stage=\"%s\",le=\"%g\"} %" PRIu64 "\n", name,
		    (double)bounds_us[i] / 1e6, histogram_up_to(h, bounds_us[i] * 1000));
	buf_printf(out, "accel_stage_seconds_bucket{stage=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", name, count);
	buf_printf(out, "accel_stage_seconds_sum{stage=\"%s\"} %.9f\n", name, (double)h->sum_ns / 1e9);
	buf_printf(out, "accel_stage_seconds_count{stage=\"%s\"} %" PRIu64 "\n", name, count);
}

static void
stages(struct buf *out, const struct status *s)
{
	unsigned i;

	family(out, "stage_seconds", "histogram", "Where the time of requests went; total is of all requests, the others of those that were not hot.");
	for (i = 0; i < NSTAGES; i++)
		stage(out, stage_infos[i].name, &s->stage[i]);
}

/* ---- applications */

static void
backend_row(struct buf *out, const char *name, const struct status_backend *b, uint64_t v)
{
	buf_printf(out, "accel_%s{block=\"%u\",", name, b->block);
	label(out, "backend", b->name);
	buf_printf(out, "} %" PRIu64 "\n", v);
}

/* A family with a row for each of n members of s->array. */
#define ROWS(out, array, n, row, name, type, help, field)                             \
	do {                                                                          \
		size_t i;                                                             \
		if ((n) != 0)                                                         \
			family(out, name, type, help);                                \
		for (i = 0; i < (n); i++)                                             \
			row(out, name, &s->array[i], s->array[i].field);              \
	} while (0)

static void
backends(struct buf *out, const struct status *s)
{
#define BACKENDS(name, type, help, field) ROWS(out, backend, s->nbackends, backend_row, name, type, help, field)
	BACKENDS("backend_requests_total", "counter", "Requests that had a socket of this backend and are over.", requests);
	BACKENDS("backend_failed_total", "counter", "Connects that failed, replies that broke off, were malformed or late.", failed);
	BACKENDS("backend_load", "gauge", "Requests in progress or waiting.", load);
	BACKENDS("backend_waiting", "gauge", "Requests waiting for a socket.", waiting);
	BACKENDS("backend_sockets", "gauge", "Open sockets.", pool_size);
	BACKENDS("backend_sockets_idle", "gauge", "Open sockets without a request.", idle);
	BACKENDS("backend_down", "gauge", "Workers that could not reach it and leave it alone for a while.", down);
#undef BACKENDS
}

/* ---- threads that wait for disks */

static void
lane_row(struct buf *out, const char *name, const struct io_lane_stats *l, uint64_t v)
{
	buf_printf(out, "accel_%s{lane=\"%s\"} %" PRIu64 "\n", name, l->name, v);
}

static void
device_row(struct buf *out, const char *name, const struct io_device_stats *d, uint64_t v)
{
	char device[STATUS_DEVICE_NAME];

	buf_printf(out, "accel_%s{device=\"%s\"} %" PRIu64 "\n", name, status_device_name(d, device), v);
}

static void
ages(struct buf *out, const struct status *s)
{
	char device[STATUS_DEVICE_NAME];
	size_t i;

	if (s->nlanes != 0)
		family(out, "threads_oldest_job_seconds", "gauge", "Age of the oldest job, waiting or running.");
	for (i = 0; i < s->nlanes; i++)
		buf_printf(out, "accel_threads_oldest_job_seconds{lane=\"%s\"} %.6f\n", s->lane[i].name,
		    (double)s->lane[i].oldest_ns / 1e9);
	if (s->ndevices != 0)
		family(out, "device_oldest_job_seconds", "gauge", "Age of the oldest job for the device.");
	for (i = 0; i < s->ndevices; i++)
		buf_printf(out, "accel_device_oldest_job_seconds{device=\"%s\"} %.6f\n",
		    status_device_name(&s->device[i], device), (double)s->device[i].oldest_ns / 1e9);
}

static void
threads(struct buf *out, const struct status *s)
{
#define LANES(name, type, help, field) ROWS(out, lane, s->nlanes, lane_row, name, type, help, field)
#define DEVICES(name, type, help, field) ROWS(out, device, s->ndevices, device_row, name, type, help, field)
	LANES("threads", "gauge", "Threads that may wait for a disk.", threads);
	LANES("threads_busy", "gauge", "Those that do.", busy);
	LANES("threads_queued", "gauge", "Jobs that wait for a thread.", queued);
	LANES("threads_jobs_total", "counter", "Jobs that a thread has taken.", jobs);
	DEVICES("device_busy", "gauge", "Threads that wait for the device.", busy);
	DEVICES("device_queued", "gauge", "Jobs for the device that wait for a thread.", queued);
	DEVICES("device_refused_total", "counter", "Jobs refused because its queue was full or it hangs.", refused);
#undef LANES
#undef DEVICES
	ages(out, s);
}

static void
connections(struct buf *out, const struct status *s)
{
	unsigned i;

	family(out, "connections", "gauge", "Connections of clients, by what they are doing.");
	for (i = 0; i < NPHASES; i++)
		buf_printf(out, "accel_connections{state=\"%s\"} %" PRIu64 "\n", phase_infos[i].name, s->phase[i]);
	gauge(out, "connections_limit", "Connections that are accepted at a time.", s->connections_limit);
}

void
status_metrics(struct buf *out, const struct status *s)
{
	family(out, "build_info", "gauge", "The version, as a label.");
	buf_str(out, "accel_build_info{version=\"" STAT_ACCEL_VERSION "\"} 1\n");
	gauge(out, "start_time_seconds", "When the server was started, since 1970.", s->started_s);
	gauge(out, "workers", "Threads with an event loop.", s->nworkers);
	connections(out, s);
	gauge(out, "cache_entries", "Names in the open-file caches.", s->cached);
	gauge(out, "cache_entries_limit", "Names they may hold.", s->cached_limit);
	counters(out, s);
	io_counters_of_backends(out, s);
	stages(out, s);
	threads(out, s);
	backends(out, s);
}
