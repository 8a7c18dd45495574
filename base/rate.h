/* base/rate.h -- growth of a counter per second, over the last five whole seconds.
 *
 *   second:   ... 17   18   19   20   21   22 (current)
 *   counted:  ...  4    0    9    2    0    7               at 22.4: (4 + 0 + 9 + 2 + 0) / 5
 *
 * There is no timer: an idle owner notes nothing, and a reader skips old slots.
 *
 * Units    now_ns is CLOCK_MONOTONIC.
 * Thread   rate_note(): one writer.  rate_read(): any.
 */
#ifndef BASE_RATE_H
#define BASE_RATE_H

#include <stdbool.h>
#include "base/clock.h"

#define RATE_SECONDS 5u
#define RATE_SLOTS   8u /* more than are read, so that the slot being reset is never read */

struct rate {
	uint64_t seen; /* of the writer: the counter at the last note */
	struct {
		uint64_t second, n;
	} slot[RATE_SLOTS];
};

void rate_note(struct rate *, uint64_t now_ns, uint64_t counter);
double rate_read(const struct rate *, uint64_t now_ns);

/* A client that is too slow.  Time adds to its debt, bytes (the result of an op) reduce
 * the debt at `rate` a second.  There is no credit for a fast beginning.  So a client may pause for
 * idle_ms in all, not after every byte. */
static inline void
debt_note(uint64_t *debt_ns, uint64_t passed_ns, int64_t bytes, uint32_t rate)
{
	uint64_t paid = bytes > 0 ? (uint64_t)bytes * NS_PER_S / rate : 0;

	*debt_ns += passed_ns;
	*debt_ns = *debt_ns > paid ? *debt_ns - paid : 0;
}

/* The deadline of the next op; if the debt is too large, it times out at once. */
static inline uint32_t
debt_patience_ms(uint64_t debt_ns, uint64_t idle_ms)
{
	uint64_t debt_ms = debt_ns / NS_PER_MS;

	return (debt_ms < idle_ms ? (uint32_t)(idle_ms - debt_ms) : 1);
}

/* A limit is one number, due_ns: the time at which all that was taken has had its time.
 *
 *      now - burst      now         due_ns
 *   -------|-------------|-------------|-----> time      wait for due_ns - now
 *
 * Unused time is kept up to the burst.  The time at which n more have had theirs: */
static inline uint64_t
pace_after(uint64_t due_ns, uint64_t from_ns, uint64_t n, uint64_t per_s)
{
	return ((due_ns > from_ns ? due_ns : from_ns) + n * NS_PER_S / per_s);
}

/* Takes n; from_ns: now, or now - burst.  per_s 0: no limit. */
static inline void
pace_note(uint64_t *due_ns, uint64_t from_ns, uint64_t n, uint64_t per_s)
{
	if (per_s != 0)
		*due_ns = pace_after(*due_ns, from_ns, n, per_s);
}

/* A reply that is sent at a rate of limit bytes a second, without a burst.  The bytes of PACE_MS
 * are sent at once.  The next ones follow at due_ns.  limit 0: no rate. */
#define PACE_MS 250u

static inline uint64_t
pace_bytes(uint32_t limit)
{
	uint64_t n = (uint64_t)limit * PACE_MS / 1000;

	if (limit == 0)
		return (UINT64_MAX);
	return (n != 0 ? n : 1);
}

/* A rate that the senders of several threads share.  Each sender takes a turn for its bytes, waits
 * until it has come and sends.  Turns come in the order in which they were taken, so senders that
 * always have bytes get equal shares.
 *
 *   due_ns   now                          the turns of a, b and c begin at A, B and C
 *     v       v
 *   --A--B--C-----------------> time      A turn may be used PACE_EARLY_MS before its time.
 */
#define PACE_EARLY_MS 50u

struct pace_share {
	uint64_t limit;  /* bytes a second */
	uint64_t due_ns; /* atomic: the time at which the next turn begins */
	/* Where due_ns is, if it is elsewhere; NULL: in the struct.  The result is used at once. */
	uint64_t *(*find_due)(struct pace_share *);
};

/* Bytes of a turn: a sixteenth of a second, between half a kB and 64 kB. */
static inline uint64_t
pace_turn_bytes(uint64_t limit)
{
	uint64_t n = limit / 16;

	return (n < 512 ? 512 : n > 65536 ? 65536 : n);
}

/* Takes a turn of this many bytes.  Returns the time at which it may be used. */
static inline uint64_t
pace_turn(struct pace_share *p, uint64_t now_ns, uint64_t bytes)
{
	uint64_t *at = p->find_due != NULL ? p->find_due(p) : &p->due_ns, start;
	uint64_t due = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(at, &due, pace_after(due, now_ns, bytes, p->limit),
	    true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	start = due > now_ns ? due : now_ns;
	return (start > PACE_EARLY_MS * NS_PER_MS ? start - PACE_EARLY_MS * NS_PER_MS : 0);
}

/* Gives back the end of a turn that was not used.  Turns that others have taken meanwhile stay
 * where they are; the next turn begins earlier. */
static inline void
pace_give_back(struct pace_share *p, uint64_t bytes)
{
	uint64_t *at = p->find_due != NULL ? p->find_due(p) : &p->due_ns;
	uint64_t due = __atomic_load_n(at, __ATOMIC_RELAXED), ns = bytes * NS_PER_S / p->limit;

	while (!__atomic_compare_exchange_n(at, &due, due > ns ? due - ns : 0, true,
	    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

#endif
