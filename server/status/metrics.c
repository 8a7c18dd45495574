/* server/status/metrics.c -- status for Prometheus: text format 0.0.4.
 *
 *   server.cache.hits               accel_cache_hits_total
 *   server.tls.done.tlsv1.3.full    accel_tls_handshakes_total{version="TLSv1.3",result="full"}
 *   server.tls.failed.late          accel_tls_failed_total{reason="late"}
 *   server.io.linux-aio.async-read  accel_io_reads_total{backend="linux-aio",mode="async"}
 *   stages                          accel_stage_seconds, a histogram with label stage
 */
#include <inttypes.h>
#include <string.h>

#include "base/must.h"
#include "io/memory/process_status.h"
#include "server/status/status.h"

/* ---- counters */

static const char *
without_server(const char *dotted)
{
	return (strncmp(dotted, "server.", 7) == 0 ? dotted + 7 : dotted);
}

/* "own-5xx.file" belongs to a family; its part after the point, or NULL. */
static const char *
own_5xx_cause(const char *name)
{
	return (strncmp(name, "own-5xx.", 8) == 0 ? name + 8 : NULL);
}

/* "io.linux-aio.async-read" belongs to a family; *mode is the part after the backend. */
static const char *
io_mode(const char *name)
{
	return (strncmp(name, "io.", 3) == 0 ? strchr(name + 3, '.') : NULL);
}

/* "tls.done.tlsv1.3.full" and "tls.failed.late" belong to families, and so do their sums. */
static bool
is_of_tls(const char *name)
{
	return (strncmp(name, "tls.", 4) == 0);
}

static void
counters(const struct prom *p, const struct status *s)
{
	const struct counter_info *ci;

	for (ci = server_counter_infos; ci->name != NULL; ci++)
		if (io_mode(without_server(ci->dotted)) == NULL &&
		    own_5xx_cause(without_server(ci->dotted)) == NULL &&
		    !is_of_tls(without_server(ci->dotted)))
			prom_counter(p, without_server(ci->dotted), ci->doc,
			    counter_get(&s->sum, ci));
}

static void
io_counters_of_backends(const struct prom *p, const struct status *s)
{
	const struct counter_info *ci;

	prom_family(p, "io_reads_total", "counter",
	    "windows of files: async, brought in off the loop; sync, served on it or by a "
	    "fallback");
	for (ci = server_counter_infos; ci->name != NULL; ci++) {
		const char *name = without_server(ci->dotted), *mode = io_mode(name);

		if (mode != NULL)
			buf_printf(p->out,
			    "accel_io_reads_total{backend=\"%.*s\",mode=\"%.*s\"} %" PRIu64 "\n",
			    (int)(mode - name - 3), name + 3, (int)strcspn(mode + 1, "-"), mode + 1,
			    counter_get(&s->sum, ci));
	}
}

static void
own_5xx(const struct prom *p, const struct status *s)
{
	const struct counter_info *ci;
	const char *cause;

	prom_family(p, "own_5xx_total", "counter",
	    "Replies with a status of 500 to 599 that the server made itself, by cause.");
	for (ci = server_counter_infos; ci->name != NULL; ci++)
		if ((cause = own_5xx_cause(without_server(ci->dotted))) != NULL)
			buf_printf(p->out, "accel_own_5xx_total{cause=\"%s\"} %" PRIu64 "\n", cause,
			    counter_get(&s->sum, ci));
}

static void
tls_handshakes(const struct prom *p, const struct status *s)
{
	const struct conn_counters *n = &s->sum.conn;

	prom_family(p, "tls_handshakes_total", "counter",
	    "TLS handshakes done; TLSv1.2 is also those of older versions, where they are "
	    "allowed.");
#define DONE(version, result, field)                                                             \
	buf_printf(p->out,                                                                       \
	    "accel_tls_handshakes_total{version=\"" version "\",result=\"" result "\"} %" PRIu64 \
	    "\n",                                                                                \
	    n->field)
	DONE("TLSv1.3", "full", tls_13_full);
	DONE("TLSv1.3", "resumed", tls_13_resumed);
	DONE("TLSv1.2", "full", tls_12_full);
	DONE("TLSv1.2", "resumed", tls_12_resumed);
#undef DONE
}

