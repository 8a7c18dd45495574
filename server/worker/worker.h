/* server/worker/worker.h -- one thread with its loop, its connections, its cache and its backend pools.
 *
 * Workers share the listening sockets, the pools of threads and the log files, nothing else.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include <pthread.h>
#include "io/io.h"
#include "io/start/listen.h"
#include "io/rest.h"
#include "server/config/config.h"
#include "server/conn/bans.h"
#include "server/conn/clients.h"
#include "server/conn/handover.h"
#include "server/config/resources.h"
#include "server/reply/scope.h"
#include "server/request/request.h"
#include "server/conn/eviction.h"
#include "server/config/site.h"
#include "server/status/worker_counters.h"
#include "server/module/deflate.h"
#include "base/list.h"

struct request;
struct meters; /* base/meters.h */

struct listener { /* shared by the workers of a generation, which owns it */
	int fd;
	char name[LISTEN_NAME_MAX];
};

struct worker_conf {
	const struct config *config;
	const struct resources *resources; /* owned with config */
	const struct listener *listeners;
	size_t nlisteners;
	struct io_conf io;
	unsigned max_conns; /* of this worker */
	unsigned max_fds;   /* descriptors its cache may hold */
	unsigned index, nworkers;
	uint64_t max_head_bytes;             /* of unfinished request heads */
	struct counters_list *counters_list; /* of the process */
	struct clients *clients; /* of the process; NULL: connections are not counted by address */
	struct clients *tunnels; /* likewise, of connections that ask to switch protocols */
	struct bans *bans;       /* of the process; NULL: nobody is banned */
	struct meters *meters;   /* of the process; NULL: addresses are not limited */
	const struct backends *cgi; /* of the process: who runs programs; NULL: nobody */
	/* of the process; NULL: idle connections close with their generation */
	struct handover *handover;
};

/* A worker whose files come from a disk has the pressure of memory looked at so often. */
#define MEMORY_LOOK_S 10u

/* Each mode includes the earlier ones.  HUSH closes connections that have been silent since before
 * DRAIN.  CUT and STOP close all; CUT counts them. */
enum worker_mode { WORKER_RUN, WORKER_DRAIN, WORKER_HUSH, WORKER_CUT, WORKER_STOP };

#define WORKER_RECENT 4u

struct log_stamp { /* of server/log/accesslog_format.c: a time as text */
	const void *piece;
	time_t second;
	size_t n;
	char text[128];
};

struct auth_memory; /* server/module/auth_cache.c */
void auth_memory_free(struct auth_memory *);

struct accepting; /* a listener in this worker's loop */

struct worker {
	struct io *io;
	struct worker_conf conf;
	struct conf_view *view;
	const struct conf *global; /* values outside of conditions */
	bool plain;                /* there are no conditions: global has all values */
	size_t nheaders;           /* that conditions compare */
	bool physical;             /* a condition uses $PHYSICAL */
	bool log_states;           /* debug.log-state-handling */
	struct file_cache *files;
	struct variants variants;    /* compressed forms of them */
	struct reply_scopes scopes;  /* of its sites */
	struct list conns, requests; /* connections; recycled requests */
	unsigned nconns;             /* atomic: others read it */
	unsigned nrequests;
	unsigned to_drain; /* connections of the list that have not been drained yet */
	unsigned nleaving; /* of nconns: closing to make room, or moved; atomic */
	struct rest rest;
	struct spread {
		unsigned share; /* handover_share() when it was last asked */
		/* Atomic: connections that wait for it in the handover, which writes it. */
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
	struct {
		struct client_addr addr;
		uint64_t seen_ns; /* 0: none */
	} recent[WORKER_RECENT];  /* the last different addresses that connected */
	struct {
		uint64_t reads;  /* windows that were read off the loop, at the last look */
		uint64_t due_ns; /* time of the next look at the memory */
	} memory;
	uint32_t conn_ids;
	struct bans_view bans;
	const uint32_t *bans_version; /* of the newest list, atomic */
	struct accepting *accepting;
	bool draining, hushed, stopping, paused, pause_timed;
	uint64_t sought_ns; /* the last look for slow connections */
	struct io_op pause; /* timer that resumes accepting; in flight while pause_timed */
	uint64_t date_s;
	char date[32];               /* "Sun, 06 Nov 1994 08:49:37 GMT" */
	struct page pages[PAGES];    /* prepared error replies by status */
	struct upstream **upstreams; /* two for each block, see server/config/site.c */
	size_t nupstreams;
	struct upstream *cgi;  /* its programs; NULL: none has run yet */
	struct trust **trusts; /* by listener; the last one is that of no listener */
	struct buf line;       /* the log line being written */
	struct log_stamp log_stamp;
	struct {
		uint64_t second; /* of the clock of the loop */
		uint64_t lines;  /* in it, of requests over their rate */
	} refused_lines;
	struct auth_memory *auth;         /* NULL: no password was checked yet */
	struct list listings;             /* of server/module/dirlisting.c */
	struct buf lines;                 /* header lines of modules for the reply being made */
	struct worker_counters *counters; /* what it counts */
	pthread_t thread;
	bool running;
	bool held;             /* its thread can neither end nor be joined: see io_leave() */
	int mode;              /* enum worker_mode, atomic: set by the main thread */
	int ended;             /* atomic */
	uint64_t rounds;       /* atomic: of its loop */
	uint64_t rounds_seen;  /* of the main thread: when it last woke the loop */
	uint64_t rounds_asked; /* of the main thread: when ctl status asked */
	int stopped_accepting; /* atomic: it drains, and no accept is in flight */
};

/* Makes the worker with its loop.  io NULL: makes the loop from conf (tests pass a sim).  -errno:
 * logged. */
int worker_new(const struct worker_conf *, struct io *io, struct worker **);
int worker_start(struct worker *); /* starts its thread */
/* called by the main thread; a mode never goes back */
void worker_tell(struct worker *, enum worker_mode);
bool worker_ended(const struct worker *);
bool worker_accepts_no_more(const struct worker *);
void worker_free(struct worker *); /* joins the thread */
/* one round of the loop (the thread calls it; tests, too) */
void worker_round(struct worker *);

/* Connections that stay here.  Any thread. */
static inline unsigned
worker_connections(const struct worker *w)
{
	unsigned all = shared_get(w->nconns), leaving = shared_get(w->nleaving);

	return (all > leaving ? all - leaving : 0);
}
/* A stop is near: balancers and clients are to go to other servers. */
static inline bool
worker_is_leaving(const struct worker *w)
{
	return (w->conf.counters_list != NULL && shared_get(w->conf.counters_list->leaving));
}
/* Any thread: the worker looks whether it has more connections than its share. */
void worker_ask_spread(struct worker *);

/* by the name of a listener, as conf.listeners has it; another name gets the
 * values of no socket */
const struct trust *worker_trust(const struct worker *, const char *listener);
struct request *worker_request(struct worker *); /* NULL: no memory */
void worker_request_back(struct request *);
const char *worker_date(struct worker *);

#endif
