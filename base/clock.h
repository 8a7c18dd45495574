/* base/clock.h -- nanoseconds: monotonic for differences, wall clock for dates and logs, processor
 * time. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

static inline uint64_t
clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ((uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec);
}

static inline uint64_t
clock_mono_ns(void)
{
	return (clock_ns(CLOCK_MONOTONIC));
}

static inline uint64_t
clock_wall_ns(void)
{
	return (clock_ns(CLOCK_REALTIME));
}

/* The clock that times files. */
static inline uint64_t
clock_coarse_ns(void)
{
	return (clock_ns(CLOCK_REALTIME_COARSE));
}

/* Processor time of the calling thread; a system call. */
static inline uint64_t
clock_cpu_ns(void)
{
	return (clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

/* Processor time of all threads since the start; a system call. */
static inline uint64_t
clock_process_cpu_ns(void)
{
	return (clock_ns(CLOCK_PROCESS_CPUTIME_ID));
}

/* 0 if a stamp is unknown (0), or the clocks of two threads disagree. */
static inline uint64_t
clock_between(uint64_t from, uint64_t to)
{
	return (from != 0 && to > from ? to - from : 0);
}

#endif
