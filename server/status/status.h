/* server/status/status.h -- one moment of the whole server, and the ways to write it down.
 *
 *   tallies, meters, pools --> status_new() --> struct status --> html, json, auto, statistics, metrics
 *
 * Numbers of all workers together, those that drain after a reload included. They are read one after the other while the
 * workers go on, so two of them may differ by what happened in between.
 *
 * Owner    the caller's until status_free(); texts point into the request.
 * Thread   a worker's; it waits for nobody, and nobody for it.
 */
#ifndef SERVER_STATUS_STATUS_H
#define SERVER_STATUS_STATUS_H

#include "base/buf.h"
#include "io/disk/pools_status.h"
#include "server/request.h"
#include "server/status/tally.h"

/* What its tally has counted, also for the worker that had it before a reload.  Tallies that nobody has now are in the sums only. */
struct status_worker {
	uint64_t connections, requests, bytes_sent;
	double requests_5s, bytes_5s; /* per second */
};

struct status_backend {
	unsigned block;               /* 0: the first block that has backends */
	const char *name;
	uint64_t requests, failed;
	unsigned load, pool_size;     /* requests in progress; open sockets */
	unsigned idle, waiting, down; /* down: workers that leave it alone for a while */
};

struct status {
	struct text host, address;    /* as the client called us; the listening socket */
	uint64_t now_s, started_s, uptime_s; /* wall clock; whole seconds */
	struct counters sum;
	uint64_t phase[NPHASES];
	uint64_t connections, connections_limit, busy;
	uint64_t cached, cached_limit;
	uint64_t sets; /* of conditions */
	double requests_5s, bytes_5s; /* per second, over five */
	struct histogram stage[NSTAGES];
	struct status_worker *worker;
	struct status_backend *backend; /* by block, then name */
	struct io_pools_status threads;
	unsigned disk_jobs;           /* waiting or running, in all lanes */
	uint64_t disk_oldest_ns;
	size_t nworkers, nbackends;
};

struct status *status_new(struct request *); /* NULL: no memory */
void status_free(struct status *);

double status_hit_ratio(const struct status *); /* 0 to 1 */
double status_average(const struct status *, uint64_t total); /* per second of uptime */

void status_html(struct buf *, const struct status *);
void status_json(struct buf *, const struct status *);
void status_auto(struct buf *, const struct status *);       /* as Apache's and lighttpd's ?auto */
void status_statistics(struct buf *, const struct status *); /* name: integer */
void status_metrics(struct buf *, const struct status *);    /* Prometheus text format 0.0.4 */

/* Rows that all of them print. */
struct phase_info {
	const char *name;
	char letter;
	const char *doc;
};
extern const struct phase_info phase_infos[NPHASES];

#endif
