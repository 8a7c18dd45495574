/* server/helper/helper.h -- the helper process: work that needs the rights of the user who started
 * the server, or that may hang.
 *
 *   accel-server --fork--> guardian --fork--> helper --fork---> one child for each request
 *   drops root             forks the helper   keeps its rights  reads the configuration, opens a
 *   no fork, no exec       again (guard.c)    waits in poll(2)  log, listens, or writes the pid
 *                                                               file; may sleep or crash
 *
 * The helper is forked before the server has threads or descriptors, so its children have none of
 * the server's.  A child of the helper reads the configuration file.  Only this file decides what
 * may be opened; the server can ask for nothing else.  The helper ends when the server ends.
 *
 * Errors   -errno of the call that failed in the child; -EPERM: the configuration does not name it;
 *          -EPIPE: the helper has ended meanwhile; -ETIMEDOUT: no answer in time;
 *          -ECANCELED: interrupted() returned true; -EAGAIN: too many requests.
 * Thread   helper_open_log() any; the others the main thread.  All but helper_load_*() wait, for
 *          HELPER_ANSWER_MS at most.
 */
#ifndef SERVER_HELPER_HELPER_H
#define SERVER_HELPER_HELPER_H

#include <stdbool.h>
#include <stdint.h>
#include "server/config/record.h"
#include "server/helper/wire.h"

#define HELPER_ANSWER_MS    10000 /* time for a log, a socket or the pid file */
#define HELPER_LOAD_MS      60000 /* default of server.reload-timeout */
#define HELPER_UPGRADE_MS   20000 /* time for a start, in addition to that for the configuration */
#define HELPER_RENEW_MS     86400000 /* for a change of certificates; the server asks again */
#define HELPER_CHILDREN_MAX 64       /* requests at a time */
#define HELPER_NAMES_MAX    65536    /* different names of one configuration, see kept.h */

/* What -EPIPE means, and what to do. */
#define HELPER_LOST "the helper process has died (accel-server ctl status tells when it is back):"

struct helper;

/* Call it first, before the working directory changes: what an upgrade executes. */
void helper_program(char **argv);
/* Forks.  file: the configuration.  0 or -errno. */
int helper_start(const char *file, struct helper **);
void helper_free(struct helper *);    /* the helper ends by itself */
int helper_fd(const struct helper *); /* to poll for helper_event() */
/* 1: *e is what came.  0: nothing.  -EPIPE: the guardian and the helper have ended, for good. */
int helper_event(const struct helper *, struct helper_event *);
/* Where the helper runs CGI programs (cgi.h), until helper_free(); NULL: nowhere. */
const struct address *helper_cgi(const struct helper *);
/* While the main thread waits for an answer, interrupted(arg) is called when fd is readable; true
 * ends the wait. */
void helper_interrupted_by(struct helper *, int fd, bool (*interrupted)(void *arg), void *arg);

/* A descriptor or -errno; the first is a logfile_opener.  why: as of helper_result_parse() */
int helper_open_log(void *helper, const char *path);
int helper_listen(struct helper *, const char *address, char why[HELPER_WHY_MAX]);
int helper_pidfile(struct helper *, const char *path);
/* Starts the application of a line (server/config/check/spawn.h).  Returns its lifeline: the
 * application ends when it is closed, and messages of its keeper come from it.  Or -errno. */
int helper_spawn_start(struct helper *, const char *line, char why[HELPER_WHY_MAX]);
int helper_remove_pidfile(struct helper *, const char *path);
/* The socket for accel-server ctl: "unix:PATH". */
int helper_control(struct helper *, const char *address, char why[HELPER_WHY_MAX]);

/* ---- an upgrade: the program file is executed anew */

/* Takes one end of a SOCK_SEQPACKET pair; what waits in the other end is for the new server.  0 or
 * -errno.  On the other end comes a helper_upgraded, then the end of file. */
int helper_upgrade_start(struct helper *, int end);

/* ---- looking up the addresses of a backend */

/* Asks for "host:port", which the configuration names.  Returns a descriptor to poll, or -errno. */
int helper_resolve_start(struct helper *, const char *spec);
/* Call it when the descriptor is readable; closes it.  Returns as helper_addresses_parse(). */
int helper_resolve_end(int fd, struct helper_addresses *, char why[HELPER_WHY_MAX]);

/* ---- reading the configuration: a record for config_load() */

struct helper_load {
	int fd;                  /* to poll; -1: no load is running */
	struct sources *sources; /* take it after the load */
	uint64_t until_ns;       /* deadline for the helper's answer */
};

int helper_load_start(struct helper *, struct helper_load *);
/* As a load, of the files of certificates only.  It ends when they differ from the record with this
 * digest (sources_digest()); "-": at once. */
int helper_renew_start(struct helper *, const char *digest, uint64_t list, struct helper_load *);
/* Call it when fd is readable or until_ns has passed.  False: not done yet.  True: done, and fd is
 * closed; *why is empty and sources are complete, or *why has the error. */
bool helper_load_more(struct helper_load *, char *why, size_t size);
void helper_load_stop(struct helper_load *);
/* The whole load; waits.  NULL: *why has the error. */
struct sources *helper_load(struct helper *, char *why, size_t size);

#endif
