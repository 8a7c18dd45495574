/* io/disk/jobs.c -- work for the pools: pushed, pulled back, joined, counted.  See job.h and pools.h. */
#include <errno.h>
#include "base/clock.h"
#include "io/disk/pools_impl.h"
#include "io/engine.h"

/* The pool has no threads: the caller waits for the disk, as was asked for. */
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

/* Threads that nobody waits for, and that this one would not make wait. */
static bool
lane_idle(const struct pool_lane *ln)
{
	return (ln->queue.waiting == 0 && ln->queue.running < ln->queue.per_device);
}

static int
push(struct io *io, struct io_job *j, enum io_lane lane, bool only_idle)
{
	struct io_pools *ps = io->pools;
	struct io_job *displaced = NULL;
	struct pool_lane *ln;
	int err;

	if (ps == NULL)
		return (-EAGAIN);
	ln = &ps->lane[lane];
	if (only_idle && ln->queue.per_device == 0)
		return (-EAGAIN);
	j->lane = lane;
	if (j->finish != NULL)
		io_port_ref(j->port);
	if (ln->queue.per_device == 0) {
		run_here(j);
		return (0);
	}
	pthread_mutex_lock(&ps->lock);
	err = only_idle && !lane_idle(ln) ? -EAGAIN : queue_push(&ln->queue, j, &displaced);
	io_lane_unlock(ln);
	if (displaced != NULL)
		io_job_put(displaced);
	if (err != 0 && j->finish != NULL)
		io_port_unref(j->port);
	return (err);
}

int
io_job_push(struct io *io, struct io_job *j, enum io_lane lane)
{
	return (push(io, j, lane, false));
}

int
io_push_spare(struct io *io, struct io_job *j)
{
	return (push(io, j, LANE_READ, true));
}

bool
io_job_waits(struct io_pools *ps, const struct io_job *j)
{
	bool waits;

	pthread_mutex_lock(&ps->lock);
	waits = j->waits;
	pthread_mutex_unlock(&ps->lock);
	return (waits);
}

bool
io_job_pull(struct io_pools *ps, struct io_job *j)
{
	bool mine;

	pthread_mutex_lock(&ps->lock);
	mine = j->waits;
	if (mine)
		queue_pull(&ps->lane[j->lane].queue, j);
	pthread_mutex_unlock(&ps->lock);
	if (mine)
		io_port_unref(j->port);
	return (mine);
}

void
io_job_joined(struct io_pools *ps, struct io_job *j, uint32_t client)
{
	pthread_mutex_lock(&ps->lock);
	if (j->waits)
		queue_join(&ps->lane[j->lane].queue, j, client);
	pthread_mutex_unlock(&ps->lock);
}

/* ---------------------------------------------------------------- for those who watch */

size_t
io_pools_lanes(struct io_pools *ps, struct io_lane_stats *v, size_t max)
{
	uint64_t now = clock_mono_ns(), oldest;
	const struct pool_lane *ln;
	size_t n;

	pthread_mutex_lock(&ps->lock);
	for (n = 0; n < LANES && n < max; n++) {
		ln = &ps->lane[n];
		oldest = queue_oldest_ns(&ln->queue);
		v[n] = (struct io_lane_stats){
			.name = ln->name, .threads = ln->threads, .busy = ln->queue.running, .queued = ln->queue.waiting,
			.jobs = ln->jobs, .oldest_ns = oldest != 0 && now > oldest ? now - oldest : 0,
		};
	}
	pthread_mutex_unlock(&ps->lock);
	return (n);
}

size_t
io_pools_devices(struct io_pools *ps, struct io_device_stats *v, size_t max)
{
	size_t n = 0;
	unsigned i;

	pthread_mutex_lock(&ps->lock);
	for (i = 0; i < LANES; i++)
		n = queue_devices(&ps->lane[i].queue, v, n, max);
	pthread_mutex_unlock(&ps->lock);
	return (n);
}
