/* server/status/status.h -- the numbers of the whole server at one moment, and their formats.
 *
 *   counters_list, backends, pools --> status_new() --> struct status --> html, json, auto,
 *                                                                 statistics, metrics
 *
 * The numbers are sums over all workers, including those that drain after a reload.  They are read
 * one after the other while the workers go on, so events in between can make two of them differ.
 *
 * Owner    the caller's until status_free(); texts point into the request.
 * Thread   a worker's; it waits for no other thread, and no other thread waits for it.
 */
#ifndef SERVER_STATUS_STATUS_H
#define SERVER_STATUS_STATUS_H

#include "base/buf.h"
#include "io/disk/pools_status.h"
#include "io/memory/memory_status.h"
#include "proxy-core/backend_health.h"
#include "proxy-core/backend_times.h"
#include "proxy-core/own_5xx.h"
#include "server/status/counters.h"
#include "server/status/worker_counters.h"

struct request;

/* The worker's counters, with what they counted before a reload.  Counters without a worker are in
 * the sums only. */
struct status_worker {
	uint64_t connections, requests, bytes_sent;
	double requests_5s, bytes_5s; /* per second */
};

struct status_backend {
	unsigned block; /* 0: the first block that has backends */
	const char *name;
	uint64_t requests, failed, replies, replies_5xx, cut, refused;
	uint64_t own_5xx[OWN_5XX_CAUSES];
	unsigned load, pool_size;         /* requests in progress; open sockets */
	unsigned idle, waiting, down;     /* down: workers that pause it */
	uint64_t faults[BACKEND_NFAULTS]; /* failures by kind, backend_fault_names */
	uint64_t retried;                 /* requests that failed here and went to another one */
	struct backend_health health;     /* state, reason */
	uint64_t since_s;                 /* time of the last change of state; wall clock */
	uint64_t checked_s, good_s;       /* last check, last good one; wall clock, 0: none */
	struct histogram stage[BACKEND_NSTAGES];
};

struct status {
	struct text host, address;           /* the Host of the request; the listening socket */
	uint64_t now_s, started_s, uptime_s; /* wall clock; whole seconds */
	uint64_t loaded_s, reloads;          /* of the configuration in use */
	uint64_t first_started_s, upgrades;  /* of the first process that an upgrade replaced */
	uint64_t upgrades_failed;
	bool reload_refused; /* the last one */
	unsigned draining;   /* generations */
	bool helper_lost;    /* since helper_since_s no helper process runs */
	uint64_t helpers_lost, helper_since_s;
	/* of TLS; end_s: of the one that ends first, 0: none */
	uint64_t certificates, certificates_refused, certificates_end_s;
	uint64_t renewals, renewals_refused;
	struct server_counters sum;
	struct replies_by by;
	const struct hosts *hosts;
	uint64_t phase[NPHASES];
	uint64_t connections, connections_limit, busy;
	uint64_t streams; /* of HTTP/2 that run */
	uint64_t cached, cached_limit;
	uint64_t sets;                /* sets of conditions */
	double requests_5s, bytes_5s; /* per second, over five seconds */
	struct histogram stage[NSTAGES];
	struct status_worker *worker;
	struct status_backend *backend; /* sorted by block, then name */
	struct io_pools_status threads;
	unsigned disk_jobs; /* waiting or running, in all lanes */
	uint64_t disk_oldest_ns;
	struct io_memory_status memory;
	size_t nworkers, nbackends;
	struct running running; /* of HTML, JSON and text pages */
};

struct status *status_new(struct request *); /* NULL: no memory */
void status_free(struct status *);

/* 0: it has ended, or there is none. */
static inline uint64_t
status_certificate_ends_in_s(const struct status *s)
{
	return (s->certificates_end_s > s->now_s ? s->certificates_end_s - s->now_s : 0);
}

uint64_t status_own_5xx(const struct status_backend *);       /* of all causes */
double status_hit_ratio(const struct status *);               /* 0 to 1 */
double status_average(const struct status *, uint64_t total); /* per second of uptime */

void status_html(struct buf *, const struct status *);
void status_json(struct buf *, const struct status *);
void status_json_buckets(struct buf *, const struct status *); /* of all histograms */
/* the format of ?auto of Apache and lighttpd */
void status_auto(struct buf *, const struct status *);
void status_statistics(struct buf *, const struct status *); /* name: integer */
void status_modules(struct buf *, const struct status *);    /* of status.config-url */
void status_metrics(struct buf *, const struct status *);    /* Prometheus text format 0.0.4 */

/* Rows that all formats print. */
struct phase_info {
	const char *name;
	char letter;
	const char *doc;
};
extern const struct phase_info phase_infos[NPHASES];

#endif