static void
tls_failed(const struct prom *p, const struct status *s)
{
	static const char before[] = "server.tls.failed.";
	const struct counter_info *ci;

	prom_family(p, "tls_failed_total", "counter", "TLS handshakes that failed, by reason.");
	for (ci = server_counter_infos; ci->name != NULL; ci++)
		if (strncmp(ci->dotted, before, sizeof(before) - 1) == 0)
			buf_printf(p->out, "accel_tls_failed_total{reason=\"%s\"} %" PRIu64 "\n",
			    ci->dotted + sizeof(before) - 1, counter_get(&s->sum, ci));
}

static void
replies_by_status(const struct prom *p, const struct status *s)
{
	unsigned i;

	prom_family(p, "replies_by_status_total", "counter",
	    "Replies completed, by status; other: below 100 or above 599.");
	for (i = 1; i < NELEM(s->by.status); i++)
		if (s->by.status[i] != 0)
			buf_printf(p->out,
			    "accel_replies_by_status_total{status=\"%u\"} %" PRIu64 "\n",
			    STATUS_MIN + i - 1, s->by.status[i]);
	buf_printf(p->out, "accel_replies_by_status_total{status=\"other\"} %" PRIu64 "\n",
	    s->by.status[0]);
}

static void
host_label(const struct prom *p, const char *family, const struct status *s, unsigned number)
{
	prom_name(p, family);
	buf_char(p->out, '{');
	prom_label(p, "host", hosts_name(s->hosts, number));
}

static void
replies_by_host(const struct prom *p, const struct status *s)
{
	unsigned i, k;

	if (hosts_count(s->hosts) == 0)
		return;
	prom_family(p, "host_replies_total", "counter",
	    "Replies completed, by host and class of status: the first 100 hosts that the "
	    "configuration names, and (other).");
	for (i = 0; i <= HOSTS_MAX; i = hosts_next(s->hosts, i))
		for (k = 1; k < NELEM(s->by.host[i].class); k++) {
			host_label(p, "host_replies_total", s, i);
			buf_printf(p->out, ",class=\"%uxx\"} %" PRIu64 "\n", k,
			    s->by.host[i].class[k]);
		}
	prom_family(p, "host_sent_bytes_total", "counter", "Bytes of their bodies.");
	for (i = 0; i <= HOSTS_MAX; i = hosts_next(s->hosts, i)) {
		host_label(p, "host_sent_bytes_total", s, i);
		buf_printf(p->out, "} %" PRIu64 "\n", s->by.host[i].bytes);
	}
}

/* ---- histograms */

static void
stages(const struct prom *p, const struct status *s)
{
	unsigned i;

	prom_family(p, "stage_seconds", "histogram",
	    "Where the time of requests went; total is of all requests, the others of those that "
	    "were not hot.");
	for (i = 0; i < NSTAGES; i++)
		prom_histogram(p, "stage_seconds", "stage", stage_infos[i].name, &s->stage[i]);
}

/* ---- applications */

static void
backend_row(const struct prom *p, const char *name, const struct status_backend *b, uint64_t v)
{
	prom_name(p, name);
	buf_printf(p->out, "{block=\"%u\",", b->block);
	prom_label(p, "backend", b->name);
	buf_printf(p->out, "} %" PRIu64 "\n", v);
}

static void
backends(const struct prom *p, const struct status *s)
{
#define BACKENDS(name, type, help, field)                                          \
	do {                                                                       \
		size_t i;                                                          \
		if (s->nbackends != 0)                                             \
			prom_family(p, name, type, help);                          \
		for (i = 0; i < s->nbackends; i++)                                 \
			backend_row(p, name, &s->backend[i], s->backend[i].field); \
	} while (0)
	BACKENDS("backend_requests_total", "counter",
	    "Requests that had a socket of this backend and have ended.", requests);
	BACKENDS("backend_failed_total", "counter",
	    "Connects that failed, replies that broke off, were malformed or late.", failed);
	BACKENDS("backend_replies_total", "counter",
	    "Heads of replies of the backend itself, with any status.", replies);
	BACKENDS("backend_cut_total", "counter",
	    "Replies that broke off after their head; the client's connection was cut.", cut);
	BACKENDS("backend_replies_5xx_total", "counter",
	    "Replies of the backend itself with a status of 500 to 599.", replies_5xx);
	BACKENDS("backend_refused_total", "counter",
	    "Requests refused because proxy-core.max-waiters waited for a socket.", refused);
	BACKENDS("backend_retried_total", "counter",
	    "Requests that failed at this backend and went to another one.", retried);
	BACKENDS("backend_state_since_timestamp_seconds", "gauge",
	    "When the state of the backend began, since 1970.", since_s);
	BACKENDS("backend_check_timestamp_seconds", "gauge",
	    "When the last proxy-core.check-url began, since 1970; 0: none yet.", checked_s);
	BACKENDS("backend_check_success_timestamp_seconds", "gauge",
	    "When a check last passed, since 1970; 0: never.", good_s);
	BACKENDS("backend_load", "gauge", "Requests in progress or waiting.", load);
	BACKENDS("backend_waiting", "gauge", "Requests waiting for a socket.", waiting);
	BACKENDS("backend_sockets", "gauge", "Open sockets.", pool_size);
	BACKENDS("backend_sockets_idle", "gauge", "Open sockets without a request.", idle);
	BACKENDS("backend_down", "gauge",
	    "Workers that could not reach it and leave it alone for a while.", down);
#undef BACKENDS
}

