/* proxy-core/backend.h -- one backend of one block, for the whole process: its addresses, what all
 * pools did with it, and whether its application is crowded.
 *
 * Crowded  A threaded application made with libfcgi binds a thread to each kept socket.  Once as
 *          many sockets are kept as it has threads, the next connection waits in the listen queue
 *          until a kept socket is closed, and another worker or another block may hold that socket.
 *          So the pool that notices (pool.h says how) calls the application crowded for a while.
 *          All pools then close their idle sockets and keep none, and the listen queue serves all
 *          in turn.  The while doubles each time it happens again.  A wrong guess costs a connect
 *          per request for a second.
 *
 * Slow     An application may only be slow.  Waits for the first byte are measured for all pools
 *          together, because one that has just begun knows none.  When a request that was taken for
 *          a stall gets its answer late after the idle sockets were closed, the guess was wrong,
 *          and such a time is not a stall any more.
 *
 * Owner    the list in backend.c.  A backend is never freed: it counts through reloads, and status
 *          pages read it without a lock.  There are as many as were ever configured.
 * Thread   any.  The counts are atomic; a request to an application takes six of them.
 */
#ifndef PROXY_CORE_BACKEND_H
#define PROXY_CORE_BACKEND_H

#include <stdbool.h>
#include <stdint.h>
#include "proxy-core/address.h"
#include "proxy-core/own_5xx.h"

#define BACKENDS_MAX           64 /* of one block */
#define BACKEND_CROWDED_MIN_MS 1000
#define BACKEND_CROWDED_MAX_MS 64000

enum lease_state { /* of a socket */
	LEASE_CONNECTING,
	LEASE_IDLE,
	LEASE_BUSY,    /* carries a request */
	LEASE_CLOSING, /* waits for its ops, then closes */
	LEASE_STATES
};

/* How a connect or a request fails: F(field, "name on status pages"). */
#define BACKEND_FAULTS(F)                                                                         \
	F(refused, "refused") /* a connect failed: nobody listens, no such socket, no route */    \
	F(hangup, "hang-up")  /* a reset or the end instead of an answer, or of the rest of it */ \
	F(timeout, "timeout") /* no connection, no answer, or not the rest of it, in time */      \
	F(bad, "bad-reply")   /* malformed, or shorter than its Content-Length */                 \
	F(status, "bad-status") /* a status of proxy-core.next-upstream */

enum backend_fault {
#define F(field, name) BACKEND_FAULT_##field,
	BACKEND_FAULTS(F)
#undef F
	    BACKEND_NFAULTS
};

struct backend_why {
	enum backend_fault fault;
	bool connecting; /* it failed before it had a connection */
	int number;      /* refused, hang-up: errno; timeout: ms; status: of HTTP */
};

/* Worst last.  backend_health.h computes it. */
enum backend_state {
	BACKEND_UP,
	BACKEND_SLOW_START,  /* it came back, and gets a part of its share */
	BACKEND_FAILING,     /* proxy-core.max-fails: it gets requests only if all are out */
	BACKEND_UNREACHABLE, /* of some worker or all: a connect failed, proxy-core.disable-time */
	BACKEND_CHECK_FAILED,
	BACKEND_NSTATES
};

struct backend {
	struct backend *next;
	struct backend *app; /* the first of that name in any block; crowded counts there */
	unsigned block;      /* proxy_conf.number */
	const char *name;    /* "unix:/run/a.sock" */

	uint64_t requests; /* ended ones that had a socket */
	/* connects that failed, replies that broke off, were malformed or too late */
	uint64_t failed;
	/* the same by kind; and replies of BACKEND_FAULT_status */
	uint64_t faults[BACKEND_NFAULTS];
	uint64_t retried;     /* requests that failed here, and went to another one */
	uint64_t replies;     /* heads of its own replies, with any status */
	uint64_t replies_5xx; /* of them: a status of 500 to 599 */
	uint64_t cut;         /* of them: broke off after the head */
	/* What clients got in place of a reply; no_backend counts at the first of the block. */
	uint64_t own_5xx[OWN_5XX_CAUSES];
	uint64_t refused; /* requests that found proxy-core.max-waiters waiting */
	unsigned sockets[LEASE_STATES];
	unsigned waiting; /* requests without a socket */
	unsigned down;    /* pools that pause because it is out of reach */
	/* of check.c: the last check failed; times of the last one and of the last good one */
	unsigned sick;
	uint64_t checked_ns, good_ns;
	unsigned users; /* pools and configurations; 0: not configured any more */

	/* of backend_health.c; since: the loop's clock; why: a struct backend_why in one word */
	uint64_t made_ns, last_why;
	uint64_t down_since_ns, down_why, sick_since_ns, sick_why;
	uint64_t failing_since_ns, failing_until_ns, failing_why;
	uint64_t failing_slow_ns; /* its share grows for this long then */
	/* under a lock: since the first of these failures, with all requests until then */
	uint64_t strikes_since_ns, strikes_requests, out_ns;
	unsigned strikes;
	uint64_t slow_since_ns, slow_until_ns;
	uint64_t down_ended_ns, sick_ended_ns;

	struct backend_times *times; /* a list, see backend_times.h */

	/* of backend.c */
	struct address *address;
	size_t naddress;
	unsigned moves;       /* how often the addresses changed */
	uint64_t slowest_ns;  /* longest wait for a first byte, fading */
	uint64_t patience_ns; /* of requests that were taken for stalls by mistake */
	bool kept_seen, told;
	uint64_t last_kept_ns, crowded_until_ns;
	uint64_t crowded_ms; /* length of the last crowded time; 0: never crowded */
};

#define backend_add(b, field, v) ((void)__atomic_add_fetch(&(b)->field, (v), __ATOMIC_RELAXED))
#define backend_read(b, field)   __atomic_load_n(&(b)->field, __ATOMIC_RELAXED)

/* The backend of that block and name, with these addresses from now on.  NULL: no memory. */
struct backend *backend_get(unsigned block, const char *name, const struct address *, size_t n);
/* The backend has these addresses from now on.  1: they differ from the former ones (in any order);
 * 0: they are the same; -ENOMEM. */
int backend_move(struct backend *, const struct address *, size_t n);
void backend_use(struct backend *); /* one more user */
void backend_put(struct backend *);
struct backend *backend_first(void); /* any order; then ->next */
/* A copy, because a reload may change them.  NULL: no memory. */
struct address *backend_addresses(const struct backend *, size_t *n);

void backend_kept(struct backend *, uint64_t now_ns); /* a socket was kept after its reply */
/* A socket is idle, or was kept since then: the application answers some requests while others
 * wait. */
bool backend_keeps_since(const struct backend *, uint64_t since_ns);
bool backend_crowded(const struct backend *, uint64_t now_ns);
/* False if it is crowded already.  *news: to be logged.  It is true once: when the pool is sure, or
 * when it happens again. */
bool backend_set_crowded(struct backend *, uint64_t now_ns, bool sure, bool *news);
/* A request has waited this long for its first byte; kept: on a kept socket, which has a thread. */
void backend_measure(struct backend *, uint64_t waited_ns, bool kept);
/* A request that was taken for a stall had to wait this long after that, so it was not a stall. */
void backend_mistook(struct backend *, uint64_t waited_ns);
uint64_t backend_stall_ns(const struct backend *, uint64_t least_ns); /* silence that is one */

#endif
