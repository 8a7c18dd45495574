/* proxy-core/backend_times.h -- how long each stage of a request takes at a backend.
 *
 *   request --wait--> socket --first-byte--> --> end of the reply
 *                        `--------reply--------------'            connect: of each new socket
 *
 * Each pool has histograms of its own, so that adding takes no lock and no locked instruction:
 * 17 ns for the three of a request.  The list hangs on the backend and only grows: the next pool
 * takes over the histograms of one that ended, so readers need no lock and a reload loses nothing.
 *
 * A reply that is sent as a file or left by its client counts under reply only if it was read to
 * its end, to keep the socket.
 *
 * Units    nanoseconds of the loop's clock, which is read once a round.
 * Thread   backend_times_add(): the pool's worker.  All others: any.
 */
#ifndef PROXY_CORE_BACKEND_TIMES_H
#define PROXY_CORE_BACKEND_TIMES_H

#include <stdbool.h>
#include "base/histogram.h"

/* S(field, "name on status pages") */
#define BACKEND_STAGES(S)           \
	S(wait, "wait")             \
	S(connect, "connect")       \
	S(first_byte, "first-byte") \
	S(reply, "reply")

enum backend_stage {
#define S(field, name) BACKEND_##field,
	BACKEND_STAGES(S)
#undef S
	    BACKEND_NSTAGES
};

extern const char *const backend_stage_names[BACKEND_NSTAGES];

struct backend_times {
	struct histogram stage[BACKEND_NSTAGES];
	bool used; /* by a pool */
	struct backend_times *next;
};

struct backend;

/* Histograms for one pool of the backend.  NULL: no memory. */
struct backend_times *backend_times_take(struct backend *);
void backend_times_return(struct backend_times *); /* its pool has ended */
/* The sum over all pools of the backend. */
void backend_times_sum(const struct backend *, enum backend_stage, struct histogram *into);

static inline void
backend_times_add(struct backend_times *t, enum backend_stage s, uint64_t from_ns, uint64_t to_ns)
{
	histogram_add(&t->stage[s], to_ns > from_ns ? to_ns - from_ns : 0);
}

#endif
