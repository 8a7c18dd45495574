/* io/disk/port.c -- ports, through which finished jobs return to their loops; and jobs. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include "io/disk/queue.h"
#include "io/engine.h"
#include "io/disk/job.h"

/* Outlives its loop while a thread is stuck with one of its jobs. */
struct io_port {
	pthread_mutex_t lock;
	struct list done;
	struct io *io; /* NULL: the loop has ended */
	int wakefd;
	bool woken;    /* a wake-up is on its way: no second write */
	unsigned refs; /* atomic: counts the loop and each job in a thread */
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

void
io_ring(int eventfd)
{
	uint64_t one = 1;

	if (write(eventfd, &one, sizeof(one)) < 0)
		must(errno == EAGAIN); /* the count is at its limit: still readable */
}

/* True: the caller must ring, after it has released the lock.  A loop that is woken on this
 * processor would wait for a lock that is still held: 323 times in 6 s of a busy machine, for up to
 * 20 ms. */
static bool
port_wakes(struct io_port *p)
{
	bool rings = !p->woken && p->io != NULL;

	p->woken |= rings;
	return (rings);
}

void
io_port_wake(struct io_port *p)
{
	bool rings;

	pthread_mutex_lock(&p->lock);
	rings = port_wakes(p);
	pthread_mutex_unlock(&p->lock);
	if (rings)
		io_ring(p->wakefd);
}

/* The loop has ended, so no thread owns the reference counts of its files: the port's lock
 * protects them now. */
static void
job_orphaned(struct io_job *j)
{
	struct io_file *f = j->file;

	if (j->orphaned != NULL)
		j->orphaned(j);
	if (j->fd >= 0)
		close(j->fd);
	free(j->buf);
	free(j->first.bytes);
	free(j->first.real);
	if (f != NULL && --f->refs == 0)
		io_file_destroy(f, NULL);
	free(j);
}

void
io_port_ref(struct io_port *p)
{
	__atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
}

void
io_port_unref(struct io_port *p)
{
	if (__atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	pthread_mutex_destroy(&p->lock);
	close(p->wakefd);
	free(p);
}

void
io_port_give(struct io_port *p, struct io_job *j)
{
	pthread_mutex_lock(&p->lock);
	if (p->io == NULL)
		job_orphaned(j);
	else
		list_add_tail(&p->done, &j->link);
	pthread_mutex_unlock(&p->lock);
}

void
io_port_tell(struct io_port *p)
{
	bool rings;

	pthread_mutex_lock(&p->lock);
	rings = !list_empty(&p->done) && port_wakes(p); /* the loop may have looked */
	pthread_mutex_unlock(&p->lock);
	if (rings)
		io_ring(p->wakefd);
	io_port_unref(p);
}

void
io_port_put(struct io_port *p, struct io_job *j)
{
	io_port_give(p, j);
	io_port_tell(p);
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
	while ((l = list_pop(&p->done)) != NULL) /* came meanwhile */
		job_orphaned(list_entry(l, struct io_job, link));
	pthread_mutex_unlock(&p->lock);
	io_port_unref(p);
}

/* ---------------------------------------------------------------- jobs */

void
io_job_init(struct io_job *j, struct io *io, struct io_op *op)
{
	memset(j, 0, sizeof(*j));
	list_init(&j->link);
	j->io = io;
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

struct io_job *
io_job_for(struct io_op *op, const char *path, void (*run)(struct io_job *),
    void (*finish)(struct io_job *))
{
	struct io_job *j = io_job_new(op->io, op, path);

	if (j == NULL) {
		io_complete(op, -ENOMEM);
		return (NULL);
	}
	j->run = run;
	j->finish = finish;
	return (j);
}

void
io_job_set_file(struct io_job *j, struct io_file *f, uint64_t off, uint32_t len)
{
	j->file = io_file_ref(f);
	j->dev = io_file_dev(f);
	j->off = off;
	j->len = len;
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
	at->awake = j->awake;
}

/* It no longer comes back from a thread. */
static void
job_is_here(struct io_job *j)
{
	if (j->held)
		j->io->held_jobs--;
	j->held = false;
}

void
io_job_finish(struct io_job *j)
{
	struct io_op *op = j->op;

	job_is_here(j);
	if (op != NULL) {
		if (j->displaced)
			count(op->io->counters, queue_displaced);
		op->job = NULL;
		op->threaded = j->start != 0;
		stamp(&op->at, j);
	}
	j->finish(j);
}

void
io_job_wait(struct io_op *op, struct io_job *j)
{
	op->at.submit = clock_mono_ns(); /* cold: the exact time is worth a clock read */
	op->job = j;
	op->state = OP_JOB;
	io_arm(op);
}

void
io_job_start(struct io_op *op, struct io_job *j)
{
	io_job_wait(op, j);
	(void)io_job_push(j); /* refused: finish() has ended the op */
}

enum io_phase
io_phase(struct io *io, const struct io_op *op)
{
	const struct io_job *j = op->job;

	if (op->state != OP_JOB)
		return (IO_RUNS);
	if (queue_job_waits(j))
		return (IO_WAITS);
	return (__atomic_load_n(&j->opened, __ATOMIC_RELAXED) != 0 ? IO_READS : IO_RUNS);
}

void
io_join(struct io *io, struct io_op *op, uint32_t client)
{
	if (op->state == OP_JOB)
		queue_job_join(op->job, client);
}

/* True: the job was waiting for its turn, and is freed now. */
static bool
job_pull(struct io_job *j)
{
	if (!queue_job_pull(j))
		return (false);
	if (j->async == NULL)
		io_port_unref(j->port);
	job_is_here(j);
	j->op = NULL;
	j->res = -ECANCELED;
	j->finish(j);
	return (true);
}

bool
io_job_withdraw(struct io_op *op)
{
	if (!job_pull(op->job))
		return (false);
	op->job = NULL;
	return (true);
}

/* The op ends now, although its job may go on: stamps how long the op has waited, and run. */
static void
stamp_abandoned(struct io_op *op, struct io_job *j)
{
	uint64_t start = queue_job_start(j), now = io_now(op->io);

	op->threaded = 1;
	op->at.start = not_before(start != 0 ? start : now, op->at.submit);
	op->at.end = not_before(now, op->at.start);
}

void
io_job_abandon(struct io_op *op)
{
	struct io_job *j = op->job;

	stamp_abandoned(op, j);
	op->job = NULL;
	j->op = NULL;
	if (j->abandoned != NULL)
		j->abandoned(op, j);
	if (!j->must_run)
		(void)job_pull(j);
}

void
io_job_free(struct io_job *j)
{
	if (j->fd >= 0)
		io_file_close_job(j->io, j->fd, j->dev);
	io_give_back(j->io, j->buf);
	io_file_put(j->file);
	free(j->first.bytes);
	free(j->first.real);
	free(j);
}
