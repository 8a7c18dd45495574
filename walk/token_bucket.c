#include "walk/token_bucket.h"

#include "base/clock.h"

/* A sleeping thread wakes late.  The lost time may be made up for, up to this much. */
#define BURST (20 * NS_PER_MS)

uint64_t
token_bucket_wait(const struct token_bucket *b, uint64_t now_ns)
{
	return (b->per_s != 0 && b->paid_ns > now_ns ? b->paid_ns - now_ns : 0);
}

void
token_bucket_take(struct token_bucket *b, uint64_t n, uint64_t now_ns)
{
	if (b->per_s == 0)
		return;
	if (b->paid_ns + BURST < now_ns)
		b->paid_ns = now_ns - BURST;
	b->paid_ns += (uint64_t)((double)n * NS_PER_S / (double)b->per_s);
}
