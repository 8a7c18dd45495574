/* proxy-core/pool_impl.h -- between pool.c, lease.c and waiters.c; nobody else includes it. */
#ifndef PROXY_CORE_POOL_IMPL_H
#define PROXY_CORE_POOL_IMPL_H

#include "proxy-core/app.h"
#include "proxy-core/meter.h"
#include "proxy-core/pool.h"

#define LEASE_STATES(S)                                   \
	S(connecting, "connect is on its way")            \
	S(idle,       "connected, nobody's")              \
	S(busy,       "carries a request")                \
	S(closing,    "waits for its ops, then closes")

enum lease_state {
#define S(name, doc) lease_##name,
	LEASE_STATES(S)
#undef S
};

struct lease {
	struct io_sock sock;
	struct pool *pool;
	struct list link;        /* in its pool's list of its state */
	enum lease_state state;
	struct io_op rd, wr;     /* rd is parked while idle, so that a hang-up is noticed */
	struct io_op ctl;        /* connect, later close */
	bool rd_busy, wr_busy, ctl_busy;
	bool asked, heard;
	unsigned served;
	struct buf out;
	size_t sent;             /* of out */
	struct iovec iov;
	uint64_t since_ns;       /* idle, or busy, since */
	uint64_t progress_ns;
	struct rows_item turn;   /* busy: of the client that has it */
	const struct lease_user *user;
	void *arg;
};

struct pool {
	struct io *io;
	struct counters *counters;
	char *name;
	struct address *address;
	size_t naddress, next;   /* address of the next connect */
	struct pool_conf conf;
	struct app *app;
	struct meter *meter;
	struct list connecting, idle, busy, closing;
	unsigned nconnecting, nidle, nbusy, nclosing;
	struct rows waiters;     /* waiters.c */
	const struct pool_wait *newest; /* while pool_get() runs */
	bool feeding, closed;
	bool down;
	unsigned misses;         /* connects that failed in a row */
	uint64_t pause_ms;       /* the last pause; doubles */
	uint64_t paused_until_ns, retry_at_ns;
	uint64_t slowest_ns;     /* longest wait for a first byte, fading */
	bool kept_seen;
};

void lease_set(struct lease *, enum lease_state); /* the one place a state changes */
void lease_close(struct lease *);                 /* cancels what is in flight; gone when that is back */
void lease_close_step(struct lease *);            /* something of a closing one has come back */

unsigned pool_waiting(const struct pool *);

#endif
