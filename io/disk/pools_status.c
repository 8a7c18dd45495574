/* io/disk/pools_status.c -- see pools_status.h */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "io/disk/mounts.h"
#include "io/disk/pools_status.h"

void
io_pools_status_take(struct io_pools_status *w, struct io_pools *pools)
{
	size_t i;

	w->nlanes = pools != NULL ? io_pools_lanes(pools, w->lane, IO_STATUS_LANES) : 0;
	w->ndevices = pools != NULL ? io_pools_devices(pools, w->device, IO_STATUS_DEVICES) : 0;
	for (i = 0; i < w->ndevices; i++) {
		struct io_device_status *d = &w->device[i];

		if (d->major != UINT_MAX)
			mounts_point(makedev(d->major, d->minor), d->mount, sizeof(d->mount));
	}
}

unsigned
io_pools_status_stuck(const struct io_pools_status *w)
{
	unsigned stuck = 0;
	size_t i;

	for (i = 0; i < w->ndevices; i++)
		stuck += w->device[i].stuck;
	return (stuck);
}

const char *
io_device_name(const struct io_device_status *d, char name[IO_DEVICE_NAME])
{
	if (d->major == UINT_MAX)
		return ("unknown");
	snprintf(name, IO_DEVICE_NAME, "%u:%u", d->major, d->minor);
	return (name);
}

/* ---------------------------------------------------------------- name and number */

struct pools_each {
	void (*fn)(void *, const char *, uint64_t);
	void *arg;
	const char *kind, *of;
};

static void
each_field(const struct pools_each *e, const char *what, uint64_t v)
{
	char name[80];

	snprintf(name, sizeof(name), "%s.%s.%s", e->kind, e->of, what);
	e->fn(e->arg, name, v);
}

void
io_pools_status_each(const struct io_pools_status *w, void (*fn)(void *, const char *, uint64_t),
    void *arg)
{
	struct pools_each e = { .fn = fn, .arg = arg };
	char device[IO_DEVICE_NAME];
	size_t i;

	for (e.kind = "threads", i = 0; i < w->nlanes; i++) {
		const struct io_lane_status *l = &w->lane[i];

		e.of = l->name;
		each_field(&e, "threads", l->threads);
		each_field(&e, "busy", l->busy);
		each_field(&e, "queued", l->queued);
		each_field(&e, "jobs", l->jobs);
		each_field(&e, "oldest-us", l->oldest_ns / 1000);
	}
	for (e.kind = "devices", i = 0; i < w->ndevices; i++) {
		const struct io_device_status *d = &w->device[i];

		e.of = io_device_name(d, device);
		each_field(&e, "busy", d->busy);
		each_field(&e, "queued", d->queued);
		each_field(&e, "refused", d->refused);
		each_field(&e, "oldest-us", d->oldest_ns / 1000);
		each_field(&e, "stuck", d->stuck);
	}
}

/* ---------------------------------------------------------------- JSON */

void
io_pools_status_json(struct buf *out, const struct io_pools_status *w)
{
	char name[IO_DEVICE_NAME];
	size_t i;

	buf_str(out, "\"threads\":{");
	for (i = 0; i < w->nlanes; i++) {
		const struct io_lane_status *l = &w->lane[i];

		buf_printf(out,
		    "%s\"%s\":{\"threads\":%u,\"busy\":%u,\"queued\":%u,\"jobs\":%" PRIu64
		    ",\"oldest_ns\":%" PRIu64 "}",
		    i != 0 ? ",\n" : "", l->name, l->threads, l->busy, l->queued, l->jobs,
		    l->oldest_ns);
	}
	buf_str(out, "},\n\"devices\":[");
	for (i = 0; i < w->ndevices; i++) {
		const struct io_device_status *d = &w->device[i];

		buf_printf(out, "%s{\"device\":\"%s\",\"mount\":", i != 0 ? ",\n" : "",
		    io_device_name(d, name));
		buf_json(out, text_of(d->mount));
		buf_printf(out, ",\"busy\":%u,\"queued\":%u", d->busy, d->queued);
		buf_printf(out, ",\"oldest_ns\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"stuck\":%s}",
		    d->oldest_ns, d->refused, d->stuck ? "true" : "false");
	}
	buf_str(out, "]");
}

