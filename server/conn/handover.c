/* server/conn/handover.c -- see handover.h */
#include "server/conn/handover.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/conn/clients.h"
#include "server/worker/worker.h"

/* A share is the mean, an eighth of it, and this many more.  A smaller number would make a busy
 * server move connections that have one request each.  The eighth keeps the busiest of many below
 * 1.3 x the mean. */
#define SLACK 4u
/* Most connections that may wait for a worker that has not gone round since they were given: as
 * many as it takes in a round.  A worker that stands still (the kernel made it wait for a disk)
 * gets no more: they would wait with it, and the giver can serve them. */
#define WAIT_MAX 32u
/* Between two looks at the rows.  A loop that made no round meanwhile stands still: what waits for
 * it goes to others. */
#define LATE_NS (100 * NS_PER_MS)
#define NEVER   UINT64_MAX

struct taker {
	struct worker *w;
	struct list row;
	uint64_t rounds; /* of its loop at the last look, if connections waited for it; or NEVER */
	bool late;       /* it has made no round since then: see is_late() */
};

struct handover {
	pthread_mutex_t lock;
	struct clients *clients;
	struct taker *takers;
	unsigned ntakers;
	const struct listener *listeners;
	size_t nlisteners;
	uint64_t looked_ns;
	unsigned waiting; /* in all rows; atomic: a worker reads it once a round */
	bool open;        /* atomic */
	bool retired;     /* atomic */
};

struct handover *
handover_new(struct clients *clients)
{
	struct handover *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return (NULL);
	pthread_mutex_init(&h->lock, NULL);
	h->clients = clients;
	return (h);
}

/* The listener's name as a text of the new generation: the old list of names may be freed before
 * the connection ends. */
static const char *
listener_of(const struct handover *h, const char *name)
{
	size_t i;

	for (i = 0; i < h->nlisteners; i++)
		if (strcmp(h->listeners[i].name, name) == 0)
			return (h->listeners[i].name);
	return (NULL);
}

static void
give_up(struct handover *h, struct moved *m)
{
	io_transport_free(m->transport);
	io_close_fd(m->fd);
	if (m->counted != NULL)
		clients_give(h->clients, &m->counted);
	free(m);
}

static unsigned
load_of(const struct taker *t)
{
	return (worker_connections(t->w) + shared_get(t->w->spread.coming));
}

/* True: the taker's loop stands still, so the taker gets no connection until the loop goes on. */
static bool
is_late(const struct taker *t)
{
	return (t->late && t->rounds == shared_get(t->w->rounds));
}

static bool
is_better(const struct taker *t, const struct taker *than)
{
	bool late = is_late(t);

	return (late == is_late(than) ? load_of(t) < load_of(than) : !late);
}

/* The taker with the lowest load among those for which fewer than this many connections wait; NULL:
 * none. */
static struct taker *
fewest(const struct handover *h, unsigned max_coming)
{
	struct taker *best = NULL, *t;
	unsigned i;

	for (i = 0; i < h->ntakers; i++) {
		t = &h->takers[i];
		if (shared_get(t->w->spread.coming) < max_coming &&
		    (best == NULL || is_better(t, best)))
			best = t;
	}
	return (best);
}

static struct taker *
taker_of(const struct handover *h, const struct worker *w)
{
	unsigned i;

	for (i = 0; i < h->ntakers; i++)
		if (h->takers[i].w == w)
			return (&h->takers[i]);
	return (NULL);
}

static void
coming_add(struct taker *t, unsigned n)
{
	shared_set(t->w->spread.coming, t->w->spread.coming + n);
}

static void
append(struct handover *h, struct taker *t, struct moved *m)
{
	list_add_tail(&t->row, &m->link);
	coming_add(t, 1);
	__atomic_add_fetch(&h->waiting, 1, __ATOMIC_RELEASE);
	io_wake(t->w->base.io);
}

/* Moves all waiting connections to one list. */
static void
empty_rows(struct handover *h, struct list *all)
{
	unsigned i;

	list_init(all);
	for (i = 0; i < h->ntakers; i++) {
		list_splice_tail(all, &h->takers[i].row);
		shared_set(h->takers[i].w->spread.coming, 0);
	}
	__atomic_store_n(&h->waiting, 0, __ATOMIC_RELEASE);
}

