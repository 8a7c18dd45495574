/* proxy-core/waiters.c -- see waiters.h */
#include <errno.h>
#include "proxy-core/waiters.h"

static struct pool_wait *
wait_of(struct fair_queue_item *i)
{
	return (i != NULL ? container_of(i, struct pool_wait, turn) : NULL);
}

unsigned
pool_waiting(const struct pool *p)
{
	return (p->waiters.waiting);
}

int
waiters_push(struct pool *p, struct pool_wait *w)
{
	int err;

	w->turn.since_ns = io_now(p->io);
	w->turn.client = w->client;
	err = fair_queue_push(&p->waiters, &w->turn, w->fresh);
	if (err != 0)
		return (err);
	w->waits = true;
	backend_add(p->backend, waiting, 1);
	return (0);
}

struct pool_wait *
waiters_next(const struct pool *p)
{
	struct pool_wait *w = wait_of(fair_queue_next(&p->waiters));

	if (w != NULL && p->conf.max_per_client != 0 &&
	    fair_queue_running(&w->turn) >= p->conf.max_per_client)
		return (NULL); /* its client has the fewest sockets of all that wait */
	return (w);
}

struct pool_lack
pool_lacks(const struct pool *p)
{
	struct pool_lack l = { .wait = wait_of(fair_queue_next(&p->waiters)) };

	if (l.wait == NULL)
		return (l);
	l.has_one = fair_queue_running(&l.wait->turn) > 0;
	l.own = waiters_next(p) == NULL;
	if (p->n[LEASE_BUSY] < p->conf.max_pool_size && !l.own)
		l.wait = NULL;
	return (l);
}

unsigned
lease_client_sockets(const struct lease *l, bool *queues)
{
	*queues = fair_queue_queued(&l->turn) > 0;
	return (fair_queue_running(&l->turn));
}

void
waiters_take(struct pool_wait *w, struct lease *l)
{
	fair_queue_take(&l->pool->waiters, &w->turn);
	l->turn = (struct fair_queue_item){ .row = w->turn.row };
	w->turn.row = NULL;
	w->waits = false;
	backend_add(l->pool->backend, waiting, -1u);
}

void
waiters_served(struct lease *l)
{
	fair_queue_ran(&l->pool->waiters, &l->turn);
}

static void
leave(struct pool *p, struct pool_wait *w)
{
	fair_queue_pull(&p->waiters, &w->turn);
	w->waits = false;
	backend_add(p->backend, waiting, -1u);
}

/* The first waiter may have needed a fresh socket.  The next one takes an idle one. */
void
pool_unget(struct pool *p, struct pool_wait *w)
{
	if (!w->waits)
		return;
	leave(p, w);
	pool_feed(p);
}

static void
give_up(struct pool *p, struct pool_wait *w, int err)
{
	leave(p, w);
	w->got(w, NULL, err);
}

void
waiters_fail(struct pool *p, int err)
{
	unsigned n = pool_waiting(p); /* got() may queue again: not in this round */
	struct pool_wait *w;

	while (n-- > 0 && (w = wait_of(fair_queue_oldest(&p->waiters))) != NULL)
		give_up(p, w, err);
}

void
waiters_shed(struct pool *p, const struct pool_wait *newest)
{
	struct pool_wait *w;

	while (pool_waiting(p) > p->n[LEASE_CONNECTING] &&
	       pool_waiting(p) - p->n[LEASE_CONNECTING] > p->conf.max_waiters) {
		w = wait_of(fair_queue_newest_of_longest(&p->waiters));
		if (w != newest)
			count(p->counters, proxy_displaced);
		backend_add(p->backend, refused, 1);
		give_up(p, w, -EBUSY);
	}
}