/* {block="0",backend="unix:/a", for the labels that follow */
static void
backend_labels(const struct prom *p, const char *name, const struct status_backend *b)
{
	prom_name(p, name);
	buf_printf(p->out, "{block=\"%u\",", b->block);
	prom_label(p, "backend", b->name);
	buf_char(p->out, ',');
}

/* One of the states is 1.  The reason is a label of its own family, which has a row only for a
 * backend that is out: a label that changes begins another series. */
static void
backend_states(const struct prom *p, const struct status *s)
{
	size_t i, k;

	if (s->nbackends == 0)
		return;
	prom_family(p, "backend_state", "gauge", "1: the backend is in that state.");
	for (i = 0; i < s->nbackends; i++)
		for (k = 0; k < BACKEND_NSTATES; k++) {
			backend_labels(p, "backend_state", &s->backend[i]);
			buf_printf(p->out, "state=\"%s\"} %d\n", backend_state_names[k],
			    s->backend[i].health.state == k);
		}
	prom_family(p, "backend_out_info", "gauge", "Why a backend is out, as a label.");
	for (i = 0; i < s->nbackends; i++) {
		const struct backend_health *h = &s->backend[i].health;

		if (h->reason[0] == '\0')
			continue;
		backend_labels(p, "backend_out_info", &s->backend[i]);
		/* it comes from proxy-core/backend_health.c, and no character of it needs an
		 * escape */
		buf_printf(p->out, "state=\"%s\",reason=\"%s\"} 1\n", backend_state_names[h->state],
		    h->reason);
	}
}

static void
backend_faults(const struct prom *p, const struct status *s)
{
	size_t i, k;

	if (s->nbackends != 0)
		prom_family(p, "backend_faults_total", "counter",
		    "Tries that failed at the backend, by kind; bad-status: a status of "
		    "proxy-core.next-upstream.");
	for (i = 0; i < s->nbackends; i++)
		for (k = 0; k < BACKEND_NFAULTS; k++) {
			backend_labels(p, "backend_faults_total", &s->backend[i]);
			buf_printf(p->out, "kind=\"%s\"} %" PRIu64 "\n", backend_fault_names[k],
			    s->backend[i].faults[k]);
		}
}

/* Replies that the server sent to clients in place of the application's. */
static void
backend_own_5xx(const struct prom *p, const struct status *s)
{
	size_t i, k;

	if (s->nbackends != 0)
		prom_family(p, "backend_own_5xx_total", "counter",
		    "Replies 502, 503 and 504 of the server in place of one of the application, by "
		    "cause; no-backend counts at the first of a block.");
	for (i = 0; i < s->nbackends; i++)
		for (k = 0; k < OWN_5XX_CAUSES; k++) {
			const struct own_5xx_info *info = &own_5xx_infos[k];

			backend_labels(p, "backend_own_5xx_total", &s->backend[i]);
			buf_printf(p->out, "status=\"%d\",cause=\"%s\"} %" PRIu64 "\n",
			    info->status, info->name, s->backend[i].own_5xx[k]);
		}
}

static void
backend_stages(const struct prom *p, const struct status *s)
{
	size_t i, k;

	if (s->nbackends != 0)
		prom_family(p, "backend_stage_seconds", "histogram",
		    "Where the time of proxied requests went: wait for a socket, connect of each "
		    "new "
		    "socket, first-byte and reply from the socket on.");
	for (i = 0; i < s->nbackends; i++)
		for (k = 0; k < BACKEND_NSTAGES; k++) {
			const struct status_backend *b = &s->backend[i];
			struct buf labels;
			const struct prom to = { &labels, p->prefix };

			buf_init(&labels, 0);
			buf_printf(&labels, "block=\"%u\",", b->block);
			prom_label(&to, "backend", b->name);
			buf_printf(&labels, ",stage=\"%s\"", backend_stage_names[k]);
			prom_histogram_of(p, "backend_stage_seconds", buf_as_text(&labels),
			    &b->stage[k]);
			buf_free(&labels);
		}
}

