#include "proxy-core/balance.h"

/* Each balancer sees candidates of the best state there is; the others have been put out. */

/* Who comes next and has room; when nobody has, who comes next. */
static size_t
pick_round_robin(
    const struct candidate *c, size_t n, size_t turn, struct text host, struct text path)
{
	size_t i, k, first = BALANCE_NONE;

	for (k = 0; k < n; k++) {
		i = (turn + k) % n;
		if (c[i].state == BACKEND_OUT)
			continue;
		if (c[i].room)
			return (i);
		if (first == BALANCE_NONE)
			first = i;
	}
	return (first);
}

/* Among equals the turn decides, or the first would get all the light traffic. */
static size_t
pick_sqf(const struct candidate *c, size_t n, size_t turn, struct text host, struct text path)
{
	size_t i, k, best = BALANCE_NONE;

	for (k = 0; k < n; k++) {
		i = (turn + k) % n;
		if (c[i].state == BACKEND_OUT)
			continue;
		if (best == BALANCE_NONE || c[i].load < c[best].load)
			best = i;
	}
	return (best);
}

static size_t
pick_static(const struct candidate *c, size_t n, size_t turn, struct text host, struct text path)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (c[i].state != BACKEND_OUT)
			return (i);
	return (BALANCE_NONE);
}

/* FNV-1a: the same everywhere and in every run, or a restart would empty all caches behind us. */
static uint64_t
hash_more(uint64_t h, struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		h = (h ^ (unsigned char)t.p[i]) * 0x100000001b3ull;
	return ((h ^ 0xff) * 0x100000001b3ull); /* "ab" + "c" is not "a" + "bc" */
}

/* FNV's upper bits depend little on the last bytes; the comparison below needs them to. */
static uint64_t
hash_end(uint64_t h)
{
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ull;
	return (h ^ h >> 33);
}

/* One hash over all three: adding hashes up would only turn a fixed ring with its uneven gaps. */
static size_t
pick_carp(const struct candidate *c, size_t n, size_t turn, struct text host, struct text path)
{
	uint64_t url = hash_more(hash_more(0xcbf29ce484222325ull, host), path), h, highest = 0;
	size_t i, best = BALANCE_NONE;

	for (i = 0; i < n; i++) {
		if (c[i].state == BACKEND_OUT)
			continue;
		h = hash_end(hash_more(url, c[i].name));
		if (best == BALANCE_NONE || h > highest) {
			highest = h;
			best = i;
		}
	}
	return (best);
}

const struct balancer balancers[] = {
	{"round-robin", "one after the other, those with a free socket first", pick_round_robin},
	{"sqf", "shortest queue first", pick_sqf},
	{"carp", "hash of host and path: the same URL goes to the same backend", pick_carp},
	{"static", "the first one that lives", pick_static},
	{NULL, NULL, NULL},
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
	size_t i;

	i = b->pick(c, n, n > 0 ? *turn % n : 0, host, path);
	if (i != BALANCE_NONE)
		*turn = i + 1;
	return (i);
}
