#include "base/rendezvous.h"

#include <math.h>

/* FNV-1a gives the same hash on all machines and in all runs, so caches of nodes stay useful. */
static uint64_t
hash_more(uint64_t h, struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		h = (h ^ (unsigned char)t.p[i]) * 0x100000001b3ull;
	return ((h ^ 0xff) * 0x100000001b3ull); /* "ab" + "c" is not "a" + "bc" */
}

/* Mixes the last bytes into the upper bits, which decide the comparison of scores. */
static uint64_t
hash_end(uint64_t h)
{
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ull;
	return (h ^ h >> 33);
}

uint64_t
rendezvous_key(struct text a, struct text b)
{
	return (hash_more(hash_more(0xcbf29ce484222325ull, a), b));
}

/* One hash of the key and the node together.  A sum of hashes would only rotate a fixed ring with
 * uneven gaps. */
double
rendezvous_score(uint64_t key, struct text node, unsigned weight)
{
	/* 0 to 1, both excluded */
	double part = ((double)(hash_end(hash_more(key, node)) >> 12) + 0.5) * 0x1p-52;

	return (-(double)weight / log(part));
}
