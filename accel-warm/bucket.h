/* accel-warm/bucket.h -- so many a second, of files or of bytes.
 *
 * One number is kept: when all that was taken so far is paid for.  What is not used within BURST is lost.
 *
 *      now - BURST      now         paid_ns
 *   -------|-------------|-------------|----->  walk_bucket_wait() = paid_ns - now
 *
 * Pure: time is an argument.
 * Units    now_ns, and what is returned: nanoseconds of CLOCK_MONOTONIC.
 * Thread   the caller's lock.
 */
#ifndef ACCEL_WARM_BUCKET_H
#define ACCEL_WARM_BUCKET_H

#include <stdint.h>

struct walk_bucket {
	uint64_t per_s;			/* 0: no limit */
	uint64_t paid_ns;
};

uint64_t walk_bucket_wait(const struct walk_bucket *, uint64_t now_ns);	/* 0: nothing is owed */
void	 walk_bucket_take(struct walk_bucket *, uint64_t n, uint64_t now_ns);	/* may go into debt */

#endif
