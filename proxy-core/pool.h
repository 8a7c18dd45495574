/* proxy-core/pool.h -- the sockets to one backend, and the requests that wait for one.
 *
 *              pool_get()                             pool_put()
 *   waiter -> [waiters.h: by client, in turn] -> lease ---------> idle --> the next waiter
 *                                                  | unfit        | a byte or the end came
 *                                                  v              v
 *                                                closed         closed
 *
 * A pool opens a socket when a request needs it, never ahead: libfcgi closes a fresh socket after
 * two seconds without a byte.  A backend that cannot be reached is paused (disable_ms, which
 * doubles up to a minute).  Then one request at a time tries whether it is back, until the first
 * byte of a reply.  A full listen queue (EAGAIN) or a lack of descriptors is not a failure: waiters
 * wait.
 *
 * Stall    A fresh socket stalls if its request gets no answer while kept sockets are idle or carry
 *          one request after the other.  The pool then assumes that no thread of the application
 *          will accept it; see backend.h for what follows.  The wait is POOL_STALL_MS, or four
 *          times the longest recent wait on a kept socket, so a slow application causes no stall.
 *          A unix socket tells whether the application has read the request: then it does not
 *          stall.
 *
 * Owner    a lease belongs to its user between got() and pool_put(), which its callbacks may call.
 *          Its ops in flight return to the pool, so the user may end at once.
 * Thread   the worker's loop.  got() of others may run inside pool_get(), pool_unget(),
 *          pool_put() and pool_tick().
 */
#ifndef PROXY_CORE_POOL_H
#define PROXY_CORE_POOL_H

#include "base/buf.h"
#include "base/list.h"
#include "base/fair_queue.h"
#include "io/io.h"
#include "proxy-core/conf.h"

#define POOL_STALL_MS     250
#define POOL_PAUSE_MAX_MS 60000
#define POOL_TICK_MS      50 /* between calls of pool_tick() while pool_active() */

#define POOL_SHARE_MIN 10 /* percent, at the beginning of a slow start */

struct pool;
struct proxy_counters;
struct lease;

struct pool_wait {
	/* A lease, or NULL with -EBUSY (the queue is full, or it was displaced) or the reason
	 * why the backend cannot be reached. */
	void (*got)(struct pool_wait *, struct lease *, int err);
	uint32_t client; /* key of the client, which takes turns with others; 0: none */
	/* A kept socket was stale: now uses a fresh one, before other requests of the client. */
	bool fresh;
	bool unsafe; /* cannot be repeated: a kept socket is checked again before its use */
	bool check;  /* may connect while the backend is paused */
	bool debug;  /* log the lease */
	/* of the pool */
	struct fair_queue_item turn;
	bool waits;
};

struct lease_user {
	void (*on_recv)(void *arg, struct io_op *); /* as IO_RECV: bytes, 0 or -errno */
	void (*on_sent)(void *arg, int err);        /* lease_out() is sent and empty, or -errno */
};

/* emptied: the last socket is closed */
struct pool *pool_new(struct io *, struct proxy_counters *, struct backend *,
    const struct proxy_conf *, void (*emptied)(void *arg), void *arg);
void pool_free(struct pool *);  /* no sockets, no waiters */
void pool_close(struct pool *); /* drain: idle sockets close, busy ones after their reply */
/* The backend is not configured any more: closes as above.  Its waiters, and those that come, get
 * -ECANCELED. */
void pool_retire(struct pool *);
/* The backend may have other addresses: sockets to the old ones close as in pool_close(). */
void pool_move(struct pool *);

void pool_get(struct pool *, struct pool_wait *);
void pool_unget(struct pool *, struct pool_wait *); /* got() is not called any more */
void pool_put(struct lease **, bool fit);           /* fit: for another request */
void pool_tick(struct pool *, uint64_t now_ns);
/* A waiter for which no socket will be opened.  wait: of the client with fewest sockets; NULL: all
 * may have one */
struct pool_lack {
	const struct pool_wait *wait;
	bool has_one; /* its client has a socket already */
	bool own;     /* its client has as many sockets as it may: only one of those helps */
};
struct pool_lack pool_lacks(const struct pool *);

const char *pool_name(const struct pool *);
/* Counts a request without a proper answer, on this lease; NULL: on none. */
void pool_failed(struct pool *, const struct lease *, struct backend_why);
/* Counts for proxy-core.max-fails: a request got no answer. */
void pool_strike(struct pool *, struct backend_why);
bool pool_failing(const struct pool *); /* strikes took it out, in all workers */
struct backend *pool_backend(const struct pool *);
bool pool_active(const struct pool *);
/* Without requests: until the next pool_tick(); UINT_MAX: none is needed. */
unsigned pool_quiet_ms(const struct pool *, uint64_t now_ns);
unsigned pool_sockets(const struct pool *); /* with those being closed */
unsigned pool_load(const struct pool *);    /* busy sockets and waiters of all workers */
unsigned pool_share(const struct pool *, uint64_t now_ns); /* percent; below 100: slow start */
void pool_start_slowly(struct pool *);
bool pool_room(const struct pool *, uint64_t now_ns);
unsigned pool_pause_left_ms(const struct pool *, uint64_t now_ns); /* 0: it may be tried */
bool pool_sick(const struct pool *);                               /* its last check failed */
void pool_heed_checks(struct pool *, uint64_t now_ns);
bool pool_probing(const struct pool *); /* a request tries whether the backend is back */
/* For exchanges that remember the pool: it is not freed meanwhile. */
void pool_hold(struct pool *);
void pool_unhold(struct pool *);

void lease_use(struct lease *, const struct lease_user *, void *arg);
struct buf *lease_out(struct lease *); /* to fill; not between lease_send() and on_sent() */
void lease_send(struct lease *);
bool lease_sending(const struct lease *);
void lease_shutdown(struct lease *);         /* no more sending: FIN */
void lease_asked(struct lease *);            /* the whole request is sent: an answer is due */
void lease_replied(struct lease *);          /* the whole reply came: counts its time */
void lease_recv(struct lease *);             /* one on_recv(), unless one is due already */
bool lease_will_keep(const struct lease *);  /* pool_put() would keep it */
unsigned lease_served(const struct lease *); /* earlier requests on this socket */
/* Sockets of the same client in this pool, with this one; queues: it has requests that wait. */
unsigned lease_client_sockets(const struct lease *, bool *queues);
bool lease_heard(const struct lease *);           /* a byte came for this request */
uint64_t lease_progress_ns(const struct lease *); /* when the backend last took bytes */

#endif
