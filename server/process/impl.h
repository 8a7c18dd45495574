/* server/process/impl.h -- shared by the files of server/process/; no other file includes it.
 *
 *   process.c     the main thread: start, signals, the end
 *   loop.c        what the main thread waits for
 *   balancer.c    health checks fail before a stop
 *   drain.c       old generations finish their running replies
 *   alive.c       asks each loop whether it goes round, for ctl status
 *   reload.c      reads the configuration again while the server runs
 *   upgrade.c     the next program file takes over
 *   control.c     the socket of accel-server ctl
 *   status.c      what ctl status prints
 *   check.c       -t: finds what a start would refuse, and makes nothing
 *   start.c       sockets, limits, user, pid file, messages to the service manager
 *   helper.c      the state of the helper process
 *   memory.c      what stays in memory
 *   sandbox.c     the directories that the confined server may use
 *   logs.c        error log and access logs
 *   generation.c  one configuration with its workers and pools
 *   spawn.c       applications that the helper starts
 *   resolve.c     addresses of backends that have a host name
 *   renew.c       certificates that change while the server runs
 *   pressure.c    lines of the log while memory is short
 *   report.c      messages to the service manager, also to its watchdog
 */
#ifndef SERVER_PROCESS_IMPL_H
#define SERVER_PROCESS_IMPL_H

#include <poll.h>
#include "base/list.h"
#include "base/log.h"
#include "io/disk/pools.h"
#include "io/log/logfile.h"
#include "io/start/sandbox.h"
#include "proxy-core/backends.h"
#include "server/config/check/limits.h"
#include "server/helper/helper.h"
#include "server/process/process.h"
#include "server/status/worker_counters.h"
#include "server/worker/life.h"

#define CGI_BLOCK 0xffffu /* of the helper, which runs programs, on status pages */

struct listeners {
	struct listener v[CFG_LISTENS_MAX];
	size_t n;
};

struct generation {
	struct list link;
	struct listeners listeners; /* generations may share sockets, never names */
	struct config *config;
	struct resources *resources; /* the files and hosts that config names */
	struct io_pools *pools;
	struct worker **workers; /* NULL: it has ended and is freed */
	unsigned nworkers;
	uint64_t retired_ns; /* time at which its drain began; 0: not draining */
	bool hushed, cut;    /* WORKER_HUSH, WORKER_CUT were sent */
	struct io_pools_conf pools_conf;
	struct resolve_name *names; /* of resolve.c */
	size_t nnames;
};

#define SPAWN_MAX CFG_APPLICATIONS_MAX

struct application {
	int fd;     /* its lifeline */
	char *line; /* server/config/check/spawn.h */
};

struct access_file {
	struct list link;
	struct logfile *log;
	char path[];
};

struct watchdog {
	uint64_t interval_ns; /* half of the manager's patience; 0: it does not watch */
	uint64_t due_ns;
	bool still; /* a loop did not go round; logged */
};

struct upgrade {
	int fd;     /* to poll: the answer of the helper; -1: none is running */
	pid_t pid;  /* the new server, after the helper's answer; else 0 */
	int status; /* 0: the new server is ready; or its exit status */
	struct buf cause;
	uint8_t heard;     /* answers so far; the supervisor waits for its answer to be confirmed */
	bool stopped;      /* a stop was requested meanwhile */
	bool wanted;       /* one was requested while a reload ran */
	bool retired;      /* a newer process serves; this one drains */
	bool let_go;       /* the listening sockets are handed over */
	bool failed;       /* the last one */
	bool pidfile_owed; /* it has the number of another process; no helper was there */
};

#define CONTROL_CLIENTS 8u
#define CONTROL_LINE    32u /* bytes of a request */

enum control_wish {
	CONTROL_NOTHING,
	CONTROL_RELOAD,
	CONTROL_UPGRADE,
	CONTROL_REOPEN,
	CONTROL_DRAIN,
	CONTROL_UNDRAIN,
	CONTROL_STOP,
	CONTROL_QUIT,
	CONTROL_STATUS,
	CONTROL_STATUS_JSON,
	CONTROL_WISHES
};