static void
connections(const struct prom *p, const struct status *s)
{
	unsigned i;

	prom_family(p, "connections", "gauge", "Connections of clients, by what they are doing.");
	for (i = 0; i < NPHASES; i++)
		buf_printf(p->out, "accel_connections{state=\"%s\"} %" PRIu64 "\n",
		    phase_infos[i].name, s->phase[i]);
	prom_gauge(p, "streams", "Requests that connections of HTTP/2 carry at this moment.",
	    s->streams);
	prom_gauge(p, "connections_limit", "Connections that are accepted at a time.",
	    s->connections_limit);
}

/* The names are those of Prometheus itself. */
static void
configuration(const struct prom *p, const struct status *s)
{
	prom_gauge(p, "config_last_reload_successful",
	    "0: the last reload was refused, or the configuration of an upgrade was; the old one "
	    "is in use.",
	    !s->reload_refused);
	prom_gauge(p, "config_last_reload_success_timestamp_seconds",
	    "When the configuration in use was read, since 1970.", s->loaded_s);
	prom_counter(p, "config-reloads", "Reloads that put a new configuration into use.",
	    s->reloads);
	prom_gauge(p, "first_start_time_seconds",
	    "Start of the first of the processes that upgrades replaced, since 1970: it changes "
	    "with a restart or a crash, not with an upgrade.",
	    s->first_started_s);
	prom_counter(p, "upgrades", "Upgrades (USR2) since then.", s->upgrades);
	prom_counter(p, "upgrades-failed",
	    "Upgrades (USR2) whose new process did not start; this one serves on.",
	    s->upgrades_failed);
	prom_gauge(p, "generations_draining",
	    "Older configurations whose connections have not ended.", s->draining);
}

static void
helper(const struct prom *p, const struct status *s)
{
	prom_gauge(p, "helper_up",
	    "0: the helper process has died and does not run yet; no reload, upgrade, CGI program "
	    "or log rotation.",
	    !s->helper_lost);
	prom_gauge(p, "helper_changed_timestamp_seconds", "When it died or came back, since 1970.",
	    s->helper_since_s);
	prom_counter(p, "helpers-lost", "Helper processes and their guardians that died.",
	    s->helpers_lost);
}

static void
certificates(const struct prom *p, const struct status *s)
{
	prom_gauge(p, "tls_certificates", "Certificates in use.", s->certificates);
	prom_gauge(p, "tls_certificates_refused",
	    "Certificates whose files have changed and cannot be used; the last ones are in use.",
	    s->certificates_refused);
	if (s->certificates != 0)
		prom_gauge(p, "tls_certificate_end_timestamp_seconds",
		    "When the first of them ends, since 1970.", s->certificates_end_s);
	prom_counter(p, "tls-renewals", "Certificates that changed and came into use.",
	    s->renewals);
	prom_counter(p, "tls-renewals-refused", "Certificates that changed and cannot be used.",
	    s->renewals_refused);
}

void
status_metrics(struct buf *out, const struct status *s)
{
	const struct prom prefixed = { out, "accel" }, *p = &prefixed;

	prom_family(p, "build_info", "gauge", "The version, as a label.");
	buf_str(out, "accel_build_info{version=\"" STAT_ACCEL_VERSION "\"} 1\n");
	process_status_metrics(out, s->started_s);
	configuration(p, s);
	helper(p, s);
	certificates(p, s);
	prom_gauge(p, "workers", "Threads with an event loop.", s->nworkers);
	connections(p, s);
	prom_gauge(p, "cache_entries", "Names in the open-file caches.", s->cached);
	prom_gauge(p, "cache_entries_limit", "Names they may hold.", s->cached_limit);
	prom_gauge(p, "condition_sets", "Sets of conditions whose values are kept.", s->sets);
	counters(p, s);
	io_counters_of_backends(p, s);
	own_5xx(p, s);
	tls_handshakes(p, s);
	tls_failed(p, s);
	replies_by_status(p, s);
	replies_by_host(p, s);
	stages(p, s);
	io_pools_status_metrics(p, &s->threads);
	io_memory_status_metrics(p, &s->memory);
	backends(p, s);
	backend_states(p, s);
	backend_faults(p, s);
	backend_own_5xx(p, s);
	backend_stages(p, s);
}
