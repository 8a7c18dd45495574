/* walk/token_bucket.h -- a limit per second, for files or for bytes.
 *
 * The bucket is one number, paid_ns: the time at which everything taken so far is paid for.  Time
 * that is not used is lost after BURST.
 *
 *      now - BURST      now         paid_ns
 *   -------|-------------|-------------|----->  token_bucket_wait() = paid_ns - now
 *
 * Pure: time is an argument.
 * Units    now_ns and the result: nanoseconds of CLOCK_MONOTONIC.
 * Thread   the caller's lock.
 */
#ifndef WALK_TOKEN_BUCKET_H
#define WALK_TOKEN_BUCKET_H

#include <stdint.h>

struct token_bucket {
	uint64_t per_s; /* 0: no limit */
	uint64_t paid_ns;
};

uint64_t token_bucket_wait(const struct token_bucket *, uint64_t now_ns); /* 0: do not wait */
/* May take more than the bucket has: the next caller waits longer. */
void token_bucket_take(struct token_bucket *, uint64_t n, uint64_t now_ns);

#endif