struct control_client {
	int fd;
	enum control_wish wish;
	unsigned turn;     /* the reload or upgrade, counted from 1, whose outcome it waits for */
	uint64_t until_ns; /* deadline for the request; 0: it has come */
	size_t n;
	char line[CONTROL_LINE];
	uint64_t number; /* of the request: "drain 30" */
	bool told;       /* success, which ends with the process */
};

struct control_socket {
	int fd; /* listens; -1: there is none */
	const char *name;
	struct control_client v[CONTROL_CLIENTS];
	size_t n;
	unsigned turn[CONTROL_WISHES]; /* reloads and upgrades begun so far */
};

/* Before a stop. */
struct leave {
	uint64_t at_ns; /* 0: none is near */
	const char *why;
};

/* ctl status: whether each loop has gone round since it was woken */
struct alive {
	uint64_t until_ns; /* the answer is known by then; 0: nobody asks */
};

/* The files of certificates. */
struct renewal {
	struct helper_load load; /* ends when they have changed; fd -1: nobody waits */
	char *known;             /* digest of the last record; NULL: there was none */
	uint64_t asked_ns;       /* when it was asked last */
	uint64_t again_ns;       /* when to ask again; 0: not */
	unsigned failed;         /* in a row */
	uint64_t end_s;          /* of keys of tickets: the end that the log has told */
};

/* The last reload. */
struct outcome {
	time_t at; /* 0: there was none */
	int status;
	struct buf said; /* its warnings and errors */
};

struct process {
	const struct options *opt;
	struct listeners listeners; /* those of the newest generation */
	bool inherited;
	struct list generations; /* newest last; the others drain */
	unsigned nstarted;       /* generations since the start */
	unsigned fds;            /* the limit of descriptors */
	struct watchdog watchdog;
	struct logfile *errorlog;
	struct buf early; /* lines logged before the log is open */
	bool journal;     /* the error log is systemd's journal, whose fields are made of text */
	struct counters_list counters_list;
	struct handover *handover; /* moves idle connections, at a reload */
	struct clients *clients;
	struct clients *tunnels; /* connections that ask to switch protocols */
	struct meters *meters;
	struct bans *bans;
	struct list access_files; /* the logs that a generation names */
	int signals;
	struct helper *helper;
	bool helper_gone; /* it has ended for good, with its guardian */
	/* the server stops because of that: the service manager starts it again */
	bool ended_without_helper;
	struct application apps[SPAWN_MAX];
	size_t napps;
	struct backends cgi;     /* the helper, which runs programs; .n 0: it does not */
	struct helper_load load; /* a running reload; fd -1: none */
	struct renewal renewal;
	bool reload_again; /* another reload was requested meanwhile */
	bool reopen;       /* HUP came */
	bool draining, stopping;
	bool by_manager;       /* INT or QUIT of a service manager */
	uint64_t ask_again_ns; /* the next time at which it is asked for more time */
	bool abandoned;        /* it has workers, but its start has failed */
	struct upgrade upgrade;
	struct control_socket control;
	struct outcome last;
	struct leave leave;
	struct alive alive;
	uid_t starter; /* whose rights the helper keeps */
	time_t started_at;
	uint64_t started_ns;
	struct sandbox sandbox; /* the sandbox in force */
	char *pidfile;          /* to be removed at the end; NULL: none was written */
};

/* The newest generation.  NULL: the first one has not started. */
static inline struct generation *
process_newest(const struct process *ps)
{
	return (list_empty(&ps->generations)
		    ? NULL
		    : list_entry(ps->generations.prev, struct generation, link));
}

/* Lines wait for the error log from now on: its thread starts after the sandbox. */
void process_early_lines(struct process *, const struct conf *);
void process_log_form(const struct process *,
    const struct conf *); /* server.errorlog-format is in use from now on */