static void
takers_set(struct handover *h, struct taker *takers, unsigned n)
{
	free(h->takers);
	h->takers = takers;
	h->ntakers = n;
	__atomic_store_n(&h->open, n != 0, __ATOMIC_RELEASE);
}

void
handover_open(struct handover *h, struct worker *const *workers, unsigned n,
    const struct listener *listeners, size_t nlisteners)
{
	struct taker *takers = calloc(n, sizeof(*takers));
	struct list left, *l;
	unsigned i;

	if (takers == NULL) {
		handover_close(h);
		return;
	}
	for (i = 0; i < n; i++) {
		takers[i].w = workers[i];
		takers[i].rounds = NEVER;
		list_init(&takers[i].row);
	}
	pthread_mutex_lock(&h->lock);
	empty_rows(h, &left);
	takers_set(h, takers, n);
	h->listeners = listeners;
	h->nlisteners = nlisteners;
	while ((l = list_pop(&left)) != NULL) {
		struct moved *m = list_entry(l, struct moved, link);

		m->listener = listener_of(h, m->listener);
		if (m->listener != NULL)
			append(h, fewest(h, UINT_MAX), m);
		else
			give_up(h, m);
	}
	pthread_mutex_unlock(&h->lock);
}

static void
give_up_all(struct handover *h, struct list *left)
{
	struct list *l;

	while ((l = list_pop(left)) != NULL)
		give_up(h, list_entry(l, struct moved, link));
}

void
handover_close(struct handover *h)
{
	struct list left;

	if (h == NULL)
		return;
	pthread_mutex_lock(&h->lock);
	empty_rows(h, &left);
	takers_set(h, NULL, 0);
	h->nlisteners = 0;
	__atomic_store_n(&h->retired, false, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&h->lock);
	give_up_all(h, &left);
}

void
handover_forget(struct handover *h, const struct worker *w)
{
	struct list left;

	if (h == NULL)
		return;
	list_init(&left);
	pthread_mutex_lock(&h->lock);
	if (taker_of(h, w) != NULL) {
		empty_rows(h, &left);
		takers_set(h, NULL, 0);
	}
	pthread_mutex_unlock(&h->lock);
	give_up_all(h, &left);
}

void
handover_retire(struct handover *h)
{
	pthread_mutex_lock(&h->lock);
	h->nlisteners = 0; /* so nothing more is given */
	__atomic_store_n(&h->open, false, __ATOMIC_RELEASE);
	__atomic_store_n(&h->retired, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&h->lock);
}

bool
handover_is_retired(const struct handover *h)
{
	return (h != NULL && __atomic_load_n(&h->retired, __ATOMIC_ACQUIRE));
}

