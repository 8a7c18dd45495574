/* server/status/html.c -- the status page for people.  It is complete without its script, which
 * keeps it up to date.
 */

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/must.h"
#include "server/status/status.h"

static const char css[] =
#include "server/status/page.css.inc"
    ;

/* Asks for ?json once a second, and writes each number to the element whose data-k names it
 * ("stages/total/p99_ns").  Its show() formats like put_value().  When rows appear or disappear, it
 * loads the whole page again. */
static const char js[] =
#include "server/status/page.js.inc"
    ;

/* ---- numbers, as show() of the script writes them */

enum kind { COUNT, BYTES, TIME_NS, PERCENT, INTEGER, UPTIME, TROUBLE };

static const struct {
	char letter;
	double unit, base;
	const char *names[6];
} kinds[] = {
	[COUNT] = { 'n', 1, 1000, { "", "k", "M", "G", "T" } },
	[BYTES] = { 'b', 1, 1024, { "B", "kB", "MB", "GB", "TB" } },
	[TIME_NS] = { 't', 1e-3, 1000, { "\302\265s", "ms", "s" } },
	[PERCENT] = { 'p', 100, INFINITY, { "%" } },
	[INTEGER] = { 'i', 1, INFINITY, { "" } },
	[TROUBLE] = { 'z', 1, 1000, { "", "k", "M", "G", "T" } }, /* red unless 0 */
	[UPTIME] = { 'u', 1, INFINITY, { "" } },
};

static void
put_digits(struct buf *out, double v)
{
	buf_printf(out, "%.*f", v == floor(v) ? 0 : v < 10 ? 2 : v < 100 ? 1 : 0, v);
}

static void
put_uptime(struct buf *out, uint64_t s)
{
	if (s >= 86400)
		buf_printf(out, "%" PRIu64 " d ", s / 86400);
	buf_printf(out, "%02u:%02u:%02u", (unsigned)(s / 3600 % 24), (unsigned)(s / 60 % 60),
	    (unsigned)(s % 60));
}

/* Returns the name of the unit. */
static const char *
put_value(struct buf *out, enum kind kind, double v)
{
	const char *const *name = kinds[kind].names;

	if (kind == UPTIME) {
		put_uptime(out, (uint64_t)v);
		return ("");
	}
	if (kind == TIME_NS && v > 0 && v < (double)HISTOGRAM_MIN_NS) {
		buf_str(out, "&lt;10"); /* the smallest measured value */
		return (name[0]);
	}
	if (kind == TIME_NS && v == 0) {
		buf_str(out, "\342\200\223");
		return ("");
	}
	v *= kinds[kind].unit;
	if (kind == PERCENT)
		v = floor(v * 10 + 0.5) / 10;
	for (; v >= kinds[kind].base && name[1] != NULL; name++)
		v /= kinds[kind].base;
	put_digits(out, v);
	return (*name);
}

/* A number that the script updates: key is its place in ?json.  id NULL: none. */
static void
live(struct buf *out, const char *id, const char *key, enum kind kind, double v)
{
	const char *unit;

	buf_str(out, "<b");
	if (id != NULL)
		buf_printf(out, " id=\"%s\"", id);
	buf_printf(out, " data-k=\"%s\" data-f=\"%c\"%s>", key, kinds[kind].letter,
	    kind == TROUBLE && v > 0 ? " class=\"bad\"" : "");
	unit = put_value(out, kind, v);
	buf_str(out, "</b><i");
	if (id != NULL)
		buf_printf(out, " id=\"%s_mult\"", id);
	buf_printf(out, ">%s</i>", unit);
}