/* 0 or -errno, printed on stderr (the log is not open yet) or logged.  Here and below, -ECANCELED
 * is not printed: a signal ended the wait for the helper. */
int process_errorlog(struct process *, const struct conf *);
void process_start_failed(int err); /* logs -errno and what to do */
/* What to do about -errno of a log or a pid file. */
const char *process_open_help(int err);
/* Says on standard error that there was no start, and where the reason is. */
void process_say_failed(const struct process *);
/* -errno: unusable, logged */
int process_accesslog(void *process, const char *path, struct logfile **);
/* closes the logs that no generation names; at most 1 s for all */
void process_drop_accesslogs(struct process *);
void process_reopen_logs(struct process *);
bool process_logs_are_owed(void); /* true once: a log was not reopened, as there was no helper */
void process_close_logs(struct process *);

int process_inherit(struct process *); /* LISTEN_FDS */
/* The sockets of config, as *now.  Sockets of the newest generation are used again; none is
 * closed. */
int process_listen(struct process *, const struct config *, struct listeners *now);
/* Closes the sockets that no generation has. */
void process_unlisten(struct process *, const struct listeners *);
/* the limit, after raising it as far as possible */
unsigned process_descriptors(const struct conf *);
struct passwd;
struct group;
/* What server.username and server.groupname name; NULL if not set.  Returns the setting whose value
 * does not exist, or NULL. */
const char *process_find_user(const struct conf *, struct passwd **, struct group **);
int process_become(const struct conf *);
struct lock_memory;
void process_lock_program(const struct config *,
    struct lock_memory *);                                         /* before process_become() */
void process_lock_rest(const struct conf *, struct lock_memory *); /* after it; logs both */
void process_core_files(const struct conf *);                      /* after process_become() */
/* Call it before there are threads.  0, even if the kernel has no sandbox; -errno: logged. */
int process_sandbox(struct process *, const struct config *);
/* False: the sandbox closes a directory of the configuration; *why names it. */
bool process_sandbox_reaches(const struct process *, const struct config *, char *why, size_t size);
int process_pidfile(struct process *, const struct conf *);

/* Starts the applications of config that do not run yet; 0 or -errno (logged). */
int process_spawn(struct process *, const struct config *);
/* Ends those that no generation names. */
void process_spawn_drop(struct process *);
/* Fills in what to poll and returns the number, at most SPAWN_MAX. */
size_t process_spawn_poll(const struct process *, struct pollfd *);
void process_spawn_take(struct process *, const struct pollfd *, size_t n); /* after poll(2) */

#define RESOLVE_MAX 8 /* look-ups at a time */

void resolve_begin(struct generation *); /* needs its resources */
void resolve_end(struct generation *);
/* Fills in what to poll and returns the number; *timeout_ms (-1: none) gets no longer. */
size_t process_resolve_poll(struct process *, struct pollfd p[RESOLVE_MAX], int *timeout_ms);
/* Call it after poll(2): takes answers and asks what is due. */
void process_resolve(struct process *, const struct pollfd *, size_t n);

void process_renew_begin(struct process *); /* of the newest generation */
void process_renew_stop(struct process *);
/* What to poll, or -1; *timeout_ms (-1: none) gets no longer. */
int process_renew_fd(const struct process *, int *timeout_ms);
void process_renew_more(struct process *); /* after poll(2) */

/* "READY=1" and the like, with a line for people: connections and configurations in use. */
void process_report(const struct process *, const char *state);
void process_watch_loops(struct process *); /* begins, if the manager watches */
/* Another process is the main one. */
void process_watch_no_more(struct process *);
/* Reports when it is due; *timeout_ms (-1: none) gets no longer. */
void process_watch_tick(struct process *, int *timeout_ms);

/* The main thread: logs each line as what=, and adds it to what log_overhear() collects. */
void process_say(enum log_level, const char *ev, struct text lines);

