/* server/process/impl.h -- between process.c, process_*.c and generation.c; nobody else includes it.
 *
 *   process.c        the main thread: signals, reload, the end
 *   drain.c  generations that let their running replies end, and for how long
 *   reload.c the configuration is read again while the server goes on
 *   start.c  sockets, limits, user, pid file, word to the service manager
 *   sandbox.c  what it may open, for good
 *   logs.c   error log and access logs
 *   generation.c     one configuration with its workers and pools
 */
#ifndef SERVER_PROCESS_IMPL_H
#define SERVER_PROCESS_IMPL_H

#include "io/disk/pools.h"
#include "io/logfile.h"
#include "io/sandbox.h"
#include "server/helper/helper.h"
#include "server/process/process.h"
#include "server/worker.h"

#define MAX_LISTENERS 64

struct listeners {
	struct listener v[MAX_LISTENERS];
	size_t n;
};

struct generation {
	struct list link;
	struct listeners listeners;   /* generations may share sockets, never names */
	struct config *config;
	struct places *places;        /* what config names */
	struct io_pools *pools;
	struct worker **workers;
	unsigned nworkers;
	struct tallies *tallies;      /* of the process */
	struct clients *clients;      /* of the process */
	struct handover *handover;    /* of the process */
	uint64_t retired_ns;          /* when its drain began; 0: it has not */
	bool hushed, cut;             /* WORKER_HUSH, WORKER_CUT were sent */
	struct io_pools_conf pools_conf;
};

struct access_file {
	struct list link;
	struct logfile *log;
	char path[];
};

struct process {
	const struct options *opt;
	struct listeners listeners;   /* of the newest generation */
	bool inherited;
	struct list generations;      /* newest last; the others drain */
	struct logfile *errorlog;
	struct buf early;             /* lines logged before it is open */
	struct tallies tallies;
	struct handover *handover;    /* of idle connections, at a reload */
	struct clients *clients;
	struct list access_files;     /* those that some generation names */
	int signals;
	struct helper *helper;
	struct helper_load load;      /* a reload that has begun; fd -1: none */
	bool reload_again;            /* asked for meanwhile */
	bool reopen;                  /* HUP came */
	bool draining, stopping;
	struct sandbox sandbox;       /* what was entered */
	bool has_pidfile;             /* it is ours to remove */
};

/* Lines wait for the error log from here on: its thread comes after the sandbox. */
void process_early_lines(struct process *);
/* 0 or -errno, said on stderr (the log is not open yet) or logged. */
int process_errorlog(struct process *, const struct conf *);
struct logfile *process_accesslog(void *process, const char *path); /* NULL: unusable, logged */
void process_drop_accesslogs(struct process *);             /* closes those that no generation names; at most 1 s each */
void process_reopen_logs(struct process *);
void process_close_logs(struct process *);

int process_inherit(struct process *);                      /* LISTEN_FDS */
/* The sockets config asks for, as *now; those of the newest generation are used again, none is closed. */
int process_listen(struct process *, const struct config *, struct listeners *now);
/* Closes those that no generation has. */
void process_unlisten(struct process *, const struct listeners *);
unsigned process_descriptors(const struct conf *);          /* the limit, raised as far as it goes */
int process_become(const struct conf *);
/* Before there are threads.  0, also where the kernel has none; -errno: logged. */
int process_sandbox(struct process *, const struct config *);
/* False: the configuration names a directory that the sandbox closes; *why says which. */
bool process_sandbox_reaches(const struct process *, const struct config *, char *why, size_t size);
int process_pidfile(struct process *, const struct conf *);

void process_reload(struct process *);                      /* begins; one at a time */
void process_reload_more(struct process *);                 /* the helper has something to say */
void process_reload_stop(struct process *);

/* Bounds   server.graceful-shutdown-timeout, and four generations beside the newest; then connections are cut. */
void process_drain(struct process *, struct generation *);
void process_drain_mind(struct process *); /* while any drains: from time to time */

/* Takes config and sockets; 0: its workers run (with -1: exist), it is the newest.  -errno: logged, all is undone. */
int generation_start(struct process *, struct config *, const struct listeners *, unsigned fds);
/* Idle connections of older generations come to this one. */
void generation_adopts(struct process *, struct generation *);
void generation_tell(struct generation *, enum worker_mode);
bool generation_ended(const struct generation *);
void generation_free(struct generation *);

#endif
