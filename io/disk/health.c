/* io/disk/health.c -- see health.h */
#include "io/disk/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include "base/log.h"
#include "io/disk/async.h"
#include "io/disk/links.h"
#include "io/disk/mounts.h"
#include "io/disk/pools_impl.h"
#include "io/disk/pools_status.h"
#include "io/engine.h"

#define LONG_NS NS_PER_MS /* a look that takes longer has waited */
#define DOUBT   1000      /* looks that are watched after a long one */

/* ---------------------------------------------------------------- of all loops */

static struct pools_rest *
rest_of(struct io_pools *ps, uint64_t dev)
{
	struct pools_rest *r, *oldest = ps->rest;

	for (r = ps->rest; r < ps->rest + POOLS_REST; r++) {
		if (r->dev == dev)
			return (r);
		if (r->until_ns < oldest->until_ns)
			oldest = r;
	}
	return (oldest);
}

static bool
is_late(const struct io_queue *q, uint64_t dev, uint64_t now)
{
	uint64_t since = queue_runs_since(q, dev);

	return (since != 0 && now > since + FIT_NS);
}

static bool
ask(struct io *io, uint64_t dev)
{
	struct io_pools *ps = io->pools;
	const struct pools_rest *r;
	bool fit;
	int i;

	if ((io->looks != NULL && is_late(&io->looks->queue, dev, io->now)) ||
	    (io->reads != NULL && is_late(&io->reads->queue, dev, io->now)))
		return (false);
	pthread_mutex_lock(&ps->lock);
	r = rest_of(ps, dev);
	fit = r->dev != dev || r->until_ns <= io->now;
	for (i = 0; fit && i < LANES; i++) /* LANE_WORK computes */
		fit = i == LANE_WORK || !is_late(&ps->lane[i].queue, dev, io->now);
	pthread_mutex_unlock(&ps->lock);
	return (fit);
}

/* ---------------------------------------------------------------- asking */

unsigned
io_health_slot(uint64_t dev)
{
	return ((minor(dev) + 7 * major(dev)) % HEALTH_DEVICES);
}

bool
io_device_is_fit(struct io *io, uint64_t dev)
{
	struct io_health *h = &io->health;
	unsigned i = io_health_slot(dev);

	if (io->pools == NULL)
		return (true);
	if (h->device[i].dev != dev || io->now >= h->device[i].asked_ns + ASK_NS) {
		h->device[i].dev = dev;
		h->device[i].asked_ns = io->now;
		h->device[i].fit = ask(io, dev);
	}
	return (h->device[i].fit);
}

/* ---------------------------------------------------------------- looking */

long
io_times_slept(void)
{
	struct rusage used;

	return (getrusage(RUSAGE_THREAD, &used) == 0 ? used.ru_nvcsw : 0);
}

struct io_look
io_look_begin(struct io *io)
{
	return ((struct io_look){ .slept = io->health.doubt > 0 ? io_times_slept() : 0,
	    .begin_ns = clock_mono_ns() });
}

static void
log_wait(const struct io_looked *of, uint64_t ns)
{
	char device[IO_DEVICE_NAME], point[IO_MOUNT_NAME];
	char *file = of->fd >= 0 ? io_links_name(of->fd) : NULL;

	snprintf(device, sizeof(device), "%u:%u", major(of->dev), minor(of->dev));
	mounts_point(of->dev, point, sizeof(point));
	log_limited(1, LOG_WARN, NULL, "loop.waited", LF_STR("device", device),
	    LF_STR("mount", point), LF_STR("what", of->what),
	    LF_STR("file", file != NULL ? file : of->path), LF_U64("ms", ns / NS_PER_MS),
	    LF_STR("then", "threads look at its files for 10 s"));
	free(file);
}

static void
waited(struct io *io, const struct io_looked *of, uint64_t ns, uint64_t now)
{
	struct io_pools *ps = io->pools;
	struct pools_rest *r;

	count(io->counters, loop_waits);
	if (ps == NULL)
		return;
	pthread_mutex_lock(&ps->lock);
	r = rest_of(ps, of->dev);
	*r = (struct pools_rest){ of->dev, now + REST_NS };
	if (ns > ps->longest_wait_ns)
		ps->longest_wait_ns = ns;
	pthread_mutex_unlock(&ps->lock);
	memset(io->health.device, 0, sizeof(io->health.device));
	log_wait(of, ns);
}

/* A long look may be one during which another process had the processor, but it is then not as long
 * as with a sick device. */
uint64_t
io_look_end(struct io *io, const struct io_look *l, const struct io_looked *of)
{
	uint64_t now = clock_mono_ns(), ns = now - l->begin_ns;
	bool doubted = io->health.doubt > 0;

	if (doubted)
		io->health.doubt--;
	if (ns <= LONG_NS)
		return (now);
	if (ns > FIT_NS || (doubted && io_times_slept() > l->slept))
		waited(io, of, ns, now);
	io->health.doubt = DOUBT;
	return (now);
}
