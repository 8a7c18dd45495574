/* proxy-core/pool_impl.h -- shared by these files; no other file includes it.
 *
 *   pool.c          hands out sockets and takes them back; the timer
 *   waiters.c       requests that wait for a socket
 *   pool_connect.c  new sockets; the pause after a failure, max-fails, slow start, other addresses
 *   lease.c         one socket: sending, receiving, closing
 *   members.c       the pools of a block; it links those that leave
 */
#ifndef PROXY_CORE_POOL_IMPL_H
#define PROXY_CORE_POOL_IMPL_H

#include "proxy-core/backend.h"
#include "proxy-core/backend_times.h"
#include "proxy-core/counters.h"
#include "proxy-core/pool.h"
#include "wire/codec/codec.h"

#define OUT_MAX (PROTO_REQUEST_MAX + (128u << 10)) /* a request head, and a piece of its body */

struct lease {
	struct io_sock sock;
	struct pool *pool;
	struct list link; /* in its pool's list of its state */
	enum lease_state state;
	struct io_op rd, wr; /* rd is parked while idle, to notice a hang-up */
	struct io_op ctl;    /* connect, later close */
	struct address to;
	unsigned moves; /* pool.moves when it connected */
	bool rd_busy, wr_busy, ctl_busy;
	bool asked, heard;
	bool large; /* its last receive brought many bytes */
	unsigned served;
	struct buf out;
	size_t sent; /* bytes of out */
	struct iovec iov;
	uint64_t since_ns; /* idle, or busy, since */
	uint64_t progress_ns;
	uint64_t stalled_ns;         /* time at which it was taken for a stall; 0: it was not */
	struct fair_queue_item turn; /* busy: turn of the client that has it */
	const struct lease_user *user;
	void *arg;
};

struct pool {
	struct io *io;
	struct proxy_counters *counters;
	struct backend *backend;
	struct backend_times *times;
	struct address *address; /* of the backend; a copy */
	size_t naddress, next;   /* address of the next connect */
	unsigned moves;          /* backend.moves when the copy was made */
	unsigned held;
	struct list link; /* members.c: pools that end */
	struct proxy_conf conf;
	void (*emptied)(void *arg);
	void *arg;
	struct list leases[LEASE_STATES];
	unsigned n[LEASE_STATES];       /* of them */
	struct fair_queue waiters;      /* waiters.c */
	const struct pool_wait *newest; /* while pool_get() runs */
	bool feeding, closed, retired;
	bool down;
	unsigned misses;     /* connects that failed in a row */
	struct lease *probe; /* down: the one that tries whether the backend is back */
	uint64_t up_ns;      /* time at which it came back; 0: it was never down */
	uint64_t down_ns;    /* time of the last connect that failed */
	bool sick;           /* at the last tick */
	uint64_t pause_ms;   /* the last pause; doubles */
	uint64_t paused_until_ns, retry_at_ns;
};

void lease_set(struct lease *, enum lease_state); /* the one place a state changes */
/* Cancels its ops; freed when they have ended. */
void lease_close(struct lease *);
void lease_close_step(struct lease *); /* an op of a closing lease has ended */

unsigned pool_waiting(const struct pool *);
unsigned pool_open(const struct pool *); /* connecting, idle and busy sockets */
void pool_feed(struct pool *);           /* serves waiters as far as possible */
void pool_close_idle(struct pool *, uint64_t since_before_ns);
bool pool_is_over(const struct pool *); /* nothing is left that points to it */

/* pool_connect.c */
/* w: the waiter that needs the socket; NULL: any request */
bool pool_may_connect(const struct pool *, const struct pool_wait *w, uint64_t now_ns);
void pool_set_up(struct pool *);
void pool_connect(struct pool *); /* one more socket; later if there is no memory */

#endif
