/* io/disk/queue.c -- see queue.h */
#include <errno.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include "base/clock.h"
#include "base/must.h"
#include "io/disk/queue.h"

#define DEVICES_KEPT 64u

struct io_device {
	struct list link;    /* in the list of all devices */
	struct list turn;    /* linked while it has a job that may run */
	struct list running; /* jobs, oldest first */
	uint64_t dev, refused, refused_stuck;
	unsigned nrunning;
	struct fair_queue rows;
};

void
queue_init(struct io_queue *q, unsigned per_device, unsigned total, unsigned max_waiting,
    unsigned stuck_ms)
{
	memset(q, 0, sizeof(*q));
	q->per_device = per_device;
	q->total = total;
	q->last = per_device < total ? (total - per_device) / 2 : 0;
	q->last = q->last < QUEUE_LAST ? q->last : QUEUE_LAST;
	q->max_waiting = max_waiting;
	q->stuck_ms = stuck_ms;
	list_init(&q->devices);
	list_init(&q->turn);
}

static void
device_free(struct io_device *d)
{
	fair_queue_fini(&d->rows);
	free(d);
}

void
queue_fini(struct io_queue *q)
{
	struct list *l;

	must(q->waiting == 0 && q->running == 0);
	while ((l = list_pop(&q->devices)) != NULL)
		device_free(list_entry(l, struct io_device, link));
}

/* Automounts and snapshots come and go: frees a device without jobs. */
static void
device_forget_one(struct io_queue *q)
{
	struct io_device *d;

	list_each(d, &q->devices, link) {
		if (d->rows.waiting != 0 || d->nrunning != 0)
			continue;
		list_del(&d->link);
		device_free(d);
		q->ndevices--;
		return;
	}
}

static struct io_device *
device_new(struct io_queue *q, uint64_t dev)
{
	struct io_device *d = calloc(1, sizeof(*d));

	if (d == NULL || fair_queue_init(&d->rows) != 0) {
		free(d);
		return (NULL);
	}
	if (q->ndevices >= DEVICES_KEPT)
		device_forget_one(q);
	q->ndevices++;
	d->dev = dev;
	fair_queue_limit(&d->rows, q->per_client);
	list_init(&d->turn);
	list_init(&d->running);
	list_add_tail(&q->devices, &d->link);
	return (d);
}

static struct io_device *
device_get(struct io_queue *q, uint64_t dev)
{
	struct io_device *d;

	list_each(d, &q->devices, link)
		if (d->dev == dev)
			return (d);
	return (device_new(q, dev));
}

static void
device_turn(struct io_queue *q, struct io_device *d)
{
	bool may = fair_queue_next(&d->rows) != NULL && d->nrunning < q->per_device;

	if (may && !list_linked(&d->turn))
		list_add_tail(&q->turn, &d->turn);
	else if (!may)
		list_del(&d->turn);
}

static struct io_job *
job_of(struct fair_queue_item *i)
{
	return (i != NULL ? container_of(i, struct io_job, turn) : NULL);
}

/* All places are taken, and the last one has been taken for longer than any request would wait.  (A
 * single hung file takes one place, and the others go on, so waiting makes sense.) */
static bool
device_stuck(const struct io_queue *q, const struct io_device *d, uint64_t now)
{
	if (q->stuck_ms == 0 || d->nrunning < q->per_device)
		return (false);
	return (now >
		list_entry(d->running.prev, struct io_job, link)->start + q->stuck_ms * NS_PER_MS);
}

/* Makes room for a job of the client, if possible; *displaced lost its place. */
static bool
device_has_room(struct io_queue *q, struct io_device *d, uint32_t client, struct io_job **displaced)
{
	struct io_job *j;

	if (d->rows.waited_for < q->max_waiting)
		return (true);
	d->refused++; /* one of the two jobs */
	j = job_of(fair_queue_victim(&d->rows, client));
	if (j == NULL)
		return (false);
	queue_pull(q, j);
	j->res = -EAGAIN;
	j->displaced = true;
	*displaced = j;
	return (true);
}

int
queue_push(struct io_queue *q, struct io_job *j, struct io_job **displaced)
{
	struct io_device *d = device_get(q, j->dev);
	uint64_t now = clock_mono_ns();

	*displaced = NULL;
	if (d == NULL)
		return (-ENOMEM);
	if (j->finish != NULL && device_stuck(q, d, now)) {
		d->refused++;
		d->refused_stuck++;
		return (-EAGAIN);
	}
	if (j->finish != NULL && !device_has_room(q, d, j->turn.client, displaced))
		return (-EAGAIN);
	j->turn.since_ns = now;
	j->turn.put_away = j->finish == NULL;
	if (fair_queue_push(&d->rows, &j->turn, false) != 0)
		return (-ENOMEM);
	j->device = d;
	j->waits = true;
	q->waiting++;
	device_turn(q, d);
	return (0);
}

void
queue_join(struct io_queue *q, struct io_job *j, uint32_t client)
{
	must(j->waits);
	fair_queue_move(&j->device->rows, &j->turn, client);
	device_turn(q, j->device);
}

bool
queue_client_is_full(const struct io_queue *q, const struct io_job *j)
{
	return (q->per_client != 0 &&
		fair_queue_running(&j->turn) + fair_queue_queued(&j->turn) > q->per_client);
}

