/* server/status/text.c -- numbers as lines for programs: ?auto, and all counters by name. */
#include <glib.h>
#include <inttypes.h>
#include <stdarg.h>

#include "base/must.h"
#include "server/status/status.h"

/* ---- ?auto: names and order are what monitoring has parsed for decades */

static void
repeat(struct buf *out, char c, uint64_t n)
{
	while (n-- > 0)
		buf_char(out, c);
}

void
status_auto(struct buf *out, const struct status *s)
{
	unsigned i;

	buf_printf(out, "Total Accesses: %" PRIu64 "\n", s->sum.conn.requests);
	buf_printf(out, "Total kBytes: %" PRIu64 "\n", s->sum.conn.bytes_sent / 1024);
	buf_printf(out, "Uptime: %" PRIu64 "\n", s->uptime_s);
	buf_printf(out, "BusyServers: %" PRIu64 "\n", s->busy);
	buf_printf(out, "IdleServers: %" PRIu64 "\n", s->phase[phase_idle]);
	buf_printf(out, "Traffic: %.0f\n", status_average(s, s->sum.conn.bytes_sent));
	buf_printf(out, "Traffic5s: %.0f\n", s->bytes_5s);
	buf_str(out, "Scoreboard: ");
	for (i = 0; i < NPHASES; i++)
		if (i != phase_idle)
			repeat(out, phase_infos[i].letter, s->phase[i]);
	repeat(out, phase_infos[phase_idle].letter, s->phase[phase_idle]);
	buf_char(out, '\n');
}

/* ---- statistics: "name: integer", sorted by name */

static void line(GPtrArray *, uint64_t v, const char *fmt, ...) G_GNUC_PRINTF(3, 4);

static void
line(GPtrArray *lines, uint64_t v, const char *fmt, ...)
{
	GString *s = g_string_new(NULL);
	va_list ap;

	va_start(ap, fmt);
	g_string_vprintf(s, fmt, ap);
	va_end(ap);
	g_string_append_printf(s, ": %" PRIu64 "\n", v);
	g_ptr_array_add(lines, g_string_free(s, FALSE));
}

static void
counter_line(void *lines, const char *name, uint64_t v)
{
	line(lines, v, "%s", name);
}

static void
gauge_lines(GPtrArray *lines, const struct status *s)
{
	unsigned i;

	line(lines, s->uptime_s, "server.uptime-s");
	line(lines, s->first_started_s, "server.first-started-s");
	line(lines, s->upgrades, "server.upgrades");
	line(lines, s->nworkers, "server.workers");
	line(lines, s->connections, "server.connections.open");
	line(lines, s->connections_limit, "server.connections.limit");
	for (i = 0; i < NPHASES; i++)
		line(lines, s->phase[i], "server.connections.in.%s", phase_infos[i].name);
	line(lines, s->streams, "server.connections.streams");
	line(lines, s->cached, "server.cache.entries");
	line(lines, s->cached_limit, "server.cache.entries-limit");
	line(lines, s->sets, "server.conditions.sets");
	line(lines, !s->helper_lost, "server.helper.up");
	line(lines, s->helpers_lost, "server.helper.lost");
	line(lines, s->helper_since_s, "server.helper.changed-s");
	line(lines, s->certificates, "server.tls.certificates");
	line(lines, s->certificates_refused, "server.tls.certificates-refused");
	line(lines, status_certificate_ends_in_s(s), "server.tls.certificate-ends-in-s");
	line(lines, s->renewals, "server.tls.renewals");
	line(lines, s->renewals_refused, "server.tls.renewals-refused");
	line(lines, (uint64_t)s->requests_5s, "server.requests.per-s");
	line(lines, (uint64_t)s->bytes_5s, "server.bytes-sent.per-s");
}

static void
stage_lines(GPtrArray *lines, const struct status *s)
{
	unsigned i;

	for (i = 0; i < NSTAGES; i++) {
		const struct histogram *h = &s->stage[i];
		const char *name = stage_infos[i].name;

		line(lines, histogram_count(h), "server.stage.%s.count", name);
		line(lines, histogram_percentile(h, 0.5) / 1000, "server.stage.%s.p50-us", name);
		line(lines, histogram_percentile(h, 0.99) / 1000, "server.stage.%s.p99-us", name);
		line(lines, h->max_ns / 1000, "server.stage.%s.max-us", name);
	}
}

static void
reply_lines(GPtrArray *lines, const struct status *s)
{
	unsigned n = hosts_count(s->hosts), i, k;

	for (i = 1; i < NELEM(s->by.status); i++)
		if (s->by.status[i] != 0)
			line(lines, s->by.status[i], "server.requests.replied.%u",
			    STATUS_MIN + i - 1);
	for (i = 0; n != 0 && i <= HOSTS_MAX; i = hosts_next(s->hosts, i)) {
		const char *name = hosts_name(s->hosts, i);

		for (k = 1; k < NELEM(s->by.host[i].class); k++)
			line(lines, s->by.host[i].class[k], "server.hosts.\"%s\".replied-%uxx",
			    name, k);
		line(lines, s->by.host[i].bytes, "server.hosts.\"%s\".bytes-sent", name);
	}
}

