/* base/rendezvous.h -- which of several nodes an object belongs to, by weighted rendezvous hashing.
 *
 * Each node has a score for each key, and the highest score wins.  A node that leaves moves its own
 * keys only, and a node that comes takes its share from all others.  The hash is the same on all
 * machines and in all runs.
 *
 * Pure.
 */
#ifndef BASE_RENDEZVOUS_H
#define BASE_RENDEZVOUS_H

#include <stdint.h>

#include "base/text.h"

/* "ab" with "c" and "a" with "bc" are different keys. */
uint64_t rendezvous_key(struct text a, struct text b);
/* At least 0; weight at least 1. */
double rendezvous_score(uint64_t key, struct text node, unsigned weight);

#endif
