#include "accel-warm/bucket.h"

#include <glib.h>

#include "base/clock.h"

/* A thread that sleeps wakes late; what it lost can be made up for. */
#define BURST (20 * NS_PER_MS)

uint64_t
walk_bucket_wait(const struct walk_bucket *b, uint64_t now_ns)
{
	return (b->per_s != 0 && b->paid_ns > now_ns ? b->paid_ns - now_ns : 0);
}

void
walk_bucket_take(struct walk_bucket *b, uint64_t n, uint64_t now_ns)
{
	if (b->per_s == 0)
		return;
	if (b->paid_ns + BURST < now_ns)
		b->paid_ns = now_ns - BURST;
	b->paid_ns += (uint64_t)((double)n * NS_PER_S / (double)b->per_s);
}