void
handover_free(struct handover *h)
{
	if (h == NULL)
		return;
	handover_close(h);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

bool
handover_is_open(const struct handover *h)
{
	return (h != NULL && __atomic_load_n(&h->open, __ATOMIC_ACQUIRE));
}

/* A full worker closes a connection that has sent nothing.  It must not be one whose bytes it has
 * not read yet because it was given a moment ago, so the last places are not given. */
static bool
is_nearly_full(const struct taker *t)
{
	unsigned max = t->w->base.conf.max_conns;

	return (load_of(t) + 1 >= max - max / 8);
}

/* NULL: the connection stays where it is.  It cannot stay with a giver that ends. */
static struct taker *
choose(const struct handover *h, const struct worker *giver)
{
	const struct taker *own = taker_of(h, giver);
	struct taker *best = fewest(h, own != NULL ? WAIT_MAX : UINT_MAX);

	if (own == NULL || best == NULL)
		return (best);
	if (load_of(best) + 1 >= load_of(own) || is_nearly_full(best) || is_late(best))
		return (NULL);
	return (best);
}

bool
handover_give(struct handover *h, const struct worker *giver, const struct moved *given)
{
	struct moved *m = malloc(sizeof(*m));
	struct taker *t;

	if (m == NULL)
		return (false);
	*m = *given;
	list_init(&m->link);
	pthread_mutex_lock(&h->lock);
	m->listener = listener_of(h, given->listener);
	t = m->listener != NULL ? choose(h, giver) : NULL;
	if (t != NULL)
		append(h, t, m);
	pthread_mutex_unlock(&h->lock);
	if (t == NULL)
		free(m);
	return (t != NULL);
}

static struct moved *
take_locked(struct handover *h, const struct worker *taker)
{
	struct taker *t = taker_of(h, taker);
	struct list *l;

	if (t == NULL || (l = list_pop(&t->row)) == NULL)
		return (NULL);
	coming_add(t, -1u);
	__atomic_sub_fetch(&h->waiting, 1, __ATOMIC_RELEASE);
	return (list_entry(l, struct moved, link));
}

struct moved *
handover_take(struct handover *h, const struct worker *taker)
{
	struct moved *m;

	if (__atomic_load_n(&h->waiting, __ATOMIC_ACQUIRE) == 0)
		return (NULL);
	pthread_mutex_lock(&h->lock);
	m = take_locked(h, taker);
	pthread_mutex_unlock(&h->lock);
	return (m);
}

/* ---- shares */

/* Counts only the workers whose loops go round: a connection cannot move to another one. */
static unsigned
share_of(const struct handover *h)
{
	uint64_t all = 0, n = 0;
	unsigned i;

	if (h->ntakers < 2)
		return (h->ntakers == 0 ? 0 : UINT_MAX);
	for (i = 0; i < h->ntakers; i++) {
		if (is_late(&h->takers[i]))
			continue;
		all += load_of(&h->takers[i]);
		n++;
	}
	return (n == 0 ? UINT_MAX : (unsigned)(all * 9 / (8 * n)) + SLACK);
}

unsigned
handover_share(struct handover *h, const struct worker *w)
{
	unsigned share;

	pthread_mutex_lock(&h->lock);
	share = taker_of(h, w) != NULL ? share_of(h) : 0;
	pthread_mutex_unlock(&h->lock);
	return (share);
}

/* Asks the worker to compare its connections with its share. */
static void
ask_spread(struct worker *w)
{
	shared_set(w->spread.asked, true);
	io_wake(w->base.io);
}

static void
ask_most(const struct handover *h)
{
	const struct taker *most = h->takers;
	unsigned i;

	for (i = 1; i < h->ntakers; i++)
		if (load_of(&h->takers[i]) > load_of(most))
			most = &h->takers[i];
	if (h->ntakers > 1 && load_of(most) > share_of(h))
		ask_spread(most->w);
}

/* ---- a worker whose loop stands still */

static void
note_rounds(struct taker *t)
{
	uint64_t rounds = shared_get(t->w->rounds);
	bool waits = !list_empty(&t->row);

	t->late = t->rounds == rounds && (t->late || waits);
	t->rounds = t->late || waits ? rounds : NEVER;
}

/* The connections that wait for this worker go to the others. */
static void
pass_on(struct handover *h, struct taker *late)
{
	struct list row, *l;

	if (list_empty(&late->row) || is_late(fewest(h, UINT_MAX)))
		return;
	list_init(&row);
	list_splice_tail(&row, &late->row);
	while ((l = list_pop(&row)) != NULL) {
		coming_add(late, -1u);
		__atomic_sub_fetch(&h->waiting, 1, __ATOMIC_RELEASE);
		append(h, fewest(h, UINT_MAX), list_entry(l, struct moved, link));
	}
}

static void
look_at_rows(struct handover *h, uint64_t now)
{
	unsigned i;

	if (now - h->looked_ns < LATE_NS)
		return;
	h->looked_ns = now;
	for (i = 0; i < h->ntakers; i++)
		note_rounds(&h->takers[i]);
	for (i = 0; i < h->ntakers; i++)
		if (is_late(&h->takers[i]))
			pass_on(h, &h->takers[i]);
}

bool
handover_look(struct handover *h, uint64_t now)
{
	pthread_mutex_lock(&h->lock);
	look_at_rows(h, now);
	ask_most(h);
	pthread_mutex_unlock(&h->lock);
	return (__atomic_load_n(&h->waiting, __ATOMIC_ACQUIRE) != 0);
}
