/* proxy-core/members.c -- see members.h */
#include "proxy-core/members.h"

#include <errno.h>
#include <limits.h>
#include "base/log.h"
#include "base/must.h"
#include "proxy-core/pool_impl.h"

/* ---------------------------------------------------------------- the list changes */

static struct member *
find(struct members *m, const struct backend *b, unsigned place)
{
	struct member *mb;
	size_t i;

	members_each(m, mb, i)
		if (pool_backend(mb->pool) == b && mb->place == place)
			return (mb);
	return (NULL);
}

static bool
listed(const struct backends *now, const struct member *mb)
{
	size_t i;

	for (i = 0; i < now->n; i++)
		if (now->v[i] == pool_backend(mb->pool) && now->place[i] == mb->place)
			return (true);
	return (false);
}

/* Frees the slots of pools that are no longer listed. */
static void
remove_unlisted(struct members *m, const struct backends *now, struct list *left)
{
	struct member *mb;
	size_t i, n = 0;

	members_each(m, mb, i) {
		if (listed(now, mb)) {
			m->order[n++] = m->order[i];
			continue;
		}
		list_add_tail(left, &mb->pool->link);
		mb->pool = NULL;
	}
	m->n = n;
}

static struct member *
add(struct members *m, struct backend *b)
{
	struct pool *p = pool_new(m->io, m->counters, b, &m->conf, m->emptied, m->arg);

	if (p == NULL)
		return (NULL);
	do
		m->last = (m->last + 1) % BACKENDS_MAX;
	while (m->slot[m->last].pool != NULL);
	m->slot[m->last] = (struct member){ .pool = p };
	return (&m->slot[m->last]);
}

/* False: no memory for a pool; the other pools exist. */
static bool
follow(struct members *m, const struct backends *now, bool slowly)
{
	unsigned char order[BACKENDS_MAX] = { 0 };
	struct member *mb;
	size_t i, n = 0;
	bool all = true;

	for (i = 0; i < now->n; i++) {
		mb = find(m, now->v[i], now->place[i]);
		if (mb == NULL && (mb = add(m, now->v[i])) != NULL && slowly)
			pool_start_slowly(mb->pool);
		if (mb == NULL) {
			all = false;
			continue;
		}
		mb->weight = now->weight[i];
		mb->place = now->place[i];
		order[n++] = (unsigned char)(mb - m->slot);
	}
	memcpy(m->order, order, n);
	m->n = n;
	return (all);
}

void
members_update(struct members *m)
{
	struct backends now;
	struct member *mb;
	struct list left, *l;
	size_t i;

	if (backends_version(m->conf.backends) == m->version)
		return;
	backends_copy(m->conf.backends, &now);
	list_init(&left);
	remove_unlisted(m, &now, &left);
	if (follow(m, &now, true))
		m->version = now.version; /* else the next call tries again */
	while ((l = list_pop(&left)) != NULL) {
		list_add_tail(&m->leaving, l);
		pool_retire(list_entry(l, struct pool, link));
	}
	members_each(m, mb, i)
		pool_move(mb->pool);
}

/* ---------------------------------------------------------------- life */

int
members_init(struct members *m)
{
	struct backends now;

	list_init(&m->leaving);
	m->last = BACKENDS_MAX - 1;
	backends_copy(m->conf.backends, &now);
	m->version = now.version;
	must(now.n > 0);
	return (follow(m, &now, false) ? 0 : -ENOMEM);
}

static void
free_left(struct members *m)
{
	struct pool *p;

	list_each(p, &m->leaving, link) {
		if (!pool_is_over(p))
			continue;
		list_del(&p->link);
		pool_free(p);
	}
}

void
members_fini(struct members *m)
{
	struct member *mb;
	size_t i;

	members_each(m, mb, i)
		pool_free(mb->pool);
	free_left(m);
	must(list_empty(&m->leaving));
}

void
members_close_idle(struct members *m)
{
	struct member *mb;
	size_t i;

	members_each(m, mb, i)
		pool_close(mb->pool);
}

void
members_tick(struct members *m, uint64_t now)
{
	struct member *mb;
	struct pool *p;
	size_t i;

	members_update(m);
	members_each(m, mb, i)
		pool_tick(mb->pool, now);
	list_each(p, &m->leaving, link)
		pool_tick(p, now);
	free_left(m);
}

bool
members_have_sockets(const struct members *m)
{
	const struct member *mb;
	const struct pool *p;
	size_t i;

	members_each(m, mb, i)
		if (pool_sockets(mb->pool) > 0)
			return (true);
	list_each(p, &m->leaving, link)
		if (pool_sockets(p) > 0)
			return (true);
	return (false);
}

bool
members_active(const struct members *m)
{
	const struct member *mb;
	size_t i;

	members_each(m, mb, i)
		if (pool_active(mb->pool))
			return (true);
	return (!list_empty(&m->leaving));
}

unsigned
members_quiet_ms(const struct members *m, uint64_t now)
{
	unsigned ms, least = list_empty(&m->leaving) ? UINT_MAX : POOL_STALL_MS;
	const struct member *mb;
	size_t i;

	members_each(m, mb, i) {
		ms = pool_quiet_ms(mb->pool, now);
		least = ms < least ? ms : least;
	}
	return (least);
}

/* ---------------------------------------------------------------- for the balancer */

static enum members_which
which(const struct pool *p)
{
	if (pool_failing(p))
		return (MEMBERS_FAILING);
	return (pool_probing(p) ? MEMBERS_PROBING : MEMBERS_WELL);
}

size_t
members_candidates(struct members *m, struct candidate v[BACKENDS_MAX], uint64_t tried,
    enum members_which wanted)
{
	uint64_t now = io_now(m->io);
	struct member *mb;
	size_t i, n = 0;

	members_each(m, mb, i) {
		const struct pool *p = mb->pool;

		if ((tried >> m->order[i] & 1) == 0 && pool_pause_left_ms(p, now) == 0 &&
		    !pool_sick(p) && which(p) == wanted)
			v[n++] = (struct candidate){ .name = text_of(pool_name(p)),
				.index = m->order[i],
				.room = pool_room(p, now),
				.load = pool_load(p),
				.weight = mb->weight * pool_share(p, now),
				.turn = &mb->turn };
	}
	return (n);
}