/* ---------------------------------------------------------------- Prometheus */

static void
lane_name(const struct prom *p, const char *name, const struct io_lane_status *l)
{
	prom_name(p, name);
	buf_printf(p->out, "{lane=\"%s\"}", l->name);
}

static void
device_name(const struct prom *p, const char *name, const struct io_device_status *d)
{
	char device[IO_DEVICE_NAME];

	prom_name(p, name);
	buf_printf(p->out, "{device=\"%s\"}", io_device_name(d, device));
}

/* A series of its own, so that the others go on when a file system is mounted elsewhere. */
static void
device_mounts(const struct prom *p, const struct io_pools_status *w)
{
	size_t i;

	if (w->ndevices != 0)
		prom_family(p, "device_info", "gauge", "The mount point of the device.");
	for (i = 0; i < w->ndevices; i++) {
		char device[IO_DEVICE_NAME];

		prom_name(p, "device_info");
		buf_printf(p->out, "{device=\"%s\",", io_device_name(&w->device[i], device));
		prom_label(p, "mount", w->device[i].mount);
		buf_str(p->out, "} 1\n");
	}
}

static void
device_refused(const struct prom *p, const struct io_pools_status *w)
{
	char name[IO_DEVICE_NAME];
	size_t i;

	if (w->ndevices != 0)
		prom_family(p, "device_refused_total", "counter",
		    "Jobs refused: the device hangs, or its queue is full.");
	for (i = 0; i < w->ndevices; i++) {
		const struct io_device_status *d = &w->device[i];

		prom_name(p, "device_refused_total");
		buf_printf(p->out, "{device=\"%s\",reason=\"hangs\"} %" PRIu64 "\n",
		    io_device_name(d, name), d->refused_stuck);
		prom_name(p, "device_refused_total");
		buf_printf(p->out, "{device=\"%s\",reason=\"full\"} %" PRIu64 "\n",
		    io_device_name(d, name), d->refused - d->refused_stuck);
	}
}

/* A family with a row for each of n members of w->array. */
#define ROWS(array, n, row, name, type, help, fmt, value)                    \
	do {                                                                 \
		size_t i;                                                    \
		if ((n) != 0)                                                \
			prom_family(p, name, type, help);                    \
		for (i = 0; i < (n); i++) {                                  \
			row(p, name, &w->array[i]);                          \
			buf_printf(p->out, " " fmt "\n", w->array[i].value); \
		}                                                            \
	} while (0)
#define LANES(name, type, help, fmt, value) \
	ROWS(lane, w->nlanes, lane_name, name, type, help, fmt, value)
#define DEVICES(name, type, help, fmt, value) \
	ROWS(device, w->ndevices, device_name, name, type, help, fmt, value)

void
io_pools_status_metrics(const struct prom *p, const struct io_pools_status *w)
{
	LANES("threads", "gauge", "Threads that may wait for a disk.", "%u", threads);
	LANES("threads_busy", "gauge", "Those that do.", "%u", busy);
	LANES("threads_queued", "gauge", "Jobs that wait for a thread.", "%u", queued);
	LANES("threads_jobs_total", "counter", "Jobs that a thread has taken.", "%" PRIu64, jobs);
	LANES("threads_oldest_job_seconds", "gauge", "Age of the oldest job, waiting or running.",
	    "%.6f", oldest_ns / 1e9);
	device_mounts(p, w);
	DEVICES("device_busy", "gauge", "Threads that wait for the device.", "%u", busy);
	DEVICES("device_queued", "gauge", "Jobs for the device that wait for a thread.", "%u",
	    queued);
	device_refused(p, w);
	DEVICES("device_oldest_job_seconds", "gauge", "Age of the oldest job for the device.",
	    "%.6f", oldest_ns / 1e9);
	DEVICES("device_stuck", "gauge", "1: all its threads hang, and further jobs are refused.",
	    "%d", stuck);
}
