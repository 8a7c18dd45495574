/* server/worker/life.h -- starts a worker, tells it to end, and waits for its thread.
 *
 * Thread   the main thread, where nothing else is said.
 */
#ifndef SERVER_WORKER_LIFE_H
#define SERVER_WORKER_LIFE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/start/listen.h"

struct io;
struct io_secure;
struct tls_verifier;
struct worker;
struct worker_conf; /* server/worker/base.h */

struct listener { /* shared by the workers of a generation, which owns it */
	int fd;
	char name[LISTEN_NAME_MAX];
	const struct io_secure *secure; /* of the resources; NULL: plain bytes */
	struct tls_verifier *verifier;  /* ... NULL: clients need no certificate */
	const char *challenges;         /* ssl.acme-tls-1; NULL: not set */
};

/* If files of a worker come from a disk, the pressure of memory is looked at once in this time. */
#define MEMORY_LOOK_S 10u

/* Each mode includes the earlier ones.  HUSH closes connections that have been silent since before
 * DRAIN.  CUT and STOP close all; CUT counts them. */
enum worker_mode { WORKER_RUN, WORKER_DRAIN, WORKER_HUSH, WORKER_CUT, WORKER_STOP };

/* Makes the worker with its loop.  io NULL: makes the loop from conf (tests pass a sim).  -errno:
 * logged. */
int worker_new(const struct worker_conf *, struct io *io, struct worker **);
int worker_start(struct worker *);                   /* starts its thread */
void worker_tell(struct worker *, enum worker_mode); /* a mode never goes back */
bool worker_ended(const struct worker *);
bool worker_accepts_no_more(const struct worker *);
void worker_free(struct worker *); /* joins the thread */
/* one round of the loop (the thread calls it; tests, too) */
void worker_round(struct worker *);
#endif
