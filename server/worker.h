/* server/worker.h -- one thread: its loop, its connections, its cache, its backend pools.
 *
 * Workers share the listening sockets, the blocking pools and the log files, nothing else.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include <pthread.h>
#include "io/io.h"
#include "io/listen.h"
#include "server/config/config.h"
#include "server/conn/clients.h"
#include "server/conn/handover.h"
#include "server/config/places.h"
#include "server/request.h"
#include "server/conn/room.h"
#include "server/config/site.h"
#include "server/status/tally.h"

struct listener { /* shared by the workers of a generation, which owns it */
	int fd;
	char name[LISTEN_NAME_MAX];
};

struct worker_conf {
	const struct config *config;
	const struct places *places; /* of config */
	const struct listener *listeners;
	size_t nlisteners;
	struct io_conf io;
	unsigned max_conns;  /* of this worker */
	unsigned max_fds;    /* descriptors its cache may hold */
	unsigned index, nworkers;
	uint64_t max_head_bytes; /* of unfinished request heads */
	struct tallies *tallies; /* of the process */
	struct clients *clients; /* of the process; NULL: connections are not counted by address */
	struct handover *handover; /* of the process; NULL: idle connections end with their generation */
};

/* Each includes those before it.  HUSH: connections that have been silent since before DRAIN go.  CUT and STOP end all, CUT
 * counts them. */
enum worker_mode { WORKER_RUN, WORKER_DRAIN, WORKER_HUSH, WORKER_CUT, WORKER_STOP };

#define WORKER_RECENT 4u

struct accepting; /* a listener in this worker's loop */

struct worker {
	struct io *io;
	struct worker_conf conf;
	struct conf_view *view;
	const struct conf *global;  /* values outside of conditions */
	bool plain;                 /* no conditions: global is all there is */
	bool physical;              /* some condition asks $PHYSICAL */
	struct stat_cache *stats;
	struct scopes scopes;       /* of its sites */
	struct list conns, requests; /* connections; recycled requests */
	unsigned nconns, nrequests;
	unsigned to_drain;          /* connections of the list that do not know of the drain */
	unsigned nleaving;          /* of nconns: sent away to make room, not closed yet */
	struct room room;
	struct {
		struct client_addr addr;
		uint64_t seen_ns;   /* 0: none */
	} recent[WORKER_RECENT];    /* different addresses that connected last */
	uint32_t conn_ids;
	struct accepting *accepting;
	bool draining, hushed, stopping, paused, pause_timed;
	struct io_op pause;         /* timer that resumes accepting; in flight while pause_timed */
	uint64_t date_s;
	char date[32];              /* "Sun, 06 Nov 1994 08:49:37 GMT" */
	struct page pages[PAGES];   /* prepared error replies by status */
	struct upstream **upstreams; /* by proxy block */
	size_t nupstreams;
	struct buf line; /* the log line being written */
	struct tally *tally; /* what it counts */
	pthread_t thread;
	bool running;
	bool held;                  /* its thread can neither end nor be joined: see io_leave() */
	int mode;                   /* enum worker_mode, atomic: set by the main thread */
	int ended;                  /* atomic */
};

/* The worker with its loop; io NULL: one is made as conf says (tests bring a sim).  -errno, logged. */
int worker_new(const struct worker_conf *, struct io *io, struct worker **);
int worker_start(struct worker *);                   /* its thread */
void worker_tell(struct worker *, enum worker_mode); /* the main thread; never back to an earlier one */
bool worker_ended(const struct worker *);
void worker_free(struct worker *);                   /* joins the thread */
void worker_round(struct worker *);                  /* one turn of the loop (the thread does this; tests too) */

struct request *worker_request(struct worker *);     /* NULL: no memory */
void worker_request_back(struct request *);
const char *worker_date(struct worker *);

#endif
