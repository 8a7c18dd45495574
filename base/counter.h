/* base/counter.h -- event counts of one thread; a reader adds the threads up.
 *
 * Thread   written by the owner only, with relaxed atomics, so that others may read at any time.
 */
#ifndef BASE_COUNTER_H
#define BASE_COUNTER_H

#include <stdint.h>

struct counters {
#define C(name, dotted, doc) uint64_t name;
#include "base/counters.def"
#undef C
};

#define count_add(c, name, v) \
	__atomic_store_n(&(c)->name, __atomic_load_n(&(c)->name, __ATOMIC_RELAXED) + (v), __ATOMIC_RELAXED)
#define count(c, name) count_add(c, name, 1)

/* The one at this offset (offsetof). */
static inline void
count_at(struct counters *c, uint32_t offset)
{
	uint64_t *n = (uint64_t *)((char *)c + offset);

	__atomic_store_n(n, __atomic_load_n(n, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

struct counter_info {
	const char *name;   /* in logs */
	const char *dotted; /* on status pages; other programs read it, so it stays */
	const char *doc;
	uint32_t offset;
};
extern const struct counter_info counter_infos[]; /* ends with a NULL name */

uint64_t counter_get(const struct counters *, const struct counter_info *);

#endif
