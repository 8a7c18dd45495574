/* server/status/status.c -- see status.h */
#include "server/status/status.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/log/logfile.h"
#include "proxy-core/backend.h"
#include "server/config/config.h"
#include "server/request/client.h"
#include "server/request/request.h"
#include "server/worker/base.h"

const struct phase_info phase_infos[NPHASES] = {
#define P(name, letter, doc) { #name, letter, doc },
	PHASES(P)
#undef P
};

double
status_hit_ratio(const struct status *s)
{
	double hits = (double)(s->sum.hold.stat_hits + s->sum.hold.stat_absent_hits);
	double all = hits + (double)(s->sum.hold.stat_misses + s->sum.hold.stat_joins);

	return (all > 0 ? hits / all : 0);
}

double
status_average(const struct status *s, uint64_t total)
{
	return ((double)total / (double)(s->uptime_s != 0 ? s->uptime_s : 1));
}

uint64_t
status_own_5xx(const struct status_backend *b)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < OWN_5XX_CAUSES; i++)
		n += b->own_5xx[i];
	return (n);
}

/* ---- workers */

static void
worker_take(struct status *s, const struct worker_counters *t, uint64_t now_ns)
{
	struct status_worker *w = &s->worker[s->nworkers++];
	unsigned i;

	for (i = 0; i < NPHASES; i++)
		w->connections += shared_get(t->phase[i]);
	w->requests = shared_get(t->events->conn.requests);
	w->bytes_sent = shared_get(t->events->conn.bytes_sent);
	w->requests_5s = rate_read(&t->requests, now_ns);
	w->bytes_5s = rate_read(&t->bytes, now_ns);
}

static void
replies_add(struct replies_by *sum, const struct replies_by *by)
{
	unsigned i, k;

	for (i = 0; i < NELEM(by->status); i++)
		sum->status[i] += shared_get(by->status[i]);
	for (i = 0; i < NELEM(by->host); i++) {
		sum->host[i].bytes += shared_get(by->host[i].bytes);
		for (k = 0; k < NELEM(by->host[i].class); k++)
			sum->host[i].class[k] += shared_get(by->host[i].class[k]);
	}
}

static void
worker_counters_add(struct status *s, const struct worker_counters *t, uint64_t now_ns)
{
	unsigned i;

	replies_add(&s->by, &t->by);
	for (i = 0; i < NPHASES; i++)
		s->phase[i] += shared_get(t->phase[i]);
	for (i = 0; i < NSTAGES; i++)
		histogram_merge(&s->stage[i], &t->stage[i]);
	s->cached += shared_get(t->cached);
	s->streams += shared_get(t->streams);
	s->sets += shared_get(t->sets);
	s->requests_5s += rate_read(&t->requests, now_ns);
	s->bytes_5s += rate_read(&t->bytes, now_ns);
	if (shared_get(t->used))
		worker_take(s, t, now_ns);
}

/* A worker that starts meanwhile puts its tally in front of this walk. */
static bool
workers_take(struct status *s, const struct counters_list *all)
{
	uint64_t now_ns = clock_mono_ns();
	const struct worker_counters *first = worker_counters_first(all), *t;
	size_t n = 0;
	unsigned i;

	for (t = first; t != NULL; t = t->next)
		n++;
	s->worker = calloc(n + 1, sizeof(*s->worker));
	if (s->worker == NULL)
		return (false);
	server_counters_sum(first, &s->sum);
	for (t = first; t != NULL; t = t->next)
		worker_counters_add(s, t, now_ns);
	s->sum.status.log_suppressed = log_suppressed();
	s->sum.status.log_dropped = logfile_dropped();
	for (i = 0; i < NPHASES; i++)
		s->connections += s->phase[i];
	s->busy = s->connections - s->phase[phase_idle];
	return (true);
}

/* ---- backends of proxy-core */

static int
by_block_and_name(const void *a, const void *b)
{
	const struct status_backend *x = a, *y = b;

	if (x->block != y->block)
		return (x->block < y->block ? -1 : 1);
	return (strcmp(x->name, y->name));
}

/* A stamp of the monotonic clock as seconds since 1970.  0: never, as for the stamp 0. */
static uint64_t
wall_s(uint64_t mono_ns)
{
	if (mono_ns == 0)
		return (0);
	return ((clock_wall_ns() - clock_between(mono_ns, clock_mono_ns())) / NS_PER_S);
}

