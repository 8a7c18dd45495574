/* io/queue.c -- see queue.h */
#include <errno.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include "base/clock.h"
#include "base/must.h"
#include "io/queue.h"

#define ROWS 64u
#define DEVICES_KEPT 64u

struct io_device {
	struct list link;    /* of all devices */
	struct list turn;    /* linked while it has a job that may run */
	struct list running; /* jobs, oldest first */
	uint64_t dev, refused;
	unsigned nrunning, waiting;
	unsigned next_row;
	uint64_t filled; /* bit per row */
	struct list row[ROWS];
};

void
queue_init(struct io_queue *q, unsigned per_device, unsigned total, unsigned max_waiting, unsigned stuck_ms)
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

void
queue_fini(struct io_queue *q)
{
	struct list *l;

	must(q->waiting == 0 && q->running == 0);
	while ((l = list_pop(&q->devices)) != NULL)
		free(list_entry(l, struct io_device, link));
}

/* Automounts and snapshots come and go: one that has nothing to do makes room. */
static void
device_forget_one(struct io_queue *q)
{
	struct io_device *d;
	struct list *l;

	for (l = q->devices.next; l != &q->devices; l = l->next) {
		d = list_entry(l, struct io_device, link);
		if (d->waiting != 0 || d->nrunning != 0)
			continue;
		list_del(&d->link);
		free(d);
		q->ndevices--;
		return;
	}
}

static struct io_device *
device_new(struct io_queue *q, uint64_t dev)
{
	struct io_device *d = calloc(1, sizeof(*d));
	unsigned i;

	if (d == NULL)
		return (NULL);
	if (q->ndevices >= DEVICES_KEPT)
		device_forget_one(q);
	q->ndevices++;
	d->dev = dev;
	list_init(&d->turn);
	list_init(&d->running);
	for (i = 0; i < ROWS; i++)
		list_init(&d->row[i]);
	list_add_tail(&q->devices, &d->link);
	return (d);
}

static struct io_device *
device_get(struct io_queue *q, uint64_t dev)
{
	struct list *l;

	for (l = q->devices.next; l != &q->devices; l = l->next) {
		if (list_entry(l, struct io_device, link)->dev == dev)
			return (list_entry(l, struct io_device, link));
	}
	return (device_new(q, dev));
}

static void
device_turn(struct io_queue *q, struct io_device *d)
{
	bool may = d->waiting != 0 && d->nrunning < q->per_device;

	if (may && !list_linked(&d->turn))
		list_add_tail(&q->turn, &d->turn);
	else if (!may)
		list_del(&d->turn);
}

/* Every place is taken, also the one taken last, and for longer than anybody would wait.  (A single file that hangs
 * keeps one place, and the others go on: whoever queues for them has a chance.) */
static bool
device_stuck(const struct io_queue *q, const struct io_device *d, uint64_t now)
{
	if (q->stuck_ms == 0 || d->nrunning < q->per_device)
		return (false);
	return (now > list_entry(d->running.prev, struct io_job, link)->start + q->stuck_ms * NS_PER_MS);
}

static bool
device_refuses(const struct io_queue *q, struct io_device *d, uint64_t now)
{
	if (d->waiting < q->max_waiting && !device_stuck(q, d, now))
		return (false);
	d->refused++;
	return (true);
}

int
queue_push(struct io_queue *q, struct io_job *j)
{
	struct io_device *d = device_get(q, j->dev);
	unsigned row = j->client % ROWS;
	uint64_t now = clock_mono_ns();

	if (d == NULL)
		return (-ENOMEM);
	if (j->finish != NULL && device_refuses(q, d, now))
		return (-EAGAIN);
	j->device = d;
	j->waits = true;
	j->pushed_ns = now;
	list_add_tail(&d->row[row], &j->link);
	d->filled |= 1ull << row;
	d->waiting++;
	q->waiting++;
	device_turn(q, d);
	return (0);
}

