/* server/helper/helper.h -- the helper process: does for the server what needs the rights of the user who started it, or may hang.
 *
 *   accel-server --fork--> helper --fork--> one child for each request
 *   drops root             keeps its rights    reads the configuration, opens a log, listens, writes the pid file
 *   no fork, no exec       waits in poll(2)    may sleep or crash
 *
 * The helper is forked before the server has threads or descriptors, so its children have none of the server's. Only the
 * configuration file, read by a child of the helper, says what may be opened: the server can ask for nothing else.
 * The helper ends when the server does.
 *
 * Errors   -errno of the call that failed in the child; -EPERM: the configuration does not name it; -EPIPE: the helper has
 *          ended; -ETIMEDOUT: it has not answered in time; -ECANCELED: interrupted() was true; -EAGAIN: too many requests.
 * Thread   helper_open_log() any; the others the main thread.  All but helper_load_*() wait, for HELPER_ANSWER_MS at most.
 */
#ifndef SERVER_HELPER_HELPER_H
#define SERVER_HELPER_HELPER_H

#include <stdbool.h>
#include <stdint.h>
#include "server/config/record.h"

#define HELPER_ANSWER_MS 10000 /* for a log, a socket, the pid file */
#define HELPER_LOAD_MS 60000   /* default of server.reload-timeout */
#define HELPER_CHILDREN_MAX 64 /* requests at a time */
#define HELPER_NAMES_MAX 4096  /* of all configurations so far; the oldest are forgotten */

struct helper;

/* Forks.  file: the configuration.  0 or -errno. */
int helper_start(const char *file, struct helper **);
void helper_free(struct helper *); /* the helper ends by itself */
int helper_fd(const struct helper *); /* at its end of file the helper has ended */
/* While the main thread waits for an answer: when fd is readable, interrupted(arg) is called; true ends the wait. */
void helper_interrupted_by(struct helper *, int fd, bool (*interrupted)(void *arg), void *arg);

int helper_open_log(void *helper, const char *path); /* descriptor or -errno; a logfile_opener */
int helper_listen(struct helper *, const char *address, int *fdp);
int helper_pidfile(struct helper *, const char *path);
int helper_unpid(struct helper *, const char *path);

/* ---- reading the configuration: a record for config_load() */

struct helper_load {
	int fd;                  /* to poll; -1: none is running */
	struct sources *sources; /* take it when the load is done */
	uint64_t until_ns;       /* the helper itself has not answered by then */
};

int helper_load_start(struct helper *, struct helper_load *);
/* When fd is readable or until_ns has passed.  False: not done yet.  True: done, fd is closed; *why is empty and sources are
 * whole, or it says what went wrong. */
bool helper_load_more(struct helper_load *, char *why, size_t size);
void helper_load_stop(struct helper_load *);
/* All of it; waits.  NULL: *why says what went wrong. */
struct sources *helper_load(struct helper *, char *why, size_t size);

#endif
