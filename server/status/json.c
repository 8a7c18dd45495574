/* server/status/json.c -- all numbers as JSON, with stable names that contain the unit. */
#include <inttypes.h>

#include "base/must.h"
#include "server/status/status.h"

typedef void put_histogram(struct buf *, const struct histogram *);

static void
requests(struct buf *out, const struct status *s)
{
	const struct server_counters *c = &s->sum;

	buf_printf(out,
	    "\"requests\":{\"read\":%" PRIu64 ",\"replied\":%" PRIu64
	    ",\"per_second_5s\":%.1f,\"per_second\":%.3f},\n",
	    c->conn.requests, c->reply.replies, s->requests_5s,
	    status_average(s, c->conn.requests));
	buf_printf(out,
	    "\"traffic\":{\"sent_bytes\":%" PRIu64
	    ",\"bytes_per_second_5s\":%.1f,\"bytes_per_second\":%.3f},\n",
	    c->conn.bytes_sent, s->bytes_5s, status_average(s, c->conn.bytes_sent));
}

static void
connections(struct buf *out, const struct status *s)
{
	unsigned i;

	buf_printf(out,
	    "\"connections\":{\"open\":%" PRIu64 ",\"busy\":%" PRIu64 ",\"limit\":%" PRIu64
	    ",\"streams\":%" PRIu64 ",\"by_state\":{",
	    s->connections, s->busy, s->connections_limit, s->streams);
	for (i = 0; i < NPHASES; i++)
		buf_printf(out, "%s\"%s\":%" PRIu64, i != 0 ? "," : "", phase_infos[i].name,
		    s->phase[i]);
	buf_str(out, "}},\n");
}

static void
helper(struct buf *out, const struct status *s)
{
	buf_printf(out, "\"helper\":{\"up\":%d,\"lost\":%" PRIu64 ",\"changed\":%" PRIu64 "},\n",
	    !s->helper_lost, s->helpers_lost, s->helper_since_s);
}

static void
certificates(struct buf *out, const struct status *s)
{
	buf_printf(out,
	    "\"certificates\":{\"n\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"first_end\":%" PRIu64
	    ",\"renewals\":%" PRIu64 ",\"renewals_refused\":%" PRIu64 "},\n",
	    s->certificates, s->certificates_refused, s->certificates_end_s, s->renewals,
	    s->renewals_refused);
}

static void
stages(struct buf *out, const struct status *s, put_histogram *put)
{
	unsigned i;

	buf_str(out, "\"stages\":{");
	for (i = 0; i < NSTAGES; i++) {
		buf_printf(out, "%s\"%s\":", i != 0 ? ",\n" : "", stage_infos[i].name);
		put(out, &s->stage[i]);
	}
	buf_str(out, "},\n");
}

static void
threads(struct buf *out, const struct status *s)
{
	buf_printf(out, "\"disk\":{\"jobs\":%u,\"oldest_ns\":%" PRIu64 "},\n", s->disk_jobs,
	    s->disk_oldest_ns);
	io_pools_status_json(out, &s->threads);
	buf_str(out, ",\n");
	io_memory_status_json(out, &s->memory);
	buf_str(out, ",\n");
}

static void
backend_stages(struct buf *out, const struct status_backend *b, put_histogram *put)
{
	unsigned i;

	buf_str(out, ",\n\"stages\":{");
	for (i = 0; i < BACKEND_NSTAGES; i++) {
		buf_printf(out, "%s\"%s\":", i != 0 ? ",\n" : "", backend_stage_names[i]);
		put(out, &b->stage[i]);
	}
	buf_str(out, "}}");
}

static void
health(struct buf *out, const struct status_backend *b)
{
	unsigned i;

	buf_printf(out, ",\"state\":\"%s\",\"since\":%" PRIu64 ",\"reason\":",
	    backend_state_names[b->health.state], b->since_s);
	buf_json(out, text_of(b->health.reason));
	buf_printf(out,
	    ",\"checked\":%" PRIu64 ",\"check_passed\":%" PRIu64 ",\"retried\":%" PRIu64
	    ",\"faults\":{",
	    b->checked_s, b->good_s, b->retried);
	for (i = 0; i < BACKEND_NFAULTS; i++)
		buf_printf(out, "%s\"%s\":%" PRIu64, i != 0 ? "," : "", backend_fault_names[i],
		    b->faults[i]);
	buf_char(out, '}');
}

static void
own_5xx(struct buf *out, const struct status_backend *b)
{
	unsigned i;

	buf_printf(out,
	    ",\"replies\":%" PRIu64 ",\"replies_5xx\":%" PRIu64 ",\"cut\":%" PRIu64
	    ",\"own_5xx_sum\":%" PRIu64 ",\"own_5xx\":{",
	    b->replies, b->replies_5xx, b->cut, status_own_5xx(b));
	for (i = 0; i < OWN_5XX_CAUSES; i++)
		buf_printf(out, "%s\"%s\":%" PRIu64, i != 0 ? "," : "", own_5xx_infos[i].name,
		    b->own_5xx[i]);
	buf_char(out, '}');
}

