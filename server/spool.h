/* server/spool.h -- bytes of a body that have to wait: in memory while they are few, then in a file without a name.
 *
 *   spool_add() --> [ memory ] --when full--> [ file in the first directory ] [ file in the next one ]
 *   spool_front() <-- what was added first: a range of a file, or memory
 *
 * Both directions use it: a request body waits for its end, a reply for its client.
 *
 * Bounds   memory: what server.max-spool-memory has left for this client, at most what spool_new() asked for, and one
 *          piece of the caller's.  Disk: spool_conf.max for one spool, server.max-spool-size for all of them.
 * Errors   spool_error() says why the disk takes no more: -EFBIG (spool_conf.max), -EDQUOT (server.max-spool-size),
 *          -ENOSPC (all directories are full), another -errno.  What was added before stays readable.
 * Owner    the caller, until spool_drop().  A write or read on its way ends by itself.
 * Thread   the worker's.
 */
#ifndef SERVER_SPOOL_H
#define SERVER_SPOOL_H

#include "base/text.h"
#include "io/file.h"

struct worker;
struct spool;

struct spool_conf {
	const char *id;    /* for log lines; copied */
	uint32_t client;
	uint64_t memory;   /* bytes that may stay in memory */
	uint64_t max;      /* bytes that may lie in files */
};

struct spool_bytes {       /* one of both; mem.n and len 0: nothing is there yet */
	struct text mem;
	struct io_file *file;
	uint64_t off, len;
};

struct spool *spool_new(struct worker *, const struct spool_conf *); /* NULL: no memory */
void spool_drop(struct spool **); /* NULL is fine */
/* Called when a write or a spool_fetch() has ended, never from inside a call of the owner. */
void spool_listen(struct spool *, void (*moved)(void *arg), void *arg);

/* Takes all bytes; the caller stops soon after spool_full() has become true.  False: no memory, nothing was taken. */
bool spool_add(struct spool *, struct text);
bool spool_full(const struct spool *);    /* wait for moved(), or make room with spool_took() */
int spool_error(const struct spool *);      /* why nothing more can be written; 0: it can */
bool spool_broken(const struct spool *);    /* a spool_fetch() has failed */
uint64_t spool_added(const struct spool *); /* bytes, all told */
bool spool_empty(const struct spool *);

struct spool_bytes spool_front(const struct spool *); /* lent until spool_took() or spool_add() */
void spool_took(struct spool *, uint64_t n);
/* The front is a range of a file: reads some of it into memory.  moved() comes. */
void spool_fetch(struct spool *);

/* The longest body that server.max-spool-size lets one client have. */
uint64_t spool_longest(const struct worker *);

#endif
