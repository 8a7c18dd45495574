/* base/rate.h -- how fast a counter grew: per second, over the last five whole seconds.
 *
 *   second:   ... 17   18   19   20   21   22 (going on)
 *   counted:  ...  4    0    9    2    0    7               at 22.4: (4 + 0 + 9 + 2 + 0) / 5
 *
 * Nothing ticks: an idle owner notes nothing, and a reader leaves out what is too old.
 *
 * Units    now_ns is CLOCK_MONOTONIC.
 * Thread   rate_note(): one writer.  rate_read(): any.
 */
#ifndef BASE_RATE_H
#define BASE_RATE_H

#include <stdint.h>

#define RATE_SECONDS 5u
#define RATE_SLOTS 8u /* more than are read: the one that is being renewed is never among those */

struct rate {
	uint64_t seen; /* the writer's: the counter at the last note */
	struct {
		uint64_t second, n;
	} slot[RATE_SLOTS];
};

void rate_note(struct rate *, uint64_t now_ns, uint64_t counter);
double rate_read(const struct rate *, uint64_t now_ns);

#endif