static void cell(struct buf *, enum kind, double v, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void
cell(struct buf *out, enum kind kind, double v, const char *fmt, ...)
{
	char key[80];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(key, sizeof(key), fmt, ap);
	va_end(ap);
	buf_str(out, "<td>");
	live(out, NULL, key, kind, v);
	buf_str(out, "</td>");
}

/* ---- the top */

static void
head(struct buf *out, const struct status *s)
{
	buf_str(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		     "<meta name=\"viewport\" content=\"width=device-width\">\n<link rel=\"icon\" "
		     "href=\"data:,\">\n"
		     "<noscript><meta http-equiv=\"refresh\" "
		     "content=\"5\"></noscript>\n<title>accel-server ");
	buf_html(out, s->host);
	buf_str(out, "</title>\n<style>\n");
	buf_str(out, css);
	buf_str(out, "</style>\n</head>\n<body>\n");
}

static void
banner(struct buf *out, const struct status *s)
{
	time_t t = (time_t)s->started_s;
	char date[16], hour[16];
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d", &tm);
	strftime(hour, sizeof(hour), "%H:%M:%S", &tm);
	buf_str(out, "<header>\n<h1>accel-server<small>" STAT_ACCEL_VERSION
		     "</small></h1>\n<p><b id=\"host_name\">");
	buf_html(out, s->host);
	buf_str(out, "</b> at <span id=\"host_addr\">");
	buf_html(out, s->address);
	buf_str(out, "</span></p>\n<p>up ");
	live(out, "uptime", "uptime_seconds", UPTIME, (double)s->uptime_s);
	buf_printf(out,
	    " since <span id=\"start_date\">%s</span> <span id=\"start_time\">%s</span> UTC</p>\n",
	    date, hour);
	buf_str(out, "<p id=\"live\">as of now</p>\n</header>\n");
}

/* The state when the page was loaded. */
static void
helper(struct buf *out, const struct status *s)
{
	time_t t = (time_t)s->helper_since_s;
	char when[32];
	struct tm tm;

	if (s->helpers_lost == 0 && !s->helper_lost)
		return;
	gmtime_r(&t, &tm);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	buf_printf(out,
	    "<p id=\"helper\">helper process: %s since %s UTC, died %" PRIu64 " times</p>\n",
	    s->helper_lost ? "<b>lost</b>" : "runs again", when, s->helpers_lost);
}

static void
certificates(struct buf *out, const struct status *s)
{
	if (s->certificates == 0)
		return;
	buf_printf(out,
	    "<p id=\"certificates\">certificates: the first one ends in %" PRIu64 " days",
	    status_certificate_ends_in_s(s) / 86400);
	if (s->certificates_refused != 0)
		buf_printf(out,
		    "; <b>new files of %" PRIu64 " cannot be used</b>, the last ones are in use",
		    s->certificates_refused);
	buf_str(out, "</p>\n");
}

static void
tile_begin(struct buf *out, const char *title, const char *history)
{
	buf_printf(out, "<section><h2>%s</h2>", title);
	if (history != NULL)
		buf_printf(out,
		    "<svg data-d=\"%s\" viewBox=\"0 0 100 40\" preserveAspectRatio=\"none\">"
		    "<polygon fill=\"var(--a)\" points=\"\"/></svg>",
		    history);
	buf_str(out, "<div class=\"big\">");
}

static void
tiles(struct buf *out, const struct status *s)
{
	const struct histogram *total = &s->stage[stage_total];
	const struct server_counters *c = &s->sum;

	buf_str(out, "<div class=\"tiles\">\n");
	tile_begin(out, "Requests per second", "requests/read");
	live(out, "requests_sliding_avg", "requests/per_second_5s", COUNT, s->requests_5s);
	buf_str(out, "</div><p>");
	live(out, "requests", "requests/read", COUNT, (double)c->conn.requests);
	buf_str(out, " in all, ");
	live(out, "requests_avg", "requests/per_second", COUNT,
	    status_average(s, c->conn.requests));
	buf_str(out, "/s on average</p></section>\n");
	tile_begin(out, "Traffic per second", "traffic/sent_bytes");
	live(out, "requests_sliding_traffic", "traffic/bytes_per_second_5s", BYTES, s->bytes_5s);
	buf_str(out, "</div><p>");
	live(out, "traffic", "traffic/sent_bytes", BYTES, (double)c->conn.bytes_sent);
	buf_str(out, " in all, ");
	live(out, "traffic_avg", "traffic/bytes_per_second", BYTES,
	    status_average(s, c->conn.bytes_sent));
	buf_str(out, "/s on average</p></section>\n");
	tile_begin(out, "99 of 100 answered in", NULL);
	live(out, NULL, "stages/total/p99_ns", TIME_NS, (double)histogram_percentile(total, 0.99));
	buf_str(out, "</div><p>half of them in ");
	live(out, NULL, "stages/total/p50_ns", TIME_NS, (double)histogram_percentile(total, 0.5));
	buf_str(out, "</p></section>\n");
	tile_begin(out, "Found in the cache", NULL);
	live(out, NULL, "cache/hit_ratio", PERCENT, status_hit_ratio(s));
	buf_str(out, "</div><p>");
	live(out, NULL, "cache/entries", COUNT, (double)s->cached);
	buf_str(out, " of ");
	live(out, NULL, "cache/entries_limit", COUNT, (double)s->cached_limit);
	buf_str(out, " names known, ");
	live(out, NULL, "conditions/sets", COUNT, (double)s->sets);
	buf_str(out, " sets of conditions</p></section>\n");
	tile_begin(out, "Waiting for disks", NULL);
	live(out, NULL, "disk/jobs", INTEGER, s->disk_jobs);
	buf_str(out, "</div><p>the oldest for ");
	live(out, NULL, "disk/oldest_ns", TIME_NS, (double)s->disk_oldest_ns);
	buf_str(out, "</p></section>\n");
	tile_begin(out, "Failures (5xx)", NULL);
	live(out, NULL, "counters/server.requests.replied-5xx", TROUBLE,
	    (double)c->reply.replies_5xx);
	buf_str(out, "</div><p>");
	live(out, NULL, "counters/server.requests.replied-4xx", COUNT,
	    (double)c->reply.replies_4xx);
	buf_str(out, " replies 4xx, ");
	live(out, NULL, "counters/server.connections.client-gone", COUNT,
	    (double)c->conn.client_gone);
	buf_str(out, " clients gone</p></section>\n</div>\n");
}

/* ---- connections and stages */

static void
connections(struct buf *out, const struct status *s)
{
	char key[48];
	unsigned i;

	buf_str(out, "<section><h2>Connections<small>");
	live(out, "connections", "connections/open", INTEGER, (double)s->connections);
	buf_str(out, " of ");
	live(out, NULL, "connections/limit", INTEGER, (double)s->connections_limit);
	buf_str(out, " open, ");
	live(out, NULL, "connections/streams", INTEGER, (double)s->streams);
	buf_str(out, " streams of HTTP/2</small></h2>\n<div class=\"stack\">");
	for (i = 0; i < NPHASES; i++)
		buf_printf(out,
		    "<i class=\"c%u\" style=\"flex-grow:%" PRIu64
		    "\" data-g=\"connections/by_state/%s\"></i>",
		    i, s->phase[i], phase_infos[i].name);
	buf_str(out, "</div>\n<ul class=\"legend\">\n");
	for (i = 0; i < NPHASES; i++) {
		snprintf(key, sizeof(key), "connections/by_state/%s", phase_infos[i].name);
		buf_printf(out, "<li><u class=\"c%u\"></u>", i);
		live(out, NULL, key, INTEGER, (double)s->phase[i]);
		buf_printf(out, " %s</li>\n", phase_infos[i].doc);
	}
	buf_str(out, "</ul></section>\n");
}

/* Position between 10 us and 100 s in per cent, on a logarithmic scale. */
static double
place_of(uint64_t ns)
{
	double at = log10((double)(ns != 0 ? ns : 1) / 1e4) / 7 * 100;

	return (at < 0 ? 0 : at > 100 ? 100 : at);
}

static void
stage_row(struct buf *out, unsigned i, const struct histogram *h)
{
	uint64_t p50 = histogram_percentile(h, 0.5), p99 = histogram_percentile(h, 0.99),
		 count = histogram_count(h);
	const char *name = stage_infos[i].name;

	buf_printf(out, "<tr><td>%s</td>", name);
	cell(out, COUNT, (double)count, "stages/%s/count", name);
	cell(out, TIME_NS, (double)p50, "stages/%s/p50_ns", name);
	cell(out, TIME_NS, (double)p99, "stages/%s/p99_ns", name);
	cell(out, TIME_NS, (double)h->max_ns, "stages/%s/max_ns", name);
	buf_printf(out, "<td class=\"wide\"><div class=\"track%s\" data-s=\"stages/%s\">",
	    count == 0 ? " none" : "", name);
	buf_printf(out,
	    "<i style=\"left:%.2f%%;width:%.2f%%\"></i><i style=\"left:%.2f%%\"></i><i "
	    "style=\"left:%.2f%%\"></i>",
	    place_of(p50), place_of(p99) - place_of(p50), place_of(p50), place_of(h->max_ns));
	buf_str(out, "</div></td></tr>\n");
}

static void
stages(struct buf *out, const struct status *s)
{
	unsigned i;

	buf_str(out, "<section><h2>Where the time goes<small>total: every request; stages: those "
		     "that were not hot</small></h2>\n"
		     "<table><thead><tr><th>stage</th><th>requests</th><th>half within</th><th>99 "
		     "% within</th><th>longest</th><th class=\"wide\"><span "
		     "class=\"axis\"><span>10 \302\265s</span><span>100 \302\265s</span><span>1 "
		     "ms</span><span>10 ms</span><span>100 ms</span><span>1 s</span><span>10 "
		     "s</span></span></th></tr></thead>\n"
		     "<tbody>\n");
	for (i = 0; i < NSTAGES; i++)
		stage_row(out, i, &s->stage[i]);
	buf_str(out, "</tbody></table></section>\n");
}

/* ---- tables */

static void
table_begin(struct buf *out, const char *title, const char *const *columns)
{
	buf_printf(out, "<section><h2>%s</h2>\n<table><thead><tr>", title);
	for (; *columns != NULL; columns++)
		buf_printf(out, "<th>%s</th>", *columns);
	buf_str(out, "</tr></thead>\n<tbody>\n");
}

static void
table_end(struct buf *out)
{
	buf_str(out, "</tbody></table></section>\n");
}

static void
lanes(struct buf *out, const struct status *s)
{
	static const char *const columns[] = { "for", "threads", "busy", "queued", "done",
		"oldest job", NULL };
	size_t i;

	table_begin(out, "Threads that wait for disks", columns);
	for (i = 0; i < s->threads.nlanes; i++) {
		const struct io_lane_status *l = &s->threads.lane[i];

		buf_printf(out, "<tr><td>%s</td>", l->name);
		cell(out, INTEGER, l->threads, "threads/%s/threads", l->name);
		cell(out, INTEGER, l->busy, "threads/%s/busy", l->name);
		cell(out, INTEGER, l->queued, "threads/%s/queued", l->name);
		cell(out, COUNT, (double)l->jobs, "threads/%s/jobs", l->name);
		cell(out, TIME_NS, (double)l->oldest_ns, "threads/%s/oldest_ns", l->name);
		buf_str(out, "</tr>\n");
	}
	table_end(out);
}

static void
devices(struct buf *out, const struct status *s)
{
	static const char *const columns[] = { "device", "threads", "queued", "refused",
		"oldest job", NULL };
	char name[IO_DEVICE_NAME];
	size_t i;

	if (s->threads.ndevices == 0)
		return;
	table_begin(out, "Devices they wait for", columns);
	for (i = 0; i < s->threads.ndevices; i++) {
		const struct io_device_status *d = &s->threads.device[i];

		buf_printf(out, "<tr><td>%s ", io_device_name(d, name));
		buf_html(out, text_of(d->mount));
		buf_str(out, "</td>");
		cell(out, INTEGER, d->busy, "devices/%zu/busy", i);
		cell(out, INTEGER, d->queued, "devices/%zu/queued", i);
		cell(out, TROUBLE, (double)d->refused, "devices/%zu/refused", i);
		cell(out, TIME_NS, (double)d->oldest_ns, "devices/%zu/oldest_ns", i);
		buf_str(out, "</tr>\n");
	}
	table_end(out);
}

/* A row for each of machine and cgroup whose pressure the kernel has. */
static void
pressure(struct buf *out, const struct pressure *p)
{
	static const char *const columns[] = { "waiting for memory, last 10 s", "some processes",
		"all processes", "some, since the start", NULL };
	unsigned i;

	if (!psi_known(&p->psi[PRESSURE_MACHINE]) && !psi_known(&p->psi[PRESSURE_CGROUP]))
		return;
	table_begin(out, "Memory pressure", columns);
	for (i = 0; i < PRESSURE_SCOPES; i++) {
		const struct psi *psi = &p->psi[i];
		const char *scope = pressure_scopes[i];

		if (!psi_known(psi))
			continue;
		buf_printf(out, "<tr><td>%s</td>", scope);
		cell(out, PERCENT, (double)psi->some_10s / 1e4, "memory/pressure/%s/some_10s",
		    scope);
		cell(out, PERCENT, (double)psi->full_10s / 1e4, "memory/pressure/%s/full_10s",
		    scope);
		cell(out, TIME_NS, (double)psi->some_us * 1e3, "memory/pressure/%s/some_ns", scope);
		buf_str(out, "</tr>\n");
	}
	table_end(out);
}

static void
memory_row(struct buf *out, const char *what, enum kind kind, uint64_t v, const char *key)
{
	if (v == PRESSURE_NONE)
		return;
	buf_printf(out, "<tr><td>%s</td>", what);
	cell(out, kind, (double)v, "%s", key);
	buf_str(out, "</tr>\n");
}

static void
memory(struct buf *out, const struct status *s)
{
	static const char *const columns[] = { "memory", "now", NULL };
	const struct io_memory_status *m = &s->memory;
	const struct server_counters *c = &s->sum;

	table_begin(out, "Memory of files", columns);
	memory_row(out, "may be used", BYTES, m->pressure.limit_bytes, "memory/limit_bytes");
	memory_row(out, "used, with files", BYTES, m->pressure.used_bytes, "memory/used_bytes");
	memory_row(out, "dropped and read again", BYTES, m->pressure.refault_bytes,
	    "memory/refault_bytes");
	if (m->holds) {
		memory_row(out, "held by the server", BYTES, m->held.bytes, "memory/hotset_bytes");
		memory_row(out, "longest wait of a loop", TIME_NS, m->held.longest_wait_ns,
		    "memory/longest_loop_wait_ns");
	}
	memory_row(out, "waits of loops", TROUBLE, c->io.loop_waits,
	    "counters/server.io.loop-waits");
	memory_row(out, "windows gone before they were sent", COUNT, c->io.pages_gone,
	    "counters/server.io.pages-gone");
	table_end(out);
}

static void
backend_times(struct buf *out, const struct status_backend *b, size_t i)
{
	static const struct {
		enum backend_stage stage;
		const char *key;
		double p;
	} cells[] = { { BACKEND_first_byte, "p50", 0.5 }, { BACKEND_first_byte, "p99", 0.99 },
		{ BACKEND_reply, "p99", 0.99 }, { BACKEND_wait, "p99", 0.99 } };
	size_t k;

	for (k = 0; k < NELEM(cells); k++)
		cell(out, TIME_NS,
		    (double)histogram_percentile(&b->stage[cells[k].stage], cells[k].p),
		    "backends/%zu/stages/%s/%s_ns", i, backend_stage_names[cells[k].stage],
		    cells[k].key);
}

/* State and reason do not change until the page is loaded again. */
static void
health(struct buf *out, const struct status_backend *b)
{
	bool well = b->health.state == BACKEND_UP || b->health.state == BACKEND_SLOW_START;
	time_t t = (time_t)b->since_s;
	char when[32];
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	buf_printf(out, "<td title=\"since %s UTC\"><b%s>%s</b>", when,
	    well ? "" : " class=\"bad\"", backend_state_names[b->health.state]);
	if (b->health.reason[0] != '\0') {
		buf_str(out, " <small>");
		buf_html(out, text_of(b->health.reason));
		buf_str(out, "</small>");
	}
	buf_str(out, "</td>");
}

static void
backends(struct buf *out, const struct status *s)
{
	static const char *const columns[] = { "application", "requests", "failed", "in progress",
		"waiting", "sockets", "idle", "state", "failed for clients",
		"first byte, half within", "99 % within", "whole reply, 99 % within",
		"waited, 99 % within", NULL };
	size_t i;

	if (s->nbackends == 0)
		return;
	table_begin(out, "Applications", columns);
	for (i = 0; i < s->nbackends; i++) {
		const struct status_backend *b = &s->backend[i];

		buf_str(out, "<tr><td>");
		buf_html(out, text_of(b->name));
		buf_str(out, "</td>");
		cell(out, COUNT, (double)b->requests, "backends/%zu/requests", i);
		cell(out, TROUBLE, (double)b->failed, "backends/%zu/failed", i);
		cell(out, INTEGER, b->load, "backends/%zu/load", i);
		cell(out, INTEGER, b->waiting, "backends/%zu/waiting", i);
		cell(out, INTEGER, b->pool_size, "backends/%zu/sockets", i);
		cell(out, INTEGER, b->idle, "backends/%zu/sockets_idle", i);
		health(out, b);
		cell(out, TROUBLE, (double)status_own_5xx(b), "backends/%zu/own_5xx_sum", i);
		backend_times(out, b, i);
		buf_str(out, "</tr>\n");
	}
	table_end(out);
}

static void
workers(struct buf *out, const struct status *s)
{
	static const char *const columns[] = { "worker", "connections", "requests", "per second",
		"sent", "per second", NULL };
	size_t i;

	table_begin(out, "Workers", columns);
	for (i = 0; i < s->nworkers; i++) {
		const struct status_worker *w = &s->worker[i];

		buf_printf(out, "<tr><td>%zu</td>", i);
		cell(out, INTEGER, (double)w->connections, "workers/%zu/connections", i);
		cell(out, COUNT, (double)w->requests, "workers/%zu/requests", i);
		cell(out, COUNT, w->requests_5s, "workers/%zu/requests_per_second_5s", i);
		cell(out, BYTES, (double)w->bytes_sent, "workers/%zu/sent_bytes", i);
		cell(out, BYTES, w->bytes_5s, "workers/%zu/bytes_per_second_5s", i);
		buf_str(out, "</tr>\n");
	}
	table_end(out);
}

static void
counters(struct buf *out, const struct status *s)
{
	const struct counter_info *ci;
	char key[80];

	buf_str(out, "<section><details><summary>All counters</summary>\n<dl>\n");
	for (ci = server_counter_infos; ci->name != NULL; ci++) {
		snprintf(key, sizeof(key), "counters/%s", ci->dotted);
		buf_printf(out, "<div><dt title=\"%s\">%s</dt><dd>", ci->doc, ci->dotted);
		live(out, NULL, key, INTEGER, (double)counter_get(&s->sum, ci));
		buf_str(out, "</dd></div>\n");
	}
	buf_str(out, "</dl></details></section>\n");
}

/* The script loads the page anew when this changes. */
static void
main_begin(struct buf *out, const struct status *s)
{
	size_t i;

	buf_printf(out, "<main data-rows=\"%zu,%zu,%zu", s->nworkers, s->nbackends,
	    s->threads.ndevices);
	for (i = 0; i < s->nbackends; i++)
		buf_printf(out, ",%s", backend_state_names[s->backend[i].health.state]);
	buf_str(out, "\">\n");
}

void
status_html(struct buf *out, const struct status *s)
{
	head(out, s);
	banner(out, s);
	main_begin(out, s);
	helper(out, s);
	certificates(out, s);
	tiles(out, s);
	connections(out, s);
	stages(out, s);
	buf_str(out, "<div class=\"pair\">\n");
	lanes(out, s);
	devices(out, s);
	buf_str(out, "</div>\n<div class=\"pair\">\n");
	memory(out, s);
	pressure(out, &s->memory.pressure);
	buf_str(out, "</div>\n");
	backends(out, s);
	workers(out, s);
	running_html(out, &s->running);
	counters(out, s);
	buf_str(out, "</main>\n<script>\n");
	buf_str(out, js);
	buf_str(out, "</script>\n</body>\n</html>\n");
}
