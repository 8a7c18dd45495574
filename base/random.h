/* base/random.h -- numbers that follow from a seed, on every machine: for shapes, orders and tests,
 * not for secrets.  Pure.
 */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

/* splitmix64: 64 bits, of which each depends on all bits of x. */
static inline uint64_t
random_mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (x ^ x >> 31);
}

/* The next number; *state begins as the seed. */
static inline uint64_t
random_next(uint64_t *state)
{
	uint64_t x = random_mix(*state);

	*state += UINT64_C(0x9e3779b97f4a7c15);
	return (x);
}

#endif
