/* server/worker/worker.h -- one thread with its loop, its connections, its cache and its backend
 * pools.
 *
 * Workers share the listening sockets, the pools of threads and the log files, nothing else.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include <pthread.h>
#include "base/blocks.h"
#include "base/client_addr.h"
#include "base/list.h"
#include "io/io.h"
#include "io/rest.h"
#include "server/config/page.h"
#include "server/conn/bans.h"
#include "server/conn/eviction.h"
#include "server/reply/scope.h"
#include "server/status/worker_counters.h"
#include "server/request/slots.h"
#include "server/worker/base.h"
#include "server/worker/life.h"

struct accepting; /* a listener in this worker's loop */
struct request;
struct trust;

#define WORKER_RECENT   4u
#define WORKER_FLOODERS 32u

struct recent_address {
	struct client_addr addr;
	uint64_t seen_ns; /* 0: none */
};

struct worker {
	struct worker_base base;     /* its pointers to parts of the worker never change */
	struct reply_scopes scopes;  /* of its sites */
	struct list conns, requests; /* connections; recycled requests */
	unsigned nconns;             /* atomic: others read it */
	unsigned nstreams;           /* atomic: of HTTP/2, which run */
	unsigned nrequests;
	/* The last addresses whose connections of HTTP/2 were closed because of a flood. */
	struct recent_address flooders[WORKER_FLOODERS];
	struct blocks streams; /* recycled, of server/conn/http2.c */
	unsigned to_drain;     /* connections of the list that have not been drained yet */
	unsigned nleaving;     /* of nconns: closing to make room, or moved; atomic */
	struct rest rest;
	struct spread {
		unsigned share; /* handover_share() when it was last asked */
		/* Atomic: connections that wait for it in the handover; only the handover writes
		 * it. */
		unsigned coming;
		bool timed; /* timer is in flight */
		bool asked; /* atomic: another worker found that this one has too many */
		struct io_op timer;
	} spread;
	struct {            /* server/conn/overdue.h */
		bool timed; /* timer is in flight */
		struct io_op timer;
	} overdue;
	struct eviction eviction;
	struct recent_address
	    recent[WORKER_RECENT]; /* the last addresses that connected, each once */
	struct {
		uint64_t reads;  /* windows that other threads had read, at the last look */
		uint64_t due_ns; /* time of the next look at the memory */
	} memory;
	uint32_t conn_ids;
	struct bans_view bans;
	const uint32_t *bans_version; /* of the newest list, atomic */
	struct accepting *accepting;
	bool draining, hushed, paused, pause_timed;
	bool pause_fixed;   /* no connection that closes can help: the pause ends with its timer */
	uint64_t sought_ns; /* the last look for slow connections */
	struct io_op pause; /* timer that resumes accepting; in flight while pause_timed */
	struct page pages[PAGES]; /* prepared error replies by status */
	struct trust **trusts;    /* by listener; the last one: no listener */
	pthread_t thread;
	bool running;
	bool held;             /* its thread can neither end nor be joined: see io_leave() */
	int mode;              /* enum worker_mode, atomic: set by the main thread */
	int ended;             /* atomic */
	uint64_t rounds;       /* atomic: of its loop */
	uint64_t rounds_seen;  /* of the main thread: when it last woke the loop */
	uint64_t rounds_asked; /* of the main thread: when ctl status asked */
	int stopped_accepting; /* atomic: it drains, and no accept is in flight */
	char slots[] __attribute__((aligned(SLOT_ALIGN))); /* server/request/slots.h */
};

/* Connections that stay here.  Any thread. */
static inline unsigned
worker_connections(const struct worker *w)
{
	unsigned all = shared_get(w->nconns), leaving = shared_get(w->nleaving);

	return (all > leaving ? all - leaving : 0);
}

#endif
