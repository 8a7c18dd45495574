/* base/counter.h -- event counts of one thread; a reader adds up the threads.
 *
 * Thread   only the owner writes, with relaxed atomics, so that others may read at any time.
 */
#ifndef BASE_COUNTER_H
#define BASE_COUNTER_H

#include "base/buf.h"

#define count_add(c, name, v)                                                             \
	__atomic_store_n(&(c)->name, __atomic_load_n(&(c)->name, __ATOMIC_RELAXED) + (v), \
	    __ATOMIC_RELAXED)
#define count(c, name) count_add(c, name, 1)

/* The counter at this offset (offsetof). */
static inline void
count_at(void *counters, uint32_t offset)
{
	uint64_t *n = (uint64_t *)((char *)counters + offset);

	__atomic_store_n(n, __atomic_load_n(n, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

struct counter_info {       /* the name of the last one of a table is NULL */
	const char *name;   /* in logs */
	const char *dotted; /* on status pages; other programs read it, so it never changes */
	const char *doc;
	uint32_t offset;
};
/* counters: the struct whose fields the rows name. */
uint64_t counter_get(const void *counters, const struct counter_info *);
void counters_add(void *sum, const void *counters, const struct counter_info *);

void counters_each(const void *counters, const struct counter_info *,
    void (*each)(void *arg, const char *dotted, uint64_t v), void *arg);
/* "counters":{...} */
void counters_json(struct buf *, const void *counters, const struct counter_info *);

#endif
