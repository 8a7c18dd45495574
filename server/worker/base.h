/* server/worker/base.h -- what a request sees of its worker; the first member of struct worker.
 *
 * The rooms that answer requests need a loop, a cache, the settings and the counters.  They do not
 * see how the worker runs: that is server/worker/worker.h.
 *
 * Thread   the worker's.
 */
#ifndef SERVER_WORKER_BASE_H
#define SERVER_WORKER_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include "base/buf.h"
#include "io/io.h"

struct backends;
struct bans;
struct clients;
struct conf;
struct conf_view;
struct config;
struct conn_verbs;
struct counters_list;
struct file_cache;
struct handover;
struct listener; /* server/worker/life.h */
struct meters;   /* base/meters.h */
struct page;
struct reply_scopes;
struct resources;
struct upstream;
struct worker_counters;

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
	const struct backends *cgi; /* of the process: runs programs; NULL: none are configured */
	/* of the process; NULL: idle connections close with their generation */
	struct handover *handover;
};

struct log_stamp { /* of server/log/accesslog_format.c: a time as text */
	const void *piece;
	time_t second;
	size_t n;
	char text[128];
};

struct worker_base {
	struct io *io;
	const struct conn_verbs *verbs; /* of a connection: server/request/client.h */
	struct room_counters {          /* what each room counts */
		struct conn_counters *conn;
		struct handler_counters *handler;
		struct module_counters *module;
		struct proxy_counters *proxy;
		struct reply_counters *reply;
		struct request_counters *request;
		struct route_counters *route;
	} counts;
	struct worker_counters *counters; /* the other numbers of status pages */
	struct file_cache *files;
	struct worker_conf conf;
	struct conf_view *view;
	const struct conf *global;   /* values outside of conditions */
	bool plain;                  /* there are no conditions: global has all values */
	size_t nheaders;             /* that conditions compare */
	bool physical;               /* a condition uses $PHYSICAL */
	bool log_states;             /* debug.log-state-handling */
	bool stopping;               /* its connections are being closed, its sites end */
	uint64_t date_s;             /* of reply_date() */
	char date[32];               /* "Sun, 06 Nov 1994 08:49:37 GMT" */
	struct page *pages;          /* PAGES prepared error replies, by status */
	struct reply_scopes *scopes; /* of its sites */
	struct upstream **upstreams; /* two for each block, see server/handler/proxy.c */
	size_t nupstreams;
	struct upstream *cgi; /* its programs; NULL: none has run yet */
	struct buf line;      /* the log line being written */
	struct log_stamp log_stamp;
	struct {
		uint64_t second; /* of the clock of the loop */
		uint64_t lines;  /* in it, of requests over their rate */
	} refused_lines;
	struct buf lines; /* header lines of modules for the reply being made */
	char *slots;      /* server/request/slots.h */
};

#endif
