/* server/status/tally.h -- what a worker counts, where others can read it.
 *
 *   process:  tallies --> tally --> tally --> tally         read by the worker that answers a status page
 *                          ^         ^
 *                       worker 0  worker 1                  each the only writer of its own
 *
 * A tally outlives its worker: the next one that starts takes it over and counts on. So nothing that is being read is ever
 * freed, no lock is needed, and a reload sets no counter back.
 *
 * Thread   tally_take(), tally_return() and tallies_*() but the list itself: the main thread.  Fields: written by the
 *          owner, read by any.
 */
#ifndef SERVER_STATUS_TALLY_H
#define SERVER_STATUS_TALLY_H

#include <stdbool.h>
#include "base/counter.h"
#include "base/histogram.h"
#include "base/rate.h"
#include "base/timing.h"

/* What a connection waits for: PHASE(name, letter on status pages, "what it is doing") */
#define PHASES(P)                                                      \
	P(idle,   '_', "kept open, waiting for another request")       \
	P(head,   'r', "sending us a request head")                    \
	P(body,   'R', "sending us a request body")                    \
	P(handle, 'h', "waiting for a file or an application")         \
	P(write,  'W', "receiving a reply")                            \
	P(close,  'C', "being closed")

enum phase {
#define P(name, letter, doc) phase_##name,
	PHASES(P)
#undef P
	NPHASES
};

struct tally {
	struct counters counters;
	uint64_t phase[NPHASES];    /* connections */
	uint64_t cached;            /* entries of the open-file cache */
	uint64_t sets;              /* sets of conditions whose values are kept */
	struct rate requests, bytes;
	struct histogram stage[NSTAGES];
	bool used;                  /* a worker counts here */
	struct tally *next;
};

struct tallies {
	struct tally *first;        /* atomic; grows at its front */
	uint64_t started_ns, started_wall_s;
};

void tallies_init(struct tallies *);
void tallies_free(struct tallies *);          /* no worker is left */
struct tally *tally_take(struct tallies *);
void tally_return(struct tally *);            /* its worker has ended */
struct tally *tally_first(const struct tallies *); /* any thread; then ->next */
bool tally_used(const struct tally *);

#define tally_set(field, v) __atomic_store_n(&(field), (v), __ATOMIC_RELAXED)
#define tally_get(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

#endif
