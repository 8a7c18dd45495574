/* proxy-core/waiters.c -- see waiters.h */
#include <errno.h>
#include "base/clock.h"
#include "proxy-core/waiters.h"

static struct pool_wait *
wait_of(struct rows_item *i)
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
	uint64_t now = io_now(p->io);
	int err;

	w->until_ns = now + p->conf.wait_ms * NS_PER_MS;
	w->turn.since_ns = now;
	w->turn.client = w->client;
	err = rows_push(&p->waiters, &w->turn, w->fresh);
	if (err != 0)
		return (err);
	w->waits = true;
	meter_add(p->meter, waiting, 1);
	return (0);
}

struct pool_wait *
waiters_next(const struct pool *p)
{
	return (wait_of(rows_next(&p->waiters)));
}

void
waiters_take(struct pool_wait *w, struct lease *l)
{
	rows_take(&l->pool->waiters, &w->turn);
	l->turn = (struct rows_item){.row = w->turn.row};
	w->turn.row = NULL;
	w->waits = false;
	meter_add(l->pool->meter, waiting, -1u);
}

void
waiters_served(struct lease *l)
{
	rows_ran(&l->pool->waiters, &l->turn);
}

void
pool_unget(struct pool *p, struct pool_wait *w)
{
	if (!w->waits)
		return;
	rows_pull(&p->waiters, &w->turn);
	w->waits = false;
	meter_add(p->meter, waiting, -1u);
}

static void
give_up(struct pool *p, struct pool_wait *w, int err)
{
	pool_unget(p, w);
	w->got(w, NULL, err);
}

void
waiters_fail(struct pool *p, int err)
{
	unsigned n = pool_waiting(p); /* got() may queue up again: not in this round */
	struct pool_wait *w;

	while (n-- > 0 && (w = wait_of(rows_oldest(&p->waiters))) != NULL)
		give_up(p, w, err);
}

void
waiters_shed(struct pool *p, const struct pool_wait *newest)
{
	struct pool_wait *w;

	while (pool_waiting(p) > p->nconnecting && pool_waiting(p) - p->nconnecting > p->conf.max_waiters) {
		w = wait_of(rows_newest_of_longest(&p->waiters));
		if (w != newest)
			count(p->counters, proxy_displaced);
		give_up(p, w, -EBUSY);
	}
}

/* All wait equally long. */
void
waiters_expire(struct pool *p, uint64_t now)
{
	struct pool_wait *w;

	while ((w = wait_of(rows_oldest(&p->waiters))) != NULL && now >= w->until_ns)
		give_up(p, w, -ETIME);
}
