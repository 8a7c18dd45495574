/* base/rate.c -- see rate.h */
#include "base/rate.h"

void
rate_note(struct rate *r, uint64_t now_ns, uint64_t counter)
{
	uint64_t second = now_ns / NS_PER_S, more = counter - r->seen;
	unsigned i = second % RATE_SLOTS;

	if (more == 0)
		return;
	r->seen = counter;
	if (r->slot[i].second != second) {
		__atomic_store_n(&r->slot[i].n, more, __ATOMIC_RELAXED);
		__atomic_store_n(&r->slot[i].second, second, __ATOMIC_RELEASE);
	} else {
		__atomic_store_n(&r->slot[i].n, r->slot[i].n + more, __ATOMIC_RELAXED);
	}
}

double
rate_read(const struct rate *r, uint64_t now_ns)
{
	uint64_t now = now_ns / NS_PER_S, sum = 0;
	unsigned i;

	for (i = 0; i < RATE_SLOTS; i++) {
		uint64_t second = __atomic_load_n(&r->slot[i].second, __ATOMIC_ACQUIRE);

		if (second < now && second + RATE_SECONDS >= now)
			sum += __atomic_load_n(&r->slot[i].n, __ATOMIC_RELAXED);
	}
	return ((double)sum / RATE_SECONDS);
}
