/* io/disk/port.c -- the ports through which finished jobs come back to their loops, and the jobs themselves. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include "io/disk/async.h"
#include "io/engine.h"
#include "io/disk/job.h"

/* Outlives its loop for as long as a thread is stuck with one of its jobs. */
struct io_port {
	pthread_mutex_t lock;
	struct list done;
	struct io *io;   /* NULL: the loop has ended */
	int wakefd;
	bool woken;      /* a wake-up is on its way: no second write */
	unsigned refs;   /* the loop and each job out there */
};

struct io_port *
io_port_new(struct io *io, int wakefd)
{
	struct io_port *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return (NULL);
	pthread_mutex_init(&p->lock, NULL);
	list_init(&p->done);
	p->io = io;
	p->wakefd = wakefd;
	p->refs = 1;
	return (p);
}

struct io *
io_port_loop(const struct io_port *p)
{
	return (p->io);
}

static void
port_wake_locked(struct io_port *p)
{
	uint64_t one = 1;

	if (p->woken || p->io == NULL)
		return;
	p->woken = true;
	if (write(p->wakefd, &one, sizeof(one)) < 0)
		must(errno == EAGAIN); /* the count is at its limit: readable all the same */
}

void
io_port_wake(struct io_port *p)
{
	pthread_mutex_lock(&p->lock);
	port_wake_locked(p);
	pthread_mutex_unlock(&p->lock);
}

static void
port_unref_unlock(struct io_port *p)
{
	bool last = --p->refs == 0;

	pthread_mutex_unlock(&p->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* The loop has ended: its files have no thread any more that could own their reference counts, so
 * the port's lock guards them now. */
static void
job_orphaned(struct io_job *j)
{
	struct io_file *f = j->file;

	if (j->fd >= 0)
		close(j->fd);
	free(j->buf);
	free(j->first.bytes);
	if (f != NULL && --f->refs == 0)
		io_file_destroy(f, NULL);
	free(j);
}

void
io_port_ref(struct io_port *p)
{
	pthread_mutex_lock(&p->lock);
	p->refs++;
	pthread_mutex_unlock(&p->lock);
}

void
io_port_unref(struct io_port *p)
{
	pthread_mutex_lock(&p->lock);
	port_unref_unlock(p);
}

void
io_port_put(struct io_port *p, struct io_job *j)
{
	pthread_mutex_lock(&p->lock);
	if (p->io == NULL) {
		job_orphaned(j);
	} else {
		list_add_tail(&p->done, &j->link);
		port_wake_locked(p);
	}
	port_unref_unlock(p);
}

void
io_port_drain(struct io_port *p)
{
	struct list done, *l;
	struct io_job *j;

	list_init(&done);
	pthread_mutex_lock(&p->lock);
	p->woken = false;
	list_splice_tail(&done, &p->done);
	pthread_mutex_unlock(&p->lock);
	while ((l = list_pop(&done)) != NULL) {
		j = list_entry(l, struct io_job, link);
		io_job_finish(j);
	}
}

void
io_port_close(struct io_port *p)
{
	struct list *l;

	io_port_drain(p);
	pthread_mutex_lock(&p->lock);
	p->io = NULL;
	while ((l = list_pop(&p->done)) != NULL) /* came in between */
		job_orphaned(list_entry(l, struct io_job, link));
	port_unref_unlock(p);
}

/* ---------------------------------------------------------------- jobs */

void
io_job_init(struct io_job *j, struct io *io, struct io_op *op)
{
	memset(j, 0, sizeof(*j));
	list_init(&j->link);
	j->port = io->port;
	j->op = op;
	j->turn.client = op != NULL ? op->client : 0;
	j->fd = -1;
}

struct io_job *
io_job_new(struct io *io, struct io_op *op, const char *path)
{
	size_t n = path != NULL ? strlen(path) + 1 : 0;
	struct io_job *j = malloc(sizeof(*j) + n);

	if (j == NULL)
		return (NULL);
	io_job_init(j, io, op);
	if (n != 0)
		memcpy(j->path, path, n);
	return (j);
}

static uint64_t
not_before(uint64_t t, uint64_t before)
{
	return (t > before ? t : before);
}

static void
stamp(struct io_stamps *at, const struct io_job *j)
{
	at->start = not_before(j->start, at->submit);
	at->opened = j->opened != 0 ? not_before(j->opened, at->start) : 0;
	at->end = not_before(j->end, not_before(at->opened, at->start));
}

void
io_job_finish(struct io_job *j)
{
	struct io_op *op = j->op;

	if (op != NULL) {
		if (j->displaced)
			count(op->io->counters, queue_displaced);
		op->job = NULL;
		op->threaded = 1;
		stamp(&op->at, j);
	}
	j->finish(j);
}

void
io_job_wait(struct io_op *op, struct io_job *j)
{
	op->at.submit = clock_mono_ns(); /* cold: worth the exact time */
	op->job = j;
	op->state = OP_JOB;
	io_arm(op);
}

void
io_job_refused(struct io_op *op, struct io_job *j, int err)
{
	op->job = NULL;
	io_job_free(op->io, j);
	io_complete(op, err);
}

void
io_job_start(struct io_op *op, struct io_job *j, enum io_lane lane)
{
	int err;

	io_job_wait(op, j);
	err = io_job_push(op->io, j, lane);
	if (err != 0)
		io_job_refused(op, j, err);
}

int
io_push_read(struct io *io, struct io_job *j)
{
	return (io_job_push(io, j, LANE_READ));
}

void
io_job_start_by(struct io_op *op, struct io_job *j, io_push_fn *push)
{
	int err;

	io_job_wait(op, j);
	err = push(op->io, j);
	if (err != 0)
		io_job_refused(op, j, err);
}

enum io_phase
io_phase(struct io *io, const struct io_op *op)
{
	const struct io_job *j = op->job;

	if (op->state != OP_JOB || io->pools == NULL)
		return (IO_RUNS);
	if (io_job_waits(io->pools, j))
		return (IO_WAITS);
	return (__atomic_load_n(&j->opened, __ATOMIC_RELAXED) != 0 ? IO_READS : IO_RUNS);
}

void
io_join(struct io *io, struct io_op *op, uint32_t client)
{
	struct io_job *j = op->job;

	if (op->state != OP_JOB)
		return;
	if (j->async != NULL)
		io_async_joined(j->async, j, client);
	else
		io_job_joined(io->pools, j, client);
}

/* True: it was waiting for its turn, and is put away now. */
static bool
job_pull(struct io_pools *ps, struct io_job *j)
{
	if (!(j->async != NULL ? io_async_pull(j->async, j) : io_job_pull(ps, j)))
		return (false);
	j->op = NULL;
	j->res = -ECANCELED;
	j->finish(j);
	return (true);
}

bool
io_job_withdraw(struct io_op *op)
{
	if (!job_pull(op->io->pools, op->job))
		return (false);
	op->job = NULL;
	return (true);
}

void
io_job_abandon(struct io_op *op)
{
	struct io_job *j = op->job;

	op->job = NULL;
	j->op = NULL;
	if (j->abandoned != NULL)
		j->abandoned(op, j);
	(void)job_pull(op->io->pools, j);
}

void
io_job_free(struct io *io, struct io_job *j)
{
	if (j->fd >= 0)
		io_file_close_job(io, j->fd, j->dev);
	io_give_back(io, j->buf);
	io_file_put(j->file);
	free(j->first.bytes);
	free(j);
}
