/* server/conn/clients.c -- see clients.h */
#include "server/conn/clients.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/must.h"

#define SHARDS  64u
#define BUCKETS 256u /* of a shard: with 100,000 addresses a chain has six members on average */

struct client {
	struct client_addr addr;
	struct client *chain;
	unsigned n;
};

struct clients {
	struct shard {
		pthread_mutex_t lock;
		struct client *bucket[BUCKETS];
	} shard[SHARDS];
};

/* ---- the table */

struct clients *
clients_new(void)
{
	struct clients *cs = calloc(1, sizeof(*cs));
	unsigned i;

	for (i = 0; cs != NULL && i < SHARDS; i++)
		pthread_mutex_init(&cs->shard[i].lock, NULL);
	return (cs);
}

void
clients_free(struct clients *cs)
{
	unsigned i, j;

	if (cs == NULL)
		return;
	for (i = 0; i < SHARDS; i++) {
		for (j = 0; j < BUCKETS; j++)
			must(cs->shard[i].bucket[j] == NULL);
		pthread_mutex_destroy(&cs->shard[i].lock);
	}
	free(cs);
}

static struct shard *
shard_of(struct clients *cs, uint64_t hash)
{
	return (&cs->shard[hash % SHARDS]);
}

/* The place of the record of this address; *place is NULL if there is none. */
static struct client **
place(struct shard *s, uint64_t hash, struct client_addr a)
{
	struct client **pp = &s->bucket[hash / SHARDS % BUCKETS];

	while (*pp != NULL && !client_addr_same((*pp)->addr, a))
		pp = &(*pp)->chain;
	return (pp);
}

static int
take_locked(struct client **pp, struct client_addr a, unsigned max, struct client **cp)
{
	if (*pp == NULL) {
		*pp = calloc(1, sizeof(**pp));
		if (*pp == NULL)
			return (-ENOMEM);
		(*pp)->addr = a;
	}
	if (max != 0 && (*pp)->n >= max)
		return (-EUSERS);
	(*pp)->n++;
	*cp = *pp;
	return (0);
}

int
clients_take(struct clients *cs, struct client_addr a, unsigned max, struct client **cp)
{
	uint64_t hash = client_addr_hash(a);
	struct shard *s = shard_of(cs, hash);
	int err;

	*cp = NULL;
	if (a.host == 0)
		return (0);
	pthread_mutex_lock(&s->lock);
	err = take_locked(place(s, hash, a), a, max, cp);
	pthread_mutex_unlock(&s->lock);
	return (err);
}

void
clients_give(struct clients *cs, struct client **cp)
{
	struct client *c = *cp, **pp;
	uint64_t hash;
	struct shard *s;

	*cp = NULL;
	if (c == NULL)
		return;
	hash = client_addr_hash(c->addr);
	s = shard_of(cs, hash);
	pthread_mutex_lock(&s->lock);
	must(c->n > 0);
	if (--c->n == 0) {
		pp = place(s, hash, c->addr);
		*pp = c->chain;
		free(c);
	}
	pthread_mutex_unlock(&s->lock);
}
