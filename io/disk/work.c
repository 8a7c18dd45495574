/* io/disk/work.c -- IO_WORK: a computation in a thread, and the last reference to it. */
#include <errno.h>
#include <stdlib.h>
#include "io/disk/job.h"
#include "io/engine.h"

struct work_job {
	struct io_job job;
	struct io_work *work;
};

void
io_work_put(struct io_work *w)
{
	if (w != NULL && __atomic_sub_fetch(&w->refs, 1, __ATOMIC_ACQ_REL) == 0)
		w->free(w);
}

static void
work_run(struct io_job *j)
{
	struct io_work *w = container_of(j, struct work_job, job)->work;

	w->run(w);
	j->res = 0;
	j->moves = w->again;
	if (w->again && w->dev != 0)
		j->dev = w->dev;
}

static void
work_finish(struct io_job *j)
{
	struct io_work *w = container_of(j, struct work_job, job)->work;

	if (j->op != NULL)
		io_complete(j->op, j->res);
	io_work_put(w);
	io_job_free(j);
}

static void
work_orphaned(struct io_job *j)
{
	io_work_put(container_of(j, struct work_job, job)->work);
}

void
io_start_work(struct io_op *op)
{
	struct work_job *wj = malloc(sizeof(*wj));

	if (wj == NULL) {
		io_complete(op, -ENOMEM);
		return;
	}
	io_job_init(&wj->job, op->io, op);
	wj->work = op->work.work;
	__atomic_add_fetch(&wj->work->refs, 1, __ATOMIC_RELAXED);
	wj->job.run = work_run;
	wj->job.finish = work_finish;
	wj->job.orphaned = work_orphaned;
	wj->job.lane = LANE_WORK;
	if (op->work.looks) {
		wj->job.lane = LANE_STAT;
		wj->job.dev = io_dev_of(op->work.root);
	}
	if (op->work.file != NULL)
		io_job_set_file(&wj->job, op->work.file, 0, 0);
	io_job_start(op, &wj->job);
}