static void
backends(struct buf *out, const struct status *s, put_histogram *put)
{
	size_t i;

	buf_str(out, "\"backends\":[");
	for (i = 0; i < s->nbackends; i++) {
		const struct status_backend *b = &s->backend[i];

		buf_printf(out, "%s{\"block\":%u,\"name\":", i != 0 ? ",\n" : "", b->block);
		buf_json(out, text_of(b->name));
		buf_printf(out,
		    ",\"requests\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"load\":%u,\"waiting\":%u",
		    b->requests, b->failed, b->load, b->waiting);
		buf_printf(out,
		    ",\"sockets\":%u,\"sockets_idle\":%u,\"workers_that_find_it_down\":%u",
		    b->pool_size, b->idle, b->down);
		health(out, b);
		own_5xx(out, b);
		backend_stages(out, b, put);
	}
	buf_str(out, "],\n");
}

static void
replies_by(struct buf *out, const struct status *s)
{
	unsigned n = hosts_count(s->hosts), i, k;
	const char *comma = "";

	buf_str(out, "\"replies_by_status\":{");
	for (i = 0; i < NELEM(s->by.status); i++) {
		if (s->by.status[i] == 0)
			continue;
		buf_printf(out, "%s\"%u\":%" PRIu64, comma, i != 0 ? STATUS_MIN + i - 1 : 0,
		    s->by.status[i]);
		comma = ",";
	}
	buf_str(out, "},\n\"hosts\":[");
	for (i = 0; n != 0 && i <= HOSTS_MAX; i = hosts_next(s->hosts, i)) {
		const struct host_counters *h = &s->by.host[i];

		buf_str(out, i != 0 ? ",\n{\"name\":" : "{\"name\":");
		buf_json(out, text_of(hosts_name(s->hosts, i)));
		for (k = 1; k < NELEM(h->class); k++)
			buf_printf(out, ",\"%uxx\":%" PRIu64, k, h->class[k]);
		buf_printf(out, ",\"sent_bytes\":%" PRIu64 "}", h->bytes);
	}
	buf_str(out, "],\n");
}

static void
workers(struct buf *out, const struct status *s)
{
	size_t i;

	buf_str(out, "\"workers\":[");
	for (i = 0; i < s->nworkers; i++) {
		const struct status_worker *w = &s->worker[i];

		buf_printf(out,
		    "%s{\"connections\":%" PRIu64 ",\"requests\":%" PRIu64
		    ",\"sent_bytes\":%" PRIu64,
		    i != 0 ? ",\n" : "", w->connections, w->requests, w->bytes_sent);
		buf_printf(out, ",\"requests_per_second_5s\":%.1f,\"bytes_per_second_5s\":%.1f}",
		    w->requests_5s, w->bytes_5s);
	}
	buf_str(out, "],\n");
}

static void
all(struct buf *out, const struct status *s, put_histogram *put)
{
	buf_str(out, "{\"version\":\"" STAT_ACCEL_VERSION "\",\"host\":{\"name\":");
	buf_json(out, s->host);
	buf_str(out, ",\"address\":");
	buf_json(out, s->address);
	buf_printf(out,
	    "},\n\"time_unix_seconds\":%" PRIu64 ",\"started_unix_seconds\":%" PRIu64
	    ",\"uptime_seconds\":%" PRIu64 ",\"first_started_unix_seconds\":%" PRIu64
	    ",\"upgrades\":%" PRIu64 ",\n",
	    s->now_s, s->started_s, s->uptime_s, s->first_started_s, s->upgrades);
	requests(out, s);
	connections(out, s);
	buf_printf(out,
	    "\"cache\":{\"entries\":%" PRIu64 ",\"entries_limit\":%" PRIu64
	    ",\"hit_ratio\":%.6f},\n",
	    s->cached, s->cached_limit, status_hit_ratio(s));
	buf_printf(out, "\"conditions\":{\"sets\":%" PRIu64 "},\n", s->sets);
	helper(out, s);
	certificates(out, s);
	stages(out, s, put);
	threads(out, s);
	backends(out, s, put);
	replies_by(out, s);
	workers(out, s);
	running_json(out, &s->running);
	counters_json(out, &s->sum, server_counter_infos);
	buf_str(out, "}\n");
}

void
status_json(struct buf *out, const struct status *s)
{
	all(out, s, histogram_json);
}

void
status_json_buckets(struct buf *out, const struct status *s)
{
	all(out, s, histogram_json_buckets);
}
