/* proxy-core/backend_health.h -- whether a backend works, since when, and why not; for all workers.
 *
 *   pools, checks, exchanges --> backend_fault(), ..._down(), ..._sick() --> struct backend
 *                                                 status pages <-- backend_health()
 *
 * Units    nanoseconds of CLOCK_MONOTONIC, as the loop's clock.
 * Thread   any.  Each value is atomic by itself; a snapshot may mix two moments.
 */
#ifndef PROXY_CORE_BACKEND_HEALTH_H
#define PROXY_CORE_BACKEND_HEALTH_H

#include "proxy-core/backend.h"

struct backend_health {
	enum backend_state state;
	uint64_t since_ns; /* of the state */
	char reason[64];   /* "connect: refused", "no answer in 5 s", "HTTP 500"; up: "" */
};

extern const char *const backend_state_names[BACKEND_NSTATES]; /* "slow-start" */
extern const char *const backend_fault_names[BACKEND_NFAULTS]; /* "hang-up" */

void backend_health(const struct backend *, uint64_t now_ns, struct backend_health *);

void backend_fault(struct backend *, struct backend_why); /* counts it */
/* One more worker cannot reach it, or (again) still cannot; or one worker reaches it again. */
void backend_down(struct backend *, struct backend_why, bool again, uint64_t now_ns);
void backend_reached(struct backend *, uint64_t now_ns);
/* A check failed or passed.  status: of its reply; 0: it had none, see the last fault. */
void backend_set_sick(struct backend *, bool sick, int status, uint64_t now_ns);
void backend_slow(struct backend *, uint64_t now_ns, uint64_t until_ns); /* slow start */

struct backend_strikes { /* this many failures in this time take it out for this time */
	unsigned max;    /* 0: never */
	uint64_t in_ns, slow_ns;
};

/* A request failed before the first byte of its answer.  True: that takes the backend out, until
 * *until_ns.  It is out after strikes.max failures within in_ns, or without a success between them,
 * if they are a quarter of its requests at least: one URL that fails takes no backend from the
 * others.  While its share grows again, one failure is enough, and the time doubles up to a
 * minute. */
bool backend_strike(struct backend *, struct backend_why, const struct backend_strikes *,
    uint64_t now_ns, uint64_t *until_ns);
bool backend_failing(const struct backend *, uint64_t now_ns); /* it is out */
/* Percent; below 100: it came back. */
unsigned backend_share(const struct backend *, uint64_t now_ns, unsigned least);
void backend_forget_health(struct backend *); /* it is not configured any more */

#endif
