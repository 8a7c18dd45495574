/* server/conn/handover.c -- see handover.h */
#include "server/conn/handover.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker.h"

struct taker {
	struct io *io;
	struct list row;
};

struct handover {
	pthread_mutex_t lock;
	struct clients *clients;
	struct taker *takers;
	unsigned ntakers, next;
	const struct listener *listeners;
	size_t nlisteners;
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

/* The same name in the list of the new generation: the old list may be freed before the connection
 * ends. */
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
	io_close_fd(m->fd);
	if (m->counted != NULL)
		clients_give(h->clients, &m->counted);
	free(m);
}

static void
append(struct handover *h, struct moved *m)
{
	struct taker *t = &h->takers[h->next++ % h->ntakers];

	list_add_tail(&t->row, &m->link);
	__atomic_add_fetch(&h->waiting, 1, __ATOMIC_RELEASE);
	io_wake(t->io);
}

/* Moves all waiting connections to one list. */
static void
empty_rows(struct handover *h, struct list *all)
{
	unsigned i;

	list_init(all);
	for (i = 0; i < h->ntakers; i++)
		list_splice_tail(all, &h->takers[i].row);
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
handover_open(struct handover *h, struct io *const *ios, unsigned n,
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
		takers[i].io = ios[i];
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
			append(h, m);
		else
			give_up(h, m);
	}
	pthread_mutex_unlock(&h->lock);
}

void
handover_close(struct handover *h)
{
	struct list left, *l;

	if (h == NULL)
		return;
	pthread_mutex_lock(&h->lock);
	empty_rows(h, &left);
	takers_set(h, NULL, 0);
	h->nlisteners = 0;
	__atomic_store_n(&h->retired, false, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&h->lock);
	while ((l = list_pop(&left)) != NULL)
		give_up(h, list_entry(l, struct moved, link));
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

bool
handover_give(struct handover *h, const struct moved *given)
{
	struct moved *m = malloc(sizeof(*m));
	const char *name;

	if (m == NULL)
		return (false);
	*m = *given;
	list_init(&m->link);
	pthread_mutex_lock(&h->lock);
	name = listener_of(h, given->listener);
	m->listener = name;
	if (name != NULL)
		append(h, m);
	pthread_mutex_unlock(&h->lock);
	if (name == NULL)
		free(m);
	return (name != NULL);
}

static struct moved *
take_locked(struct handover *h, const struct io *taker)
{
	struct list *l;
	unsigned i;

	for (i = 0; i < h->ntakers && h->takers[i].io != taker; i++)
		;
	if (i == h->ntakers || (l = list_pop(&h->takers[i].row)) == NULL)
		return (NULL);
	__atomic_sub_fetch(&h->waiting, 1, __ATOMIC_RELEASE);
	return (list_entry(l, struct moved, link));
}

struct moved *
handover_take(struct handover *h, const struct io *taker)
{
	struct moved *m;

	if (__atomic_load_n(&h->waiting, __ATOMIC_ACQUIRE) == 0)
		return (NULL);
	pthread_mutex_lock(&h->lock);
	m = take_locked(h, taker);
	pthread_mutex_unlock(&h->lock);
	return (m);
}
