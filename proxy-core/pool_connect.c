/* proxy-core/pool_connect.c -- connects to a backend, and the pause after one that failed; see
 * pool.h. */
#include <errno.h>
#include <stdlib.h>
#include "base/clock.h"
#include "base/log.h"
#include "proxy-core/backend_health.h"
#include "proxy-core/pool_impl.h"
#include "proxy-core/waiters.h"

#define RETRY_MS 20 /* until the next try, if a connect must wait */

static uint64_t
pool_next_pause(const struct pool *p)
{
	uint64_t ms = p->pause_ms * 2;

	if (ms > POOL_PAUSE_MAX_MS)
		ms = POOL_PAUSE_MAX_MS;
	return (ms > p->conf.disable_ms ? ms : p->conf.disable_ms);
}

static struct backend_why
connect_why(const struct pool *p, int err)
{
	if (err == -ETIMEDOUT)
		return (
		    (struct backend_why){ BACKEND_FAULT_timeout, true, (int)p->conf.connect_ms });
	return ((struct backend_why){ BACKEND_FAULT_refused, true, -err });
}

static void
pool_set_down(struct pool *p, int err, struct backend_why why)
{
	uint64_t now = io_now(p->io);

	p->misses = 0;
	p->down_ns = now;
	/* many connects that fail at once count as one failure, with one pause */
	if (!p->down || now >= p->paused_until_ns) {
		p->pause_ms = pool_next_pause(p);
		p->paused_until_ns = now + p->pause_ms * NS_PER_MS;
	}
	backend_down(p->backend, why, p->down, now);
	p->down = true;
	log_limited(10, LOG_WARN, NULL, "pool.down", LF_STR("backend", p->backend->name),
	    LF_ERR("error", err), LF_U64("pause_ms", p->pause_ms),
	    LF_U64("waiters", pool_waiting(p)));
	waiters_fail(p, err);
}

void
pool_set_up(struct pool *p)
{
	p->misses = 0;
	p->pause_ms = 0;
	if (!p->down)
		return;
	p->down = false;
	p->probe = NULL;
	p->paused_until_ns = 0;
	pool_start_slowly(p);
	backend_reached(p->backend, io_now(p->io));
	log_limited(10, LOG_INFO, NULL, "pool.up", LF_STR("backend", p->backend->name),
	    LF_U64("waiters", pool_waiting(p)));
}

/* The application (or this process) is full, not down. */
static bool
is_temporary(int err)
{
	switch (err) {
	case -EAGAIN: /* unix socket: the listen queue is full */
	case -EMFILE:
	case -ENFILE:
	case -ENOBUFS:
	case -ENOMEM:
	case -EADDRNOTAVAIL: /* no local port left */ return (true);
	}
	return (false);
}

static void
pool_connect_failed(struct pool *p, int err)
{
	if (is_temporary(err)) {
		p->retry_at_ns = io_now(p->io) + RETRY_MS * NS_PER_MS;
		log_limited(1, LOG_WARN, NULL, "pool.full", LF_STR("backend", p->backend->name),
		    LF_ERR("error", err), LF_U64("waiters", pool_waiting(p)),
		    LF_U64("sockets", pool_sockets(p)));
	} else {
		pool_failed(p, NULL, connect_why(p, err));
		if (++p->misses >= p->naddress)
			pool_set_down(p, err, connect_why(p, err));
	}
	pool_feed(p); /* the name may have another address; waiters above the limit go */
}

static void
lease_connected(struct io_op *op)
{
	struct lease *l = list_entry(op, struct lease, ctl);
	struct pool *p = l->pool;
	int err = (int)op->res;

	l->ctl_busy = false;
	if (l->state == LEASE_CLOSING) {
		lease_close_step(l);
		return;
	}
	if (err < 0) {
		lease_set(l, LEASE_CLOSING); /* it no longer takes a place */
		if (l == p->probe)
			p->probe = NULL;
		pool_connect_failed(p, err);
		lease_close_step(l);
		return;
	}
	if (l != p->probe)
		pool_set_up(p);
	backend_times_add(p->times, BACKEND_connect, l->since_ns, io_now(p->io));
	lease_set(l, LEASE_IDLE);
	pool_feed(p);
	if (l->state != LEASE_IDLE)
		return;
	/* The waiter got another socket meanwhile.  A thread of the application may be bound to
	 * this new socket now. */
	if (lease_will_keep(l))
		lease_recv(l);
	else
		lease_close(l);
}

static int
connect_start(struct pool *p)
{
	const struct address *a = &p->address[p->next++ % p->naddress];
	struct lease *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return (-ENOMEM);
	l->pool = p;
	list_init(&l->link);
	io_sock_init(&l->sock, -1);
	buf_init(&l->out, OUT_MAX);
	op_init(&l->ctl, IO_CONNECT, lease_connected);
	l->ctl.sock = &l->sock;
	l->to = *a; /* the pool may move meanwhile */
	l->moves = p->moves;
	l->ctl.connect.addr = &l->to.sa;
	l->ctl.connect.len = l->to.len;
	l->ctl.deadline_ms = p->conf.connect_ms;
	l->ctl_busy = true;
	if (p->down)
		p->probe = l;
	lease_set(l, LEASE_CONNECTING);
	op_submit(p->io, &l->ctl);
	return (0);
}