static void
server_line(void *lines, const char *name, uint64_t v)
{
	line(lines, v, "server.%s", name);
}

static void
backend_stage_lines(GPtrArray *lines, const struct status_backend *b, const char *name)
{
	unsigned i;

	for (i = 0; i < BACKEND_NSTAGES; i++) {
		const struct histogram *h = &b->stage[i];
		const char *stage = backend_stage_names[i];

#define LINE(v, key) line(lines, v, "proxy-core.%u.backends.\"%s\".%s." key, b->block, name, stage)
		LINE(histogram_count(h), "count");
		LINE(histogram_percentile(h, 0.5) / 1000, "p50-us");
		LINE(histogram_percentile(h, 0.99) / 1000, "p99-us");
		LINE(h->max_ns / 1000, "max-us");
#undef LINE
	}
}

static void
health_lines(GPtrArray *lines, const struct status_backend *b, const char *name)
{
	unsigned i;

	for (i = 0; i < BACKEND_NSTATES; i++)
		line(lines, b->health.state == i, "proxy-core.%u.backends.\"%s\".state.%s",
		    b->block, name, backend_state_names[i]);
	for (i = 0; i < BACKEND_NFAULTS; i++)
		line(lines, b->faults[i], "proxy-core.%u.backends.\"%s\".faults.%s", b->block, name,
		    backend_fault_names[i]);
}

static void
outcome_lines(GPtrArray *lines, const struct status_backend *b, const char *name)
{
	unsigned i;

#define LINE(v, key) line(lines, v, "proxy-core.%u.backends.\"%s\"." key, b->block, name)
	LINE(b->replies, "replies");
	LINE(b->replies_5xx, "replies_5xx");
	LINE(b->cut, "replies_cut");
	LINE(b->retried, "requests_retried");
	LINE(b->since_s, "state_since-s");
	LINE(b->checked_s, "checked-s");
	LINE(b->good_s, "check_passed-s");
#undef LINE
	for (i = 0; i < OWN_5XX_CAUSES; i++)
		line(lines, b->own_5xx[i], "proxy-core.%u.backends.\"%s\".own_5xx.%s", b->block,
		    name, own_5xx_infos[i].name);
}

/* The names are those of lighttpd 1.5, quotes included; the times are ours. */
static void
backend_lines(GPtrArray *lines, const struct status *s)
{
	uint64_t backlogged = 0;
	struct buf name;
	size_t i;

	for (i = 0; i < s->nbackends; i++) {
		const struct status_backend *b = &s->backend[i];
		unsigned g = b->block;

		buf_init(&name, 0);
		buf_log_quoted(&name, text_of(b->name));
		buf_char(&name, '\0');
		line(lines, b->requests, "proxy-core.%u.backends.\"%s\".requests", g, name.p);
		line(lines, b->failed, "proxy-core.%u.backends.\"%s\".requests_failed", g, name.p);
		line(lines, b->load, "proxy-core.%u.backends.\"%s\".load", g, name.p);
		line(lines, b->pool_size, "proxy-core.%u.backends.\"%s\".pool_size", g, name.p);
		health_lines(lines, b, name.p);
		outcome_lines(lines, b, name.p);
		backend_stage_lines(lines, b, name.p);
		buf_free(&name);
		backlogged += b->waiting;
		if (i + 1 < s->nbackends && s->backend[i + 1].block == g)
			continue;
		line(lines, backlogged, "proxy-core.%u.backlogged", g);
		backlogged = 0;
	}
}

/* Names contain colons, too: the last colon ends the name. */
static int
by_name(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	size_t nx = (size_t)(strrchr(x, ':') - x), ny = (size_t)(strrchr(y, ':') - y);
	int c = memcmp(x, y, nx < ny ? nx : ny);

	return (c != 0 ? c : nx < ny ? -1 : nx > ny);
}

void
status_statistics(struct buf *out, const struct status *s)
{
	GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
	unsigned i;

	counters_each(&s->sum, server_counter_infos, counter_line, lines);
	gauge_lines(lines, s);
	reply_lines(lines, s);
	stage_lines(lines, s);
	io_pools_status_each(&s->threads, server_line, lines);
	io_memory_status_each(&s->memory, server_line, lines);
	backend_lines(lines, s);
	g_ptr_array_sort(lines, by_name);
	for (i = 0; i < lines->len; i++)
		buf_str(out, lines->pdata[i]);
	g_ptr_array_free(lines, TRUE);
}