static void
leave_row(struct io_queue *q, struct io_job *j)
{
	struct io_device *d = j->device;
	unsigned row = j->client % ROWS;

	list_del(&j->link);
	if (list_empty(&d->row[row]))
		d->filled &= ~(1ull << row);
	j->waits = false;
	d->waiting--;
	q->waiting--;
}

/* The oldest job of the row whose turn it is. */
static struct io_job *
device_next(struct io_device *d)
{
	uint64_t from = d->filled & (~0ull << d->next_row);
	unsigned row = (unsigned)__builtin_ctzll(from != 0 ? from : d->filled);

	d->next_row = (row + 1) % ROWS;
	return (list_entry(d->row[row].next, struct io_job, link));
}

/* The last places are for devices that have none, one for each: however many others hang, whoever is well goes on. */
static struct io_device *
next_device(const struct io_queue *q)
{
	struct list *l;

	for (l = q->turn.next; l != &q->turn && q->running < q->total; l = l->next) {
		struct io_device *d = list_entry(l, struct io_device, turn);

		if (q->running < q->total - q->last || d->nrunning == 0)
			return (d);
	}
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
	j = device_next(d);
	leave_row(q, j);
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
	d->nrunning--;
	q->running--;
	device_turn(q, d);
}

void
queue_pull(struct io_queue *q, struct io_job *j)
{
	must(j->waits);
	leave_row(q, j);
	device_turn(q, j->device);
}

struct io_job *
queue_pop_any(struct io_queue *q)
{
	struct io_device *d;
	struct io_job *j;
	struct list *l;

	for (l = q->devices.next; l != &q->devices; l = l->next) {
		d = list_entry(l, struct io_device, link);
		if (d->filled == 0)
			continue;
		j = device_next(d);
		queue_pull(q, j);
		return (j);
	}
	return (NULL);
}

/* ---- for those who look */

static uint64_t
older(uint64_t a, const struct list *jobs)
{
	const struct io_job *j = list_entry(jobs->next, struct io_job, link);

	if (list_empty(jobs))
		return (a);
	return (a == 0 || j->pushed_ns < a ? j->pushed_ns : a);
}

static uint64_t
device_oldest(const struct io_device *d)
{
	uint64_t ns = older(0, &d->running);
	unsigned i;

	for (i = 0; i < ROWS; i++)
		ns = older(ns, &d->row[i]);
	return (ns);
}

uint64_t
queue_oldest_ns(const struct io_queue *q)
{
	uint64_t ns = 0, of;
	const struct list *l;

	for (l = q->devices.next; l != &q->devices; l = l->next) {
		of = device_oldest(list_entry(l, struct io_device, link));
		if (of != 0 && (ns == 0 || of < ns))
			ns = of;
	}
	return (ns);
}

static struct io_device_stats *
stats_of(struct io_device_stats *v, size_t *n, size_t max, uint64_t dev)
{
	size_t i;

	for (i = 0; i < *n; i++) {
		if (v[i].major == major(dev) && v[i].minor == minor(dev))
			return (&v[i]);
	}
	if (*n == max)
		return (NULL);
	v[*n] = (struct io_device_stats){.major = major(dev), .minor = minor(dev)};
	return (&v[(*n)++]);
}

size_t
queue_devices(const struct io_queue *q, struct io_device_stats *v, size_t n, size_t max)
{
	const struct io_device *d;
	struct io_device_stats *s;
	const struct list *l;
	uint64_t oldest, now = clock_mono_ns();

	for (l = q->devices.next; l != &q->devices; l = l->next) {
		d = list_entry(l, struct io_device, link);
		s = stats_of(v, &n, max, d->dev);
		if (s == NULL)
			continue;
		oldest = device_oldest(d);
		oldest = oldest != 0 ? now - oldest : 0;
		s->busy += d->nrunning;
		s->queued += d->waiting;
		s->refused += d->refused;
		s->stuck = s->stuck || device_stuck(q, d, now);
		s->oldest_ns = oldest > s->oldest_ns ? oldest : s->oldest_ns;
	}
	return (n);
}
