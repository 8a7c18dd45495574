/* server/request/spool.h -- bytes of a body that have to wait: in memory while they are few, then
 * in a file without a name.
 *
 *   spool_add() --> [ memory ] --when full--> [ file in the first directory ] [ in the next one ]
 *   spool_front() <-- the oldest bytes: a range of a file, or memory
 *
 * Both directions use it: a request body waits until it is complete, a reply waits for its client.
 *
 * Bounds   memory: the share of server.max-spool-memory for this client, at most spool_conf.memory,
 *          and one piece of the caller's.  Disk: spool_conf.max for one spool,
 *          server.max-spool-size for all spools.
 * Errors   spool_error() is the reason if nothing more can be written: -EFBIG (spool_conf.max),
 *          -EDQUOT (server.max-spool-size), -ENOSPC (all directories are full), another -errno.
 *          Earlier bytes stay readable.
 * Owner    the caller, until spool_drop().  A running write or read ends by itself.
 * Thread   the worker's.
 */
#ifndef SERVER_SPOOL_H
#define SERVER_SPOOL_H

#include "base/text.h"

struct io_file;
struct worker_base;
struct spool;

struct spool_conf {
	const char *id; /* for log lines; copied */
	uint32_t client;
	uint64_t memory; /* bytes that may stay in memory */
	uint64_t max;    /* bytes that may be in files */
};

struct spool_bytes { /* one of both; mem.n and len 0: no bytes yet */
	struct text mem;
	struct io_file *file;
	uint64_t off, len;
};

struct spool *spool_new(struct worker_base *, const struct spool_conf *); /* NULL: no memory */
void spool_drop(struct spool **);                                         /* NULL is allowed */
/* moved() is called at the end of a write or a spool_fetch(), never from inside a call of the
 * owner. */
void spool_listen(struct spool *, void (*moved)(void *arg), void *arg);

/* Takes all bytes; the caller stops soon after spool_full() is true.  False: no memory, and nothing
 * was taken. */
bool spool_add(struct spool *, struct text);
bool spool_full(const struct spool *);      /* wait for moved(), or make room with spool_took() */
int spool_error(const struct spool *);      /* why nothing more can be written; 0: no error */
bool spool_broken(const struct spool *);    /* a spool_fetch() has failed */
uint64_t spool_added(const struct spool *); /* all bytes added so far */
bool spool_empty(const struct spool *);

struct spool_bytes spool_front(const struct spool *); /* lent until spool_took() or spool_add() */
void spool_took(struct spool *, uint64_t n);
/* The front is a range of a file: reads some of it into memory.  moved() comes. */
void spool_fetch(struct spool *);

/* The longest body that server.max-spool-size allows one client. */
uint64_t spool_longest(const struct worker_base *);

#endif
