/* server/status/worker_counters.h -- what a worker counts, where others can read it.
 *
 *   process:  counters_list --> counters --> counters      each worker reads them for status pages
 *                                  ^            ^
 *                               worker 0     worker 1     each the only writer of its own
 *
 * Counters outlive their worker: the next one that starts takes them over and counts on. So nothing
 * that is being read is ever freed, no lock is needed, and a reload sets no counter back.
 *
 * Thread   worker_counters_take(), worker_counters_return(), counters_list_*(): the main thread.
 *          The list and its fields: written by the owner, read by any.
 */
#ifndef SERVER_STATUS_WORKER_COUNTERS_H
#define SERVER_STATUS_WORKER_COUNTERS_H

#include <stdbool.h>
#include "base/histogram.h"
#include "base/rate.h"
#include "base/timing.h"
#include "server/status/hosts.h"
#include "server/status/running.h"

/* What a connection waits for: PHASE(name, letter on status pages, "what it is doing") */
#define PHASES(P)                                              \
	P(idle, '_', "kept open, waiting for another request") \
	P(head, 'r', "sending us a request head")              \
	P(body, 'R', "sending us a request body")              \
	P(handle, 'h', "waiting for a file or an application") \
	P(write, 'W', "receiving a reply")                     \
	P(close, 'C', "being closed")

enum phase {
#define P(name, letter, doc) phase_##name,
	PHASES(P)
#undef P
	    NPHASES
};

#define STATUS_MIN 100u
#define STATUS_MAX 599u

struct replies_by { /* of completed replies */
	/* [0]: any other status */
	uint64_t status[STATUS_MAX - STATUS_MIN + 2];
	struct host_counters {
		uint64_t class[6]; /* 2: from 200 to 299; 0: none of them */
		uint64_t bytes;    /* of bodies */
	} host[HOSTS_MAX + 1];     /* the last one: of all other hosts */
};

struct server_counters;

struct worker_counters {
	struct server_counters *events; /* server/status/counters.h */
	struct replies_by by;
	uint64_t phase[NPHASES]; /* connections */
	uint64_t cached;         /* entries of the open-file cache */
	uint64_t streams;        /* of HTTP/2 that run */
	uint64_t sets;           /* sets of conditions whose values are kept */
	struct rate requests, bytes;
	struct histogram stage[NSTAGES];
	struct running_desk desk;
	bool used; /* a worker counts here */
	struct worker_counters *next;
};

struct counters_list {
	struct worker_counters *first; /* atomic; grows at its front */
	struct hosts hosts;
	uint64_t started_ns, started_wall_s;
	/* Of the first process that upgrades replaced; the number of upgrades. */
	uint64_t first_started_s, upgrades;
	/* written by the main thread, with shared_set() */
	uint64_t reloads, loaded_wall_s; /* loaded: the configuration in use */
	uint64_t upgrades_failed;
	bool reload_refused; /* the last reload left the old configuration in use */
	unsigned draining;   /* generations that finish their connections */
	bool helper_lost;    /* no helper process runs */
	bool leaving;        /* a stop is near: health checks fail */
	uint64_t helpers_lost, helper_since_s; /* since: of helper_lost, wall clock */
	/* Of the newest configuration.  refused: their files have changed, and cannot be used.
	 * end_s: of the one that ends first, since 1970; 0: none. */
	uint64_t certificates, certificates_refused, certificates_end_s;
	uint64_t renewals, renewals_refused;
};

void counters_list_init(struct counters_list *);
void counters_list_free(struct counters_list *);                      /* no worker is left */
struct worker_counters *worker_counters_take(struct counters_list *); /* NULL: no memory */
void worker_counters_return(struct worker_counters *);                /* its worker has ended */
struct worker_counters *worker_counters_first(
    const struct counters_list *); /* any thread; then ->next */

#define shared_set(field, v) __atomic_store_n(&(field), (v), __ATOMIC_RELAXED)
#define shared_get(field)    __atomic_load_n(&(field), __ATOMIC_RELAXED)

/* A stop is near: balancers and clients are to go to other servers. */
static inline bool
counters_leaving(const struct counters_list *all)
{
	return (all != NULL && shared_get(all->leaving));
}

#endif
