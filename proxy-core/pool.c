/* proxy-core/pool.c -- see pool.h, pool_impl.h */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include "base/clock.h"
#include "base/log.h"
#include "proxy-core/backend_health.h"
#include "proxy-core/pool_impl.h"
#include "wire/codec/codec.h"
#include "proxy-core/waiters.h"

#define SPARE_BUF (16u << 10) /* a kept socket keeps a send buffer of at most this */

/* ---------------------------------------------------------------- handing out sockets */

/* An idle socket for this waiter, or NULL. */
static struct lease *
pool_take_idle(struct pool *p, const struct pool_wait *w)
{
	struct lease *l;

	list_each(l, &p->leases[LEASE_IDLE], link) {
		if (w->fresh && l->served > 0)
			continue;
		if (!w->unsafe || l->served == 0 || io_sock_alive(&l->sock))
			return (l);
		lease_close(l);
	}
	return (NULL);
}

/* The first waiter needs a fresh socket, and the pool is full of kept ones: closes one. */
static void
pool_make_room(struct pool *p, const struct pool_wait *w)
{
	if (w->fresh && p->n[LEASE_CONNECTING] == 0 && !list_empty(&p->leases[LEASE_IDLE]) &&
	    pool_open(p) >= p->conf.max_pool_size)
		lease_close(list_entry(p->leases[LEASE_IDLE].prev, struct lease, link));
}

static void
lease_give(struct lease *l, struct pool_wait *w)
{
	struct pool *p = l->pool;

	lease_set(l, LEASE_BUSY);
	l->asked = l->heard = false;
	l->stalled_ns = 0;
	l->progress_ns = l->since_ns;
	l->out.n = l->sent = 0;
	backend_times_add(p->times, BACKEND_wait, w->turn.since_ns, l->since_ns);
	waiters_take(w, l);
	if (w->debug)
		log_event(LOG_INFO, NULL, "pool.lease", LF_STR("backend", p->backend->name),
		    LF_U64("served", l->served), LF_U64("busy", p->n[LEASE_BUSY]),
		    LF_U64("idle", p->n[LEASE_IDLE]), LF_U64("waiters", pool_waiting(p)));
	w->got(w, l, 0);
}

static bool
pool_feed_one(struct pool *p)
{
	struct pool_wait *w = waiters_next(p);
	struct lease *l;

	if (w == NULL)
		return (false);
	l = pool_take_idle(p, w);
	if (l != NULL) {
		lease_give(l, w);
		return (true);
	}
	pool_make_room(p, w);
	/* not one connect for each waiter and event: connects in flight count */
	if (p->n[LEASE_CONNECTING] >= pool_waiting(p) || !pool_may_connect(p, w, io_now(p->io)))
		return (false);
	pool_connect(p);
	return (true);
}

void
pool_feed(struct pool *p)
{
	if (p->feeding)
		return; /* got() called this function again; the loop below goes on anyway */
	p->feeding = true;
	while (pool_feed_one(p))
		;
	p->feeding = false;
	waiters_shed(p, p->newest);
}

void
pool_get(struct pool *p, struct pool_wait *w)
{
	const struct pool_wait *before = p->newest;
	int err = p->retired ? -ECANCELED : waiters_push(p, w);

	if (err != 0) {
		w->got(w, NULL, err);
		return;
	}
	p->newest = w;
	pool_feed(p);
	p->newest = before;
}

static void
lease_keep(struct lease *l)
{
	l->served++;
	if (l->out.cap > SPARE_BUF) {
		buf_free(&l->out);
		buf_init(&l->out, OUT_MAX);
	}
	lease_set(l, LEASE_IDLE);
	backend_kept(l->pool->backend, l->since_ns);
	lease_recv(l);
}

void
pool_put(struct lease **lp, bool fit)
{
	struct lease *l = *lp;
	struct pool *p = l->pool;

	must(l->state == LEASE_BUSY);
	*lp = NULL;
	waiters_served(l);
	backend_add(p->backend, requests, 1);
	l->user = NULL;
	if (fit && lease_will_keep(l) && !l->wr_busy)
		lease_keep(l);
	else
		lease_close(l);
	pool_feed(p);
}

/* ---------------------------------------------------------------- time passes */

void
pool_close_idle(struct pool *p, uint64_t since_before)
{
	struct lease *l;

	list_each(l, &p->leases[LEASE_IDLE], link)
		if (l->since_ns <= since_before)
			lease_close(l);
}

/* The socket is fresh and asked (or its request is not even read), and has been silent for too long
 * while kept sockets are served. */
static bool
lease_stalls(const struct lease *l, uint64_t now)
{
	const struct pool *p = l->pool;

	return (l->served == 0 && !l->heard && (l->asked || l->wr_busy) &&
		now - l->progress_ns > backend_stall_ns(p->backend, POOL_STALL_MS * NS_PER_MS) &&
		backend_keeps_since(p->backend, l->progress_ns) && io_sock_was_read(&l->sock) != 1);
}

static unsigned
pool_count_stalls(const struct pool *p, uint64_t now, unsigned *proven, bool *sure)
{
	struct lease *l;
	unsigned n = 0;

	*sure = false;
	*proven = p->n[LEASE_IDLE];
	list_each(l, &p->leases[LEASE_BUSY], link) {
		if (lease_stalls(l, now)) {
			n++;
			*sure = *sure || io_sock_was_read(&l->sock) == 0;
		}
		*proven += l->served > 0 || l->heard;
	}
	return (n);
}

