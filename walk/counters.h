/* walk/counters.h -- the numbers of the summary, one row each, in this order.
 *
 * Each thread has its own struct and is its only writer.  The main thread adds them up.
 */
#ifndef WALK_COUNTERS_H
#define WALK_COUNTERS_H

#include "base/counter.h"

#define WALK_COUNTERS(T)                                                           \
	T(files)       /* made warm */                                             \
	T(directories) /* read */                                                  \
	T(others)      /* links, sockets, devices: their inodes */                 \
	T(bytes)       /* read from files */                                       \
	T(errors)      /* names and directories that could not be made warm */     \
	T(vanished)    /* gone after the directory was read */                     \
	T(resumed)     /* names that an earlier run has finished */                \
	T(excluded)    /* excluded by a pattern */                                 \
	T(elsewhere)   /* on other file systems, so skipped */                     \
	T(again)       /* directories that were read before, under another name */ \
	T(found)       /* names, in batches */                                     \
	T(finished)    /* of these */

struct walk_counters {
#define T(name) uint64_t name;
	WALK_COUNTERS(T)
#undef T
};

static inline void
walk_counters_add(struct walk_counters *sum, const struct walk_counters *t)
{
#define T(name) sum->name += __atomic_load_n(&t->name, __ATOMIC_RELAXED);
	WALK_COUNTERS(T)
#undef T
}

#endif
