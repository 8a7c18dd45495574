/* io/disk/jobs.c -- jobs of the pools: push, pull back, join, count.  See job.h and pools.h. */
#include <errno.h>
#include <stdlib.h>
#include "base/clock.h"
#include "base/log.h"
#include "io/disk/async.h"
#include "io/disk/pools_impl.h"
#include "io/engine.h"

/* The pool has no threads: the caller waits for the disk, as configured. */
static void
run_here(struct io_job *j)
{
	j->start = clock_mono_ns();
	do {
		j->moves = false;
		j->run(j);
	} while (j->moves);
	j->end = clock_mono_ns();
	io_job_put(j);
}

/* True if there are idle threads, and the job would not delay another one. */
static bool
lane_idle(const struct pool_lane *ln)
{
	return (ln->queue.waiting == 0 && ln->queue.running < ln->queue.per_device);
}

/* Nobody would do the job. */
static void
tell_unstaffed(const struct pool_lane *ln, int err)
{
	log_limited(10, LOG_WARN, NULL, "threads.none", LF_STR("kind", ln->name),
	    LF_ERR("error", err), LF_STR("then", "refused; the next one is tried again"),
	    LF_STR("do", "raise TasksMax= of systemd, pids.max of the cgroup or ulimit -u"));
}

static int
push(struct io_job *j)
{
	struct io_pools *ps = j->io->pools;
	struct io_job *displaced = NULL;
	struct pool_lane *ln;
	int err, none;

	if (ps == NULL)
		return (-EAGAIN);
	ln = &ps->lane[j->lane];
	j->queue = &ln->queue; /* the thread that runs the job does not write it */
	if (j->spare && ln->queue.per_device == 0)
		return (-EAGAIN);
	if (j->finish != NULL)
		io_port_ref(j->port);
	if (ln->queue.per_device == 0) {
		run_here(j);
		return (0);
	}
	j->held = ln->kind->holds && j->finish != NULL;
	j->io->held_jobs += j->held;
	pthread_mutex_lock(&ps->lock);
	none = io_lane_staff(ln);
	if (none != 0)
		err = -EAGAIN;
	else
		err = j->spare && !lane_idle(ln) ? -EAGAIN : queue_push(&ln->queue, j, &displaced);
	if (err == 0 && queue_client_is_full(&ln->queue, j))
		count(j->io->counters, tls_client_waits);
	io_lane_unlock(ln);
	if (none != 0)
		tell_unstaffed(ln, none);
	if (displaced != NULL)
		io_job_put(displaced);
	if (err != 0 && j->finish != NULL)
		io_port_unref(j->port);
	return (err);
}

int
io_job_push(struct io_job *j)
{
	int err = j->async != NULL ? io_async_push(j->async, j) : push(j);

	if (err == 0)
		return (0);
	j->res = err;
	if (j->finish != NULL)
		io_job_finish(j);
	else
		free(j);
	return (err);
}

/* ---------------------------------------------------------------- status */

size_t
io_pools_lanes(struct io_pools *ps, struct io_lane_status *v, size_t max)
{
	uint64_t now = clock_mono_ns(), oldest;
	const struct pool_lane *ln;
	size_t n;

	pthread_mutex_lock(&ps->lock);
	for (n = 0; n < LANES && n < max; n++) {
		ln = &ps->lane[n];
		oldest = queue_oldest_ns(&ln->queue);
		v[n] = (struct io_lane_status){
			.name = ln->name,
			.threads = ln->threads,
			.busy = ln->queue.running,
			.queued = ln->queue.waiting,
			.jobs = ln->jobs,
			.oldest_ns = oldest != 0 && now > oldest ? now - oldest : 0,
		};
	}
	pthread_mutex_unlock(&ps->lock);
	return (n);
}

size_t
io_pools_devices(struct io_pools *ps, struct io_device_status *v, size_t max)
{
	size_t n = 0;
	unsigned i;

	pthread_mutex_lock(&ps->lock);
	for (i = 0; i < LANES; i++)
		n = queue_devices(&ps->lane[i].queue, v, n, max);
	pthread_mutex_unlock(&ps->lock);
	return (n);
}

void
io_pools_hotset(struct io_pools *ps, struct io_hotset_status *v)
{
	*v = (struct io_hotset_status){ 0 };
	if (ps == NULL)
		return;
	pthread_mutex_lock(&ps->lock);
	v->longest_wait_ns = ps->longest_wait_ns;
	pthread_mutex_unlock(&ps->lock);
	hotset_status(ps->hotset, v);
}
