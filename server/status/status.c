/* server/status/status.c -- see status.h */
#include "server/status/status.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "proxy-core/meter.h"
#include "server/conn/conn.h"
#include "server/worker.h"

const struct phase_info phase_infos[NPHASES] = {
#define P(name, letter, doc) {#name, letter, doc},
	PHASES(P)
#undef P
};

double
status_hit_ratio(const struct status *s)
{
	double hits = (double)(s->sum.stat_hits + s->sum.stat_absent_hits);
	double all = hits + (double)(s->sum.stat_misses + s->sum.stat_joins);

	return (all > 0 ? hits / all : 0);
}

double
status_average(const struct status *s, uint64_t total)
{
	return ((double)total / (double)(s->uptime_s != 0 ? s->uptime_s : 1));
}

/* ---- workers */

static void
counters_sum(struct counters *sum, const struct counters *c)
{
	const struct counter_info *ci;

	for (ci = counter_infos; ci->name != NULL; ci++)
		*(uint64_t *)((char *)sum + ci->offset) += counter_get(c, ci);
}

static void
worker_take(struct status *s, const struct tally *t, uint64_t now_ns)
{
	struct status_worker *w = &s->worker[s->nworkers++];
	unsigned i;

	for (i = 0; i < NPHASES; i++)
		w->connections += tally_get(t->phase[i]);
	w->requests = tally_get(t->counters.requests);
	w->bytes_sent = tally_get(t->counters.bytes_sent);
	w->requests_5s = rate_read(&t->requests, now_ns);
	w->bytes_5s = rate_read(&t->bytes, now_ns);
}

static void
tally_add(struct status *s, const struct tally *t, uint64_t now_ns)
{
	unsigned i;

	counters_sum(&s->sum, &t->counters);
	for (i = 0; i < NPHASES; i++)
		s->phase[i] += tally_get(t->phase[i]);
	for (i = 0; i < NSTAGES; i++)
		histogram_merge(&s->stage[i], &t->stage[i]);
	s->cached += tally_get(t->cached);
	s->sets += tally_get(t->sets);
	s->requests_5s += rate_read(&t->requests, now_ns);
	s->bytes_5s += rate_read(&t->bytes, now_ns);
	if (tally_used(t))
		worker_take(s, t, now_ns);
}

/* A worker that starts meanwhile puts itself in front of what is walked here. */
static bool
workers_take(struct status *s, const struct tally *first)
{
	uint64_t now_ns = clock_mono_ns();
	const struct tally *t;
	size_t n = 0;
	unsigned i;

	for (t = first; t != NULL; t = t->next)
		n++;
	s->worker = calloc(n + 1, sizeof(*s->worker));
	if (s->worker == NULL)
		return (false);
	for (t = first; t != NULL; t = t->next)
		tally_add(s, t, now_ns);
	s->sum.log_suppressed = log_suppressed();
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

static void
backend_take(struct status_backend *b, const struct meter *m)
{
	b->block = m->block;
	b->name = m->name;
	b->requests = meter_read(m, requests);
	b->failed = meter_read(m, failed);
	b->waiting = meter_read(m, waiting);
	b->idle = meter_read(m, idle);
	b->load = meter_read(m, busy) + b->waiting;
	b->pool_size = meter_read(m, busy) + b->idle + meter_read(m, connecting);
	b->down = meter_read(m, down);
}

static bool
backends_take(struct status *s)
{
	const struct meter *first = meter_first(), *m;
	size_t n = 0;

	for (m = first; m != NULL; m = m->next)
		n++;
	s->backend = calloc(n + 1, sizeof(*s->backend));
	if (s->backend == NULL)
		return (false);
	for (m = first; m != NULL; m = m->next)
		if (meter_read(m, users) != 0)
			backend_take(&s->backend[s->nbackends++], m);
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
		const struct io_lane_stats *l = &s->threads.lane[i];

		s->disk_jobs += l->busy + l->queued;
		if (l->oldest_ns > s->disk_oldest_ns)
			s->disk_oldest_ns = l->oldest_ns;
	}
}

/* ---- all of it */

struct status *
status_new(struct request *r)
{
	const struct worker *w = r->worker;
	const struct tallies *all = w->conf.tallies;
	struct status *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return (NULL);
	s->host = r->http.host.p != NULL ? r->http.host : (struct text){"", 0};
	s->address = conn_listener(r);
	s->now_s = clock_wall_ns() / NS_PER_S;
	s->started_s = all->started_wall_s;
	s->uptime_s = (clock_mono_ns() - all->started_ns) / NS_PER_S;
	s->connections_limit = (uint64_t)w->conf.max_conns * w->conf.nworkers;
	s->cached_limit = w->global->max_cached_files * w->conf.nworkers;
	threads_take(s, w->conf.io.pools);
	if (!workers_take(s, tally_first(all)) || !backends_take(s)) {
		status_free(s);
		return (NULL);
	}
	return (s);
}

void
status_free(struct status *s)
{
	free(s->worker);
	free(s->backend);
	free(s);
}