void
pool_connect(struct pool *p)
{
	if (connect_start(p) != 0)
		p->retry_at_ns = io_now(p->io) + RETRY_MS * NS_PER_MS;
}

unsigned
pool_open(const struct pool *p)
{
	return (p->n[LEASE_CONNECTING] + p->n[LEASE_IDLE] + p->n[LEASE_BUSY]);
}

bool
pool_may_connect(const struct pool *p, const struct pool_wait *w, uint64_t now)
{
	bool paused = now < p->paused_until_ns && (w == NULL || !w->check);

	if (paused || now < p->retry_at_ns)
		return (false);
	if (p->down && (p->probe != NULL || p->n[LEASE_CONNECTING] > 0))
		return (false);
	return (pool_open(p) < p->conf.max_pool_size);
}

bool
pool_probing(const struct pool *p)
{
	return (p->down &&
		(p->probe != NULL ? p->probe->state != LEASE_IDLE : p->n[LEASE_CONNECTING] > 0));
}

unsigned
pool_pause_left_ms(const struct pool *p, uint64_t now)
{
	if (now >= p->paused_until_ns)
		return (0);
	return ((unsigned)((p->paused_until_ns - now + NS_PER_MS - 1) / NS_PER_MS));
}

bool
pool_sick(const struct pool *p)
{
	return (p->conf.check_url != NULL && backend_read(p->backend, sick) != 0);
}

/* Takes over what the worker that checks has found. */
void
pool_heed_checks(struct pool *p, uint64_t now)
{
	if (p->sick && !pool_sick(p))
		pool_start_slowly(p);
	p->sick = pool_sick(p);
	if (p->down && p->paused_until_ns > now && p->conf.check_url != NULL &&
	    backend_read(p->backend, good_ns) > p->down_ns)
		p->paused_until_ns = now;
}

/* A probe that ends without a byte of a reply counts as a failed connect. */
void
pool_failed(struct pool *p, const struct lease *l, struct backend_why why)
{
	backend_add(p->backend, failed, 1);
	backend_fault(p->backend, why);
	if (l == NULL || l != p->probe || l->heard || !(l->asked || l->wr_busy))
		return;
	p->probe = NULL;
	pool_set_down(p, -ENODATA, why);
}

/* ---------------------------------------------------------------- proxy-core.max-fails */

bool
pool_failing(const struct pool *p)
{
	return (backend_failing(p->backend, io_now(p->io)));
}

void
pool_strike(struct pool *p, struct backend_why why)
{
	uint64_t in = p->conf.fail_ms * NS_PER_MS, slow = p->conf.slow_start_ms * NS_PER_MS,
		 now = io_now(p->io), until;
	struct backend_strikes s = { p->conf.max_fails, in, slow != 0 ? slow : in };
	struct backend_health h;

	if (!backend_strike(p->backend, why, &s, now, &until))
		return;
	count(p->counters, proxy_taken_out);
	backend_health(p->backend, now, &h);
	log_limited(10, LOG_WARN, NULL, "backend.failing", LF_STR("backend", p->backend->name),
	    LF_STR("why", h.reason), LF_U64("fails", p->conf.max_fails),
	    LF_U64("out_ms", (until - now) / NS_PER_MS),
	    LF_STR("then",
		"it gets requests only if no other backend is left; later a growing share"));
}

/* ---------------------------------------------------------------- slow start */

void
pool_start_slowly(struct pool *p)
{
	p->up_ns = io_now(p->io);
	if (p->conf.slow_start_ms > 0)
		backend_slow(p->backend, p->up_ns, p->up_ns + p->conf.slow_start_ms * NS_PER_MS);
}

unsigned
pool_share(const struct pool *p, uint64_t now)
{
	uint64_t all = p->conf.slow_start_ms * NS_PER_MS, since = now - p->up_ns;
	unsigned share = backend_share(p->backend, now, POOL_SHARE_MIN), own;

	if (p->up_ns == 0 || since >= all)
		return (share);
	own = (unsigned)(POOL_SHARE_MIN + (100 - POOL_SHARE_MIN) * since / all);
	return (own < share ? own : share);
}

/* ---------------------------------------------------------------- other addresses */

/* Out of memory, it keeps the old ones until the next call. */
void
pool_move(struct pool *p)
{
	unsigned moves = backend_read(p->backend, moves);
	struct address *now;
	size_t n;

	if (moves == p->moves || (now = backend_addresses(p->backend, &n)) == NULL)
		return;
	free(p->address);
	p->address = now;
	p->naddress = n;
	p->moves = moves;
	p->misses = 0;
	pool_close_idle(p, UINT64_MAX);
	pool_feed(p);
}
