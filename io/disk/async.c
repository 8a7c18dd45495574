/* io/disk/async.c -- see async.h */
#include <errno.h>
#include <poll.h>
#include <unistd.h>
#include "base/clock.h"
#include "io/disk/async.h"
#include "io/engine.h"

/* enough for a disk that works; a hung disk gets no more time */
#define SETTLE_NS (200 * NS_PER_MS)

void
io_async_init(struct io_async *a, const struct io_conf *conf, unsigned jobs, unsigned most,
    void (*start)(struct io_async *, struct io_job *))
{
	unsigned each, total;

	queue_places(conf->per_device, jobs, most, &each, &total);
	queue_init(&a->queue, each, total, conf->max_queue, conf->stuck_ms);
	a->start = start;
	a->starting = false;
}

void
io_async_settle(struct io_async *a, int fd, struct io_watch *w)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t count, now, until = clock_mono_ns() + SETTLE_NS;

	while (a->queue.running != 0 && (now = clock_mono_ns()) < until) {
		if (poll(&p, 1, (int)((until - now) / NS_PER_MS) + 1) > 0 &&
		    read(fd, &count, sizeof(count)) > 0)
			w->ready(w);
	}
}

int
io_async_fini(struct io_async *a)
{
	if (a->queue.running != 0 || a->queue.waiting != 0)
		return (-EBUSY);
	queue_fini(&a->queue);
	return (0);
}

/* start() may end its job at once and call this again: one level is enough. */
static void
start_more(struct io_async *a)
{
	struct io_job *j;

	if (a->starting)
		return;
	a->starting = true;
	while ((j = queue_take(&a->queue)) != NULL)
		a->start(a, j);
	a->starting = false;
}

int
io_async_push(struct io_async *a, struct io_job *j)
{
	struct io_job *displaced;
	int err;

	j->queue = &a->queue;
	err = queue_push(&a->queue, j, &displaced);
	if (displaced != NULL)
		io_job_finish(displaced);
	if (err == 0)
		start_more(a);
	return (err);
}

void
io_async_done(struct io_async *a, struct io_job *j, int64_t res)
{
	queue_ran(&a->queue, j);
	j->res = res;
	j->end = clock_mono_ns();
	io_job_finish(j);
	start_more(a);
}

void
io_async_leave(struct io_async *a, struct io_job *j)
{
	queue_ran(&a->queue, j);
	j->async = NULL;
	j->abandoned = NULL;
	(void)io_job_push(j); /* or it has ended */
	start_more(a);
}

void
io_async_move(struct io_async *a, struct io_job *j)
{
	int err;

	queue_ran(&a->queue, j);
	err = io_async_push(a, j);
	if (err != 0) {
		j->res = err;
		j->end = clock_mono_ns();
		io_job_finish(j);
	}
	start_more(a);
}
