/* base/clock.h -- nanoseconds: monotonic for differences, wall clock for dates and logs, processor time. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

static inline uint64_t
clock_mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec);
}

static inline uint64_t
clock_wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ((uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec);
}

/* Processor time of the calling thread; a system call. */
static inline uint64_t
clock_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ((uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec);
}

#endif