/* "ctl": the socket of the newest configuration; logged if it fails. */
void process_control_open(struct process *, const struct config *);
void process_control_retire(struct process *); /* a newer process has it */
/* Fills in what to poll and returns the number, at most 1 + CONTROL_CLIENTS. */
size_t process_control_poll(const struct process *, struct pollfd *, int *timeout_ms);
void process_control_take(struct process *, const struct pollfd *, size_t n);
/* Answers the clients that wait for the operations begun so far, or for one that cannot begin. */
void process_control_done(struct process *, enum control_wish, int status, struct text said);
void process_control_refuse(struct process *, enum control_wish, const char *why);
void process_control_stops(struct process *); /* tells the clients that wait for the end */
bool process_control_waits(const struct process *, enum control_wish);
void process_control_status(struct process *); /* answers the clients that asked for it */
void process_pressure_watch(struct process *, bool on);
void process_status(const struct process *, bool json, struct buf *);
/* Tells ctl reopen when each log was opened again, or could not be. */
void process_reopen_tick(struct process *, int *timeout_ms);

void process_alive_ask(struct process *); /* each loop */
/* True, once: the answer is known. */
bool process_alive_tick(struct process *, int *timeout_ms);
/* The number of loops that have not answered, and their names; names may be NULL. */
unsigned process_alive_still(const struct process *, struct buf *names);

/* Call it when helper_fd() is readable.  False: the helper and its guardian have ended. */
bool process_helper_take(struct process *);
const char *process_helper_state(const struct process *); /* for people */

/* Health checks fail from now on for this many seconds; then the server stops. */
void process_drain_first(struct process *, uint64_t seconds, const char *by);
bool process_undrain(struct process *);               /* false: it does not drain, or too late */
uint64_t process_leaves_in_s(const struct process *); /* 0: no stop is near */
void process_quit(struct process *, const char *by);  /* after server.drain-delay */
void process_leave_tick(struct process *, int *timeout_ms); /* stops when it is due */

/* now: without waiting for the running replies. */
void process_stop(struct process *, const char *by, bool now);
void process_take_signal(struct process *);
void process_loop(struct process *); /* until no generation is left, or a stop takes too long */
void process_reap(struct process *); /* frees the generations that have ended */
uint64_t process_connections(const struct process *);
unsigned process_generations(const struct process *);

void process_reload(struct process *);      /* starts one; one runs at a time */
void process_reload_more(struct process *); /* the helper's answer is readable */

void process_upgrade(struct process *);       /* starts one; one runs at a time */
void process_upgrade_stop(struct process *);  /* undoes one that runs: the server stops */
void process_upgrade_more(struct process *);  /* the helper's answer is readable */
void process_retired_check(struct process *); /* call it regularly */
/* In the new server: takes the sockets and applications of the old one.  -errno: logged. */
int process_take_over(struct process *);
bool process_take_place(void);               /* its last step; the old one retires */
void process_pidfile_back(struct process *); /* after an upgrade that failed */

/* Bounds   server.graceful-shutdown-timeout, after a reload only if it is set; 50 generations
 *          beside the newest, fewer with few descriptors; then the oldest is cut. */
void process_drain(struct process *, struct generation *);
/* How long a stop waits for running replies; 0: without a limit.  There is a generation. */
uint64_t process_stop_limit_s(const struct process *);
void process_drain_check(struct process *); /* call it regularly while a generation drains */

/* how many it has with this configuration */
unsigned generation_workers(const struct conf *);
/* Takes config and sockets.  0: its workers run (with -1: exist), and it is the newest generation.
 * -errno: logged, and everything is undone. */
int generation_start(struct process *, struct config *, const struct listeners *, unsigned fds);
/* Idle connections of older generations move to this one, and its workers spread theirs. */
void generation_adopts(struct process *, struct generation *);
void generation_tell(struct generation *, enum worker_mode);
bool generation_ended(const struct generation *);
/* Frees none of the newest generation: connections move to its workers. */
void generation_free_ended(struct generation *);
void generation_free(struct generation *);

#endif
