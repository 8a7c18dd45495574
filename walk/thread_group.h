/* walk/thread_group.h -- the threads that read directories and touch names.
 *
 *	main --> thread_group_start() --> threads 1..N: take a job, touch, count
 *	     <-- over_fd: the queue is empty <--'
 *	  `--> thread_group_tick(), four times a second: replaces threads that hang
 *
 * A thread hangs if one call has lasted WALK_STUCK_MS.  Another thread is started for each thread
 * that hangs, up to four times --threads in all.  When hung threads come back, as many threads end.
 * If half of --threads hang on one device, the device is at fault: the others leave it alone until
 * some come back.
 *
 * Thread   the one that called thread_group_start().
 */
#ifndef WALK_THREAD_GROUP_H
#define WALK_THREAD_GROUP_H

#include "walk/conf.h"
#include "walk/queue.h"
#include "walk/state.h"
#include "walk/counters.h"

#define WALK_STUCK_MS 5000

struct thread_group;

/* *conf, the queue and the state (NULL: none) must outlive the group.  -errno: no thread could be
 * started. */
int thread_group_start(const struct walk_conf *, struct walk_queue *, struct walk_state *,
    struct thread_group **);
unsigned thread_group_tick(struct thread_group *); /* returns how many threads hang */
void thread_group_counters(const struct thread_group *, struct walk_counters *);
/* Waits until all threads have ended; the queue must be empty. */
void thread_group_join(struct thread_group **);

#endif
