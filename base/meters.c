/* base/meters.c -- see meters.h */
#include "base/meters.h"

#include <stdlib.h>

#include "base/must.h"
#include "base/rate.h"

struct meter {        /* each field is atomic */
	uint64_t key; /* hash of the address; 0: never used */
	uint64_t requests_ns, bytes_ns;
};

struct meters {
	uint64_t mask;
	struct meter slot[][METERS_WAYS];
};

struct meters *
meters_new(unsigned sets)
{
	struct meters *ms;

	must(sets != 0 && (sets & (sets - 1)) == 0);
	ms = calloc(1, sizeof(*ms) + sets * sizeof(ms->slot[0]));
	if (ms != NULL)
		ms->mask = sets - 1;
	return (ms);
}

void
meters_free(struct meters *ms)
{
	free(ms);
}

static uint64_t
load(const uint64_t *v)
{
	return (__atomic_load_n(v, __ATOMIC_RELAXED));
}

/* The time up to which the meter is ahead of the clock. */
static uint64_t
ahead(const struct meter *m)
{
	uint64_t a = load(&m->requests_ns), b = load(&m->bytes_ns);

	return (a > b ? a : b);
}

/* The slot keeps its times: see meters.h. */
static struct meter *
take_slot(struct meter set[METERS_WAYS], uint64_t key)
{
	struct meter *least = &set[0];
	uint64_t old, i;

	for (i = 1; i < METERS_WAYS; i++)
		if (ahead(&set[i]) < ahead(least))
			least = &set[i];
	old = load(&least->key);
	/* Another thread that is faster leaves a slot that is as good. */
	(void)__atomic_compare_exchange_n(&least->key, &old, key, false, __ATOMIC_RELAXED,
	    __ATOMIC_RELAXED);
	return (least);
}

static struct meter *
find(struct meters *ms, struct client_addr a)
{
	uint64_t hash = client_addr_hash(a), key = hash != 0 ? hash : 1, i;
	struct meter *set = ms->slot[hash & ms->mask];

	for (i = 0; i < METERS_WAYS; i++)
		if (load(&set[i].key) == key)
			return (&set[i]);
	return (take_slot(set, key));
}

uint64_t
meters_request(struct meters *ms, struct client_addr a, uint64_t now_ns, uint64_t per_s,
    uint64_t burst)
{
	uint64_t *at = &find(ms, a)->requests_ns, old = load(at), next, limit;

	limit = now_ns + burst * (NS_PER_S / per_s);
	do {
		next = pace_after(old, now_ns, 1, per_s);
		if (next > limit)
			return (next - limit);
	} while (
	    !__atomic_compare_exchange_n(at, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return (0);
}

uint64_t *
meters_bytes(struct meters *ms, struct client_addr a)
{
	return (&find(ms, a)->bytes_ns);
}