static void
health_take(struct status_backend *s, const struct backend *b)
{
	backend_health(b, clock_mono_ns(), &s->health);
	s->since_s = wall_s(s->health.since_ns);
	s->checked_s = wall_s(backend_read(b, checked_ns));
	s->good_s = wall_s(backend_read(b, good_ns));
}

static void
backend_take(struct status_backend *s, const struct backend *b)
{
	unsigned i;

	s->block = b->block;
	s->name = b->name;
	s->requests = backend_read(b, requests);
	s->failed = backend_read(b, failed);
	s->replies_5xx = backend_read(b, replies_5xx);
	s->replies = backend_read(b, replies);
	s->cut = backend_read(b, cut);
	for (i = 0; i < OWN_5XX_CAUSES; i++)
		s->own_5xx[i] = backend_read(b, own_5xx[i]);
	s->refused = backend_read(b, refused);
	s->waiting = backend_read(b, waiting);
	s->idle = backend_read(b, sockets[LEASE_IDLE]);
	s->load = backend_read(b, sockets[LEASE_BUSY]) + s->waiting;
	s->pool_size = backend_read(b, sockets[LEASE_BUSY]) + s->idle +
		       backend_read(b, sockets[LEASE_CONNECTING]);
	s->down = backend_read(b, down);
	s->retried = backend_read(b, retried);
	for (i = 0; i < BACKEND_NFAULTS; i++)
		s->faults[i] = backend_read(b, faults[i]);
	health_take(s, b);
	for (i = 0; i < BACKEND_NSTAGES; i++)
		backend_times_sum(b, i, &s->stage[i]);
}

static bool
backends_take(struct status *s)
{
	const struct backend *first = backend_first(), *b;
	size_t n = 0;

	for (b = first; b != NULL; b = b->next)
		n++;
	s->backend = calloc(n + 1, sizeof(*s->backend));
	if (s->backend == NULL)
		return (false);
	for (b = first; b != NULL; b = b->next)
		if (backend_read(b, users) != 0)
			backend_take(&s->backend[s->nbackends++], b);
	qsort(s->backend, s->nbackends, sizeof(*s->backend), by_block_and_name);
	return (true);
}

/* ---- threads that wait for disks */

static void
threads_take(struct status *s, struct io_pools *pools)
{
	size_t i;

	io_pools_status_take(&s->threads, pools);
	for (i = 0; i < s->threads.nlanes; i++) {
		const struct io_lane_status *l = &s->threads.lane[i];

		s->disk_jobs += l->busy + l->queued;
		if (l->oldest_ns > s->disk_oldest_ns)
			s->disk_oldest_ns = l->oldest_ns;
	}
}

/* ---- all of it */

struct status *
status_new(struct request *r)
{
	const struct worker_base *w = r->worker;
	const struct counters_list *all = w->conf.counters_list;
	struct status *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return (NULL);
	s->host = r->http.host.p != NULL ? r->http.host : (struct text){ "", 0 };
	s->address = conn_listener(r);
	s->now_s = clock_wall_ns() / NS_PER_S;
	s->started_s = all->started_wall_s;
	s->loaded_s = shared_get(all->loaded_wall_s);
	s->reloads = shared_get(all->reloads);
	s->upgrades_failed = shared_get(all->upgrades_failed);
	s->reload_refused = shared_get(all->reload_refused);
	s->draining = shared_get(all->draining);
	s->helper_lost = shared_get(all->helper_lost);
	s->helpers_lost = shared_get(all->helpers_lost);
	s->helper_since_s = shared_get(all->helper_since_s);
	s->certificates = shared_get(all->certificates);
	s->certificates_refused = shared_get(all->certificates_refused);
	s->certificates_end_s = shared_get(all->certificates_end_s);
	s->renewals = shared_get(all->renewals);
	s->renewals_refused = shared_get(all->renewals_refused);
	s->first_started_s = all->first_started_s;
	s->upgrades = all->upgrades;
	s->hosts = &all->hosts;
	s->uptime_s = (clock_mono_ns() - all->started_ns) / NS_PER_S;
	s->connections_limit = (uint64_t)w->conf.max_conns * w->conf.nworkers;
	s->cached_limit = w->global->max_cached_files * w->conf.nworkers;
	threads_take(s, w->conf.io.pools);
	io_memory_status_take(&s->memory, w->conf.io.pools);
	if (!workers_take(s, all) || !backends_take(s)) {
		status_free(s);
		return (NULL);
	}
	return (s);
}

void
status_free(struct status *s)
{
	running_free(&s->running);
	free(s->worker);
	free(s->backend);
	free(s);
}
