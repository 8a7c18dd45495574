/* proxy-core/pool.h -- the sockets to one application, and who waits for one.
 *
 *              pool_get()                                pool_keep()
 *   waiter -> [waiters.h: by client, in turn] -> lease -----------> idle --> the next waiter
 *                                                    | pool_drop()     | a byte or the end came: closed
 *                                                    v                 v
 *                                                  closed            closed
 *
 * Sockets are opened when a request needs them, never ahead: libfcgi gives a fresh one two seconds,
 * then hangs up.  A backend that cannot be reached is paused (disable_ms, doubling up to a minute),
 * then one connect at a time tries whether it is back.  A full listen queue (EAGAIN) or a lack of
 * descriptors is no failure: waiters wait.
 *
 * Stall    A socket that is fresh, has been asked and says nothing, while kept ones are idle or
 *          carry one request after the other, is taken for one that no thread of the application
 *          will ever accept: see app.h for the cure.  "Says nothing" is POOL_STALL_MS, or four
 *          times the longest wait lately seen on a kept socket if that is more, so that an
 *          application which is merely slow is left in peace.
 *
 * Owner    a lease is yours between got() and pool_keep() or pool_drop(); both may be called from
 *          its callbacks.  What it has in flight returns to the pool: you may go away at once.
 * Thread   the worker's loop.  got() may be called from inside pool_get(), pool_keep(), pool_drop()
 *          and pool_tick().
 */
#ifndef PROXY_CORE_POOL_H
#define PROXY_CORE_POOL_H

#include "base/buf.h"
#include "base/counter.h"
#include "base/list.h"
#include "base/rows.h"
#include "io/io.h"
#include "proxy-core/address.h"

#define POOL_STALL_MS 250
#define POOL_IDLE_MS 10000     /* other programs may want the application's threads, too */
#define POOL_PAUSE_MAX_MS 60000
#define POOL_TICK_MS 50        /* how often pool_tick() wants to be called while pool_active() */

struct pool;
struct lease;

struct pool_conf {
	unsigned max_sockets;
	unsigned max_requests; /* on one socket; 0: it is closed after the first */
	unsigned max_waiters, wait_ms, connect_ms, disable_ms;
	unsigned debug;
	unsigned number; /* of the block, for the meter */
	void (*emptied)(void *arg);         /* the last socket is closed; may be NULL */
	void *arg;
};

struct pool_wait {
	/* lease, or NULL with -EBUSY (queue full, or others need its place), -ETIME (waited too long), or why the backend
	 * cannot be reached. */
	void (*got)(struct pool_wait *, struct lease *, int err);
	uint32_t client; /* whose turn it is: its key; 0: nobody's */
	bool fresh;  /* no kept socket, the last one was stale; goes before the others of its client */
	bool unsafe; /* cannot be repeated: look at a kept socket twice before using it */
	/* the pool's */
	struct rows_item turn;
	uint64_t until_ns;
	bool waits;
};

struct lease_user {
	void (*on_recv)(void *arg, struct io_op *); /* as IO_RECV: bytes, 0 or -errno */
	void (*on_sent)(void *arg, int err);        /* lease_out() is sent and empty, or -errno */
};

struct pool *pool_new(struct io *, struct counters *, const char *name, const struct address *,
    size_t n, const struct pool_conf *);
void pool_free(struct pool *);  /* no sockets, no waiters */
void pool_close(struct pool *); /* drain: idle sockets close, busy ones after their reply */

void pool_get(struct pool *, struct pool_wait *);
void pool_unget(struct pool *, struct pool_wait *); /* got() will not come */
void pool_keep(struct lease **);
void pool_drop(struct lease **);
void pool_tick(struct pool *, uint64_t now_ns);

const char *pool_name(const struct pool *);
void pool_failed(struct pool *); /* one more request that it did not answer properly, for the meter */
bool pool_active(const struct pool *);
unsigned pool_sockets(const struct pool *); /* those being closed included */
unsigned pool_load(const struct pool *);
bool pool_room(const struct pool *, uint64_t now_ns);
unsigned pool_pause_left_ms(const struct pool *, uint64_t now_ns); /* 0: may be tried */
bool pool_probing(const struct pool *);     /* a connect is on its way to see whether it is back */

void lease_use(struct lease *, const struct lease_user *, void *arg);
struct buf *lease_out(struct lease *);      /* to fill; not between lease_send() and on_sent() */
void lease_send(struct lease *);
bool lease_sending(const struct lease *);
void lease_asked(struct lease *);           /* the whole request is sent: now an answer is due */
void lease_recv(struct lease *);            /* one on_recv(); nothing when one is due already */
bool lease_will_keep(const struct lease *); /* pool_keep() would keep it */
unsigned lease_served(const struct lease *); /* requests it has carried before this one */
bool lease_heard(const struct lease *);     /* something came for this request */
uint64_t lease_progress_ns(const struct lease *); /* when it last took bytes */

#endif
