/* proxy-core/balance.c -- see balance.h; the table of balancers is at the end */
#include "proxy-core/balance.h"

#include "base/rendezvous.h"

/* ---------------------------------------------------------------- in turn */

/* Smooth weighted rotation: each candidate that is fit gains its weight, and the one with most
 * pays for all.  Weights 2 and 1 give a b a, a b a, not a a b.  Equal ones go in their order. */
static size_t
in_turn(const struct candidate *c, size_t n, const bool *fit)
{
	size_t i, best = BALANCE_NONE;
	int64_t sum = 0;

	for (i = 0; i < n; i++) {
		if (!fit[i])
			continue;
		*c[i].turn += c[i].weight;
		sum += c[i].weight;
		if (best == BALANCE_NONE || *c[i].turn > *c[best].turn)
			best = i;
	}
	*c[best].turn -= sum;
	return (best);
}

/* Only candidates with room; all if none has room. */
static size_t
pick_round_robin(const struct candidate *c, size_t n, const struct balance_key *k)
{
	bool fit[n], some = false;
	size_t i;

	for (i = 0; i < n; i++)
		some = some || c[i].room;
	for (i = 0; i < n; i++)
		fit[i] = c[i].room || !some;
	return (in_turn(c, n, fit));
}

/* The smallest load for its weight.  Equal ones take turns; otherwise the first would get all
 * requests of a light load. */
static size_t
pick_sqf(const struct candidate *c, size_t n, const struct balance_key *k)
{
	bool fit[n];
	size_t i, best = 0;

	for (i = 1; i < n; i++)
		if ((uint64_t)c[i].load * c[best].weight < (uint64_t)c[best].load * c[i].weight)
			best = i;
	for (i = 0; i < n; i++)
		fit[i] =
		    (uint64_t)c[i].load * c[best].weight == (uint64_t)c[best].load * c[i].weight;
	return (in_turn(c, n, fit));
}

static size_t
pick_static(const struct candidate *c, size_t n, const struct balance_key *k)
{
	return (0);
}

/* ---------------------------------------------------------------- by hash */

static void
scores_of(const struct candidate *c, size_t n, uint64_t request, double *score)
{
	size_t i;

	for (i = 0; i < n; i++)
		score[i] = rendezvous_score(request, c[i].name, c[i].weight);
}

static size_t
highest(const double *score, size_t n)
{
	size_t i, best = 0;

	for (i = 1; i < n; i++)
		if (score[i] > score[best])
			best = i;
	return (best);
}

/* False: with one more request the candidate would have more than factor percent of its share. */
static bool
within_share(const struct candidate *c, uint64_t load, uint64_t weight, unsigned factor)
{
	return (factor == 0 || (uint64_t)c->load * 100 * weight < factor * (load + 1) * c->weight);
}

/* A hot URL spills to the backend with the next score.  At least one backend is within its share,
 * because factor is at least 100. */
static size_t
pick_carp(const struct candidate *c, size_t n, const struct balance_key *k)
{
	unsigned factor = k->factor == 0 || k->factor > 100 ? k->factor : 100;
	uint64_t load = 0, weight = 0;
	double score[n];
	size_t i, best;

	for (i = 0; i < n; i++) {
		load += c[i].load;
		weight += c[i].weight;
	}
	scores_of(c, n, rendezvous_key(k->host, k->path), score);
	for (i = 0; i < n; i++) {
		best = highest(score, n);
		if (within_share(&c[best], load, weight, factor))
			return (best);
		score[best] = -1;
	}
	return (0);
}

static size_t
pick_sticky(const struct candidate *c, size_t n, const struct balance_key *k)
{
	double score[n];

	scores_of(c, n, rendezvous_key(k->client, TEXT("")), score);
	return (highest(score, n));
}

/* ---------------------------------------------------------------- the table */

const struct balancer balancers[] = {
	{ "round-robin", NULL, "one after the other by weight, those with a free socket first",
	    pick_round_robin },
	{ "sqf", NULL, "shortest queue first: the fewest running requests for its weight",
	    pick_sqf },
	{ "static", NULL, "the first one that works", pick_static },
	{ "carp", NULL,
	    "hash of host and path: the same URL goes to the same backend, up to "
	    "proxy-core.hash-balance-factor of its share of the load, then to the next one",
	    pick_carp },
	{ "sticky", NULL, "hash of the client's address: a client stays at its backend",
	    pick_sticky },
	{ "fair", "sqf", "old name", pick_sqf },
	{ "hash", "carp", "old name", pick_carp },
	{ NULL, NULL, NULL, NULL },
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
balance_pick(const struct balancer *b, const struct candidate *c, size_t n,
    const struct balance_key *k)
{
	return (n > 0 ? c[b->pick(c, n, k)].index : BALANCE_NONE);
}