/* The last places are reserved for devices without a running job, one for each: a hung device
 * cannot starve the rest. */
static struct io_device *
next_device(const struct io_queue *q)
{
	struct io_device *d;

	if (q->running >= q->total)
		return (NULL);
	list_each(d, &q->turn, turn)
		if (q->running < q->total - q->last || d->nrunning == 0)
			return (d);
	return (NULL);
}

bool
queue_ready(const struct io_queue *q)
{
	return (next_device(q) != NULL);
}

struct io_job *
queue_take(struct io_queue *q)
{
	struct io_device *d = next_device(q);
	struct io_job *j;

	if (d == NULL)
		return (NULL);
	j = job_of(fair_queue_next(&d->rows));
	fair_queue_take(&d->rows, &j->turn);
	j->waits = false;
	q->waiting--;
	j->start = clock_mono_ns();
	list_add_tail(&d->running, &j->link);
	d->nrunning++;
	q->running++;
	list_del(&d->turn); /* to the end of the line */
	device_turn(q, d);
	return (j);
}

void
queue_ran(struct io_queue *q, struct io_job *j)
{
	struct io_device *d = j->device;

	list_del(&j->link);
	fair_queue_ran(&d->rows, &j->turn);
	d->nrunning--;
	q->running--;
	device_turn(q, d);
}

void
queue_pull(struct io_queue *q, struct io_job *j)
{
	must(j->waits);
	fair_queue_pull(&j->device->rows, &j->turn);
	j->waits = false;
	q->waiting--;
	device_turn(q, j->device);
}

struct io_job *
queue_pop_any(struct io_queue *q)
{
	struct io_device *d;
	struct io_job *j;

	list_each(d, &q->devices, link) {
		j = job_of(fair_queue_oldest(&d->rows));
		if (j == NULL)
			continue;
		queue_pull(q, j);
		return (j);
	}
	return (NULL);
}

/* ---- one job */

static void
lock(const struct io_job *j)
{
	if (j->queue != NULL && j->queue->lock != NULL)
		pthread_mutex_lock(j->queue->lock);
}

static void
unlock(const struct io_job *j)
{
	if (j->queue != NULL && j->queue->lock != NULL)
		pthread_mutex_unlock(j->queue->lock);
}

bool
queue_job_waits(const struct io_job *j)
{
	bool waits;

	lock(j);
	waits = j->waits;
	unlock(j);
	return (waits);
}

uint64_t
queue_job_start(const struct io_job *j)
{
	uint64_t ns;

	lock(j);
	ns = j->waits ? 0 : j->start;
	unlock(j);
	return (ns);
}

void
queue_job_join(struct io_job *j, uint32_t client)
{
	lock(j);
	if (j->waits)
		queue_join(j->queue, j, client);
	unlock(j);
}

bool
queue_job_pull(struct io_job *j)
{
	bool mine;

	lock(j);
	mine = j->waits;
	if (mine)
		queue_pull(j->queue, j);
	unlock(j);
	return (mine);
}

/* ---- status */

static uint64_t
device_oldest(const struct io_device *d)
{
	const struct io_job *runs = list_entry(d->running.next, struct io_job, link);
	const struct fair_queue_item *waits = fair_queue_oldest(&d->rows);

	if (waits == NULL)
		return (list_empty(&d->running) ? 0 : runs->turn.since_ns);
	return (list_empty(&d->running) || waits->since_ns < runs->turn.since_ns
		    ? waits->since_ns
		    : runs->turn.since_ns);
}

uint64_t
queue_runs_since(const struct io_queue *q, uint64_t dev)
{
	const struct io_device *d;

	list_each(d, &q->devices, link)
		if (d->dev == dev && !list_empty(&d->running))
			return (list_entry(d->running.next, struct io_job, link)->start);
	return (0);
}

uint64_t
queue_oldest_ns(const struct io_queue *q)
{
	uint64_t ns = 0, of;
	const struct io_device *d;

	list_each(d, &q->devices, link) {
		of = device_oldest(d);
		if (of != 0 && (ns == 0 || of < ns))
			ns = of;
	}
	return (ns);
}

static struct io_device_status *
stats_of(struct io_device_status *v, size_t *n, size_t max, uint64_t dev)
{
	size_t i;

	for (i = 0; i < *n; i++) {
		if (v[i].major == major(dev) && v[i].minor == minor(dev))
			return (&v[i]);
	}
	if (*n == max)
		return (NULL);
	v[*n] = (struct io_device_status){ .major = major(dev), .minor = minor(dev) };
	return (&v[(*n)++]);
}

size_t
queue_devices(const struct io_queue *q, struct io_device_status *v, size_t n, size_t max)
{
	const struct io_device *d;
	struct io_device_status *s;
	uint64_t oldest, now = clock_mono_ns();

	list_each(d, &q->devices, link) {
		s = stats_of(v, &n, max, d->dev);
		if (s == NULL)
			continue;
		oldest = device_oldest(d);
		oldest = oldest != 0 ? now - oldest : 0;
		s->busy += d->nrunning;
		s->queued += d->rows.waiting;
		s->refused += d->refused;
		s->refused_stuck += d->refused_stuck;
		s->stuck = s->stuck || device_stuck(q, d, now);
		s->oldest_ns = oldest > s->oldest_ns ? oldest : s->oldest_ns;
	}
	return (n);
}