/* The idle sockets are closed now, so a request that waits longer does not wait for a thread. */
static void
pool_mark_stalls(struct pool *p, uint64_t now)
{
	struct lease *l;

	list_each(l, &p->leases[LEASE_BUSY], link)
		if (lease_stalls(l, now))
			l->stalled_ns = now;
}

static void
pool_check_stalls(struct pool *p, uint64_t now)
{
	unsigned n, proven;
	bool sure, news;

	n = pool_count_stalls(p, now, &proven, &sure);
	if (n == 0 || !backend_set_crowded(p->backend, now, sure, &news))
		return;
	pool_mark_stalls(p, now);
	count_add(p->counters, proxy_stalls, n);
	if (news)
		log_limited(10, LOG_WARN, NULL, "pool.stalled", LF_STR("backend", p->backend->name),
		    LF_U64("unanswered", n), LF_U64("answered", proven),
		    LF_U64("max_pool_size", p->conf.max_pool_size),
		    LF_STR("advice",
			"kept sockets bind the application's threads while fresh ones wait: lower "
			"proxy-core.max-pool-size to its accept loops (workers share them), "
			"or set proxy-core.max-keep-alive-requests = 0"),
		    LF_STR("then", "sockets are not kept for a while"));
}

void
pool_tick(struct pool *p, uint64_t now)
{
	pool_check_stalls(p, now);
	pool_heed_checks(p, now);
	if (backend_crowded(p->backend, now))
		pool_close_idle(p, now);
	else if (now > p->conf.idle_ms * NS_PER_MS)
		pool_close_idle(p, now - p->conf.idle_ms * NS_PER_MS);
	pool_feed(p);
}

/* An idle pool looks this often whether another worker waits for threads that its idle sockets
 * bind. */
#define POOL_LOOK_MS 1000u

unsigned
pool_quiet_ms(const struct pool *p, uint64_t now)
{
	uint64_t since = UINT64_MAX, end, ms;
	const struct lease *l;

	if (pool_waiting(p) > 0 || pool_sockets(p) > p->n[LEASE_IDLE] ||
	    backend_crowded(p->backend, now))
		return (POOL_STALL_MS);
	list_each(l, &p->leases[LEASE_IDLE], link)
		if (l->since_ns < since)
			since = l->since_ns;
	if (since == UINT64_MAX)
		return (UINT_MAX);
	end = since + p->conf.idle_ms * NS_PER_MS;
	ms = end > now ? (end - now) / NS_PER_MS + 1 : 1;
	return (ms < POOL_LOOK_MS ? (unsigned)ms : POOL_LOOK_MS);
}

/* ---------------------------------------------------------------- the rest */

struct pool *
pool_new(struct io *io, struct proxy_counters *counters, struct backend *b,
    const struct proxy_conf *conf, void (*emptied)(void *arg), void *arg)
{
	struct pool *p = calloc(1, sizeof(*p));
	size_t i;

	if (p == NULL)
		return (NULL);
	for (i = 0; i < LEASE_STATES; i++)
		list_init(&p->leases[i]);
	list_init(&p->link);
	p->io = io;
	p->counters = counters;
	p->conf = *conf;
	p->emptied = emptied;
	p->arg = arg;
	p->backend = b;
	backend_use(b);
	p->moves = backend_read(b, moves); /* before the copy, so that no move is missed */
	p->address = backend_addresses(b, &p->naddress);
	p->times = backend_times_take(b);
	if (fair_queue_init(&p->waiters) != 0 || p->address == NULL || p->times == NULL) {
		pool_free(p);
		return (NULL);
	}
	return (p);
}

void
pool_free(struct pool *p)
{
	must(pool_sockets(p) == 0 && pool_waiting(p) == 0);
	fair_queue_fini(&p->waiters);
	if (p->down)
		backend_reached(p->backend, io_now(p->io));
	if (p->times != NULL)
		backend_times_return(p->times);
	backend_put(p->backend);
	free(p->address);
	free(p);
}

void
pool_close(struct pool *p)
{
	struct lease *l;

	p->closed = true;
	pool_close_idle(p, UINT64_MAX);
	if (pool_waiting(p) > 0)
		return;
	list_each(l, &p->leases[LEASE_CONNECTING], link)
		lease_close(l);
}

const char *
pool_name(const struct pool *p)
{
	return (p->backend->name);
}

bool
pool_active(const struct pool *p)
{
	return (pool_open(p) + pool_waiting(p) > 0);
}

unsigned
pool_sockets(const struct pool *p)
{
	return (pool_open(p) + p->n[LEASE_CLOSING]);
}

unsigned
pool_load(const struct pool *p)
{
	return (backend_read(p->backend, sockets[LEASE_BUSY]) + backend_read(p->backend, waiting));
}

void
pool_retire(struct pool *p)
{
	p->closed = p->retired = true;
	waiters_fail(p, -ECANCELED);
	pool_close(p);
}

void
pool_hold(struct pool *p)
{
	p->held++;
}

void
pool_unhold(struct pool *p)
{
	must(p->held > 0);
	p->held--;
}

bool
pool_is_over(const struct pool *p)
{
	return (p->held == 0 && pool_sockets(p) == 0 && pool_waiting(p) == 0);
}

struct backend *
pool_backend(const struct pool *p)
{
	return (p->backend);
}

bool
pool_room(const struct pool *p, uint64_t now)
{
	return (p->n[LEASE_IDLE] > pool_waiting(p) ||
		(pool_waiting(p) <= p->n[LEASE_CONNECTING] && pool_may_connect(p, NULL, now)));
}
