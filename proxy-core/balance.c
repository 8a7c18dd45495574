#include "proxy-core/balance.h"

/* The next one with room; if none has room, the next one. */
static size_t
pick_round_robin(const struct candidate *c, size_t n, size_t next, struct text host,
    struct text path)
{
	size_t k;

	for (k = 0; k < n; k++)
		if (c[(next + k) % n].room)
			return ((next + k) % n);
	return (next);
}

/* The turn decides among equals, or the first one would get all of a light load. */
static size_t
pick_sqf(const struct candidate *c, size_t n, size_t next, struct text host, struct text path)
{
	size_t k, best = next;

	for (k = 1; k < n; k++)
		if (c[(next + k) % n].load < c[best].load)
			best = (next + k) % n;
	return (best);
}

static size_t
pick_static(const struct candidate *c, size_t n, size_t next, struct text host, struct text path)
{
	return (0);
}

/* FNV-1a gives the same hash on all machines and in all runs, so caches behind it stay useful. */
static uint64_t
hash_more(uint64_t h, struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		h = (h ^ (unsigned char)t.p[i]) * 0x100000001b3ull;
	return ((h ^ 0xff) * 0x100000001b3ull); /* "ab" + "c" is not "a" + "bc" */
}

/* Mixes the last bytes into the upper bits, which decide the comparison below. */
static uint64_t
hash_end(uint64_t h)
{
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ull;
	return (h ^ h >> 33);
}

/* One hash of all three.  A sum of hashes would only turn a fixed ring with uneven gaps. */
static size_t
pick_carp(const struct candidate *c, size_t n, size_t next, struct text host, struct text path)
{
	uint64_t url = hash_more(hash_more(0xcbf29ce484222325ull, host), path), h, highest = 0;
	size_t i, best = 0;

	for (i = 0; i < n; i++) {
		h = hash_end(hash_more(url, c[i].name));
		if (h > highest) {
			highest = h;
			best = i;
		}
	}
	return (best);
}

const struct balancer balancers[] = {
	{ "round-robin", "one after the other, those with a free socket first", pick_round_robin },
	{ "sqf", "shortest queue first", pick_sqf },
	{ "carp", "hash of host and path: the same URL goes to the same backend", pick_carp },
	{ "static", "the first one that works", pick_static },
	{ NULL, NULL, NULL },
};

const struct balancer *
balancer_find(const char *name)
{
	const struct balancer *b;

	for (b = balancers; b->name != NULL; b++)
		if (strcmp(b->name, name) == 0)
			return (b);
	return (NULL);
}

size_t
balance_pick(const struct balancer *b, const struct candidate *c, size_t n, size_t *turn,
    struct text host, struct text path)
{
	size_t next = 0;

	if (n == 0)
		return (BALANCE_NONE);
	while (next < n && c[next].index < *turn)
		next++;
	next = b->pick(c, n, next % n, host, path);
	*turn = c[next].index + 1;
	return (c[next].index);
}
