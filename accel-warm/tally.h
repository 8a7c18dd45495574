/* accel-warm/tally.h -- what was done: one row for each number of the summary, in this order.
 *
 * Every thread has its own, with one writer, and the thread that watches adds them up.
 */
#ifndef ACCEL_WARM_TALLY_H
#define ACCEL_WARM_TALLY_H

#include <stdint.h>

#define WALK_TALLY(T)									\
	T(files)	/* made warm */							\
	T(directories)	/* read */							\
	T(others)	/* links, sockets, devices: their inodes */			\
	T(bytes)	/* read from files */						\
	T(errors)	/* names and directories that could not be made warm */		\
	T(vanished)	/* gone between the reading of a directory and our coming */	\
	T(resumed)	/* names that an earlier run has finished */			\
	T(excluded)	/* by a pattern */						\
	T(elsewhere)	/* other file systems that were left alone */			\
	T(again)	/* directories that were met a second time */			\
	T(found)	/* names, in batches */						\
	T(finished)	/* of these */

struct walk_tally {
#define T(name) uint64_t name;
	WALK_TALLY(T)
#undef T
};

#define walk_count(t, name, n) __atomic_store_n(&(t)->name, (t)->name + (n), __ATOMIC_RELAXED)

static inline void
walk_tally_add(struct walk_tally *sum, const struct walk_tally *t)
{
#define T(name) sum->name += __atomic_load_n(&t->name, __ATOMIC_RELAXED);
	WALK_TALLY(T)
#undef T
}

#endif
