/* io/blocking.c -- the pools, and the ports through which finished jobs come back to their loops. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "io/engine.h"
#include "io/job.h"

#define THREADS_MAX 1024u
#define STACK_SIZE (256u << 10)

/* ---------------------------------------------------------------- ports */

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
	if (f != NULL && --f->refs == 0)
		io_file_destroy(f, NULL);
	free(j);
}

static void
port_put(struct io_port *p, struct io_job *j)
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
		if (j->op != NULL) {
			j->op->job = NULL;
			j->op->threaded = 1;
			j->op->at.start = j->start > j->op->at.submit ? j->start : j->op->at.submit;
			j->op->at.end = j->end > j->op->at.start ? j->end : j->op->at.start;
		}
		j->finish(j);
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

/* ---------------------------------------------------------------- pools */

struct pool_lane {
	struct io_pools *pools;
	const char *name;
	pthread_cond_t more;
	struct list queue;
	unsigned queued, max_queue, idle, threads;
};

struct io_pools {
	pthread_mutex_t lock;
	pthread_cond_t gone;
	bool stop;
	unsigned alive;   /* threads */
	unsigned nthread; /* started */
	struct pool_lane lane[LANES];
	pthread_t thread[];
};

static void
thread_name(const struct pool_lane *ln, unsigned nr)
{
	char name[16];

	if (ln->threads == 1 && ln == &ln->pools->lane[LANE_URGENT])
		snprintf(name, sizeof(name), "%s", ln->name);
	else
		snprintf(name, sizeof(name), "%s-%u", ln->name, nr);
	pthread_setname_np(pthread_self(), name);
}

static void
job_run(struct io_job *j)
{
	struct io_port *p = j->port;

	j->start = clock_mono_ns();
	j->run(j);
	j->end = clock_mono_ns();
	if (j->finish != NULL)
		port_put(p, j);
	else
		free(j);
}

struct thread_arg {
	struct pool_lane *lane;
	unsigned nr;
};

static void *
pool_thread(void *arg)
{
	struct thread_arg a = *(struct thread_arg *)arg;
	struct io_pools *ps = a.lane->pools;
	struct io_job *j;
	struct list *l;

	free(arg);
	thread_name(a.lane, a.nr);
	pthread_mutex_lock(&ps->lock);
	while (!ps->stop) {
		l = list_pop(&a.lane->queue);
		if (l == NULL) {
			a.lane->idle++;
			pthread_cond_wait(&a.lane->more, &ps->lock);
			a.lane->idle--;
			continue;
		}
		j = list_entry(l, struct io_job, link);
		j->queued = false;
		a.lane->queued--;
		pthread_mutex_unlock(&ps->lock);
		job_run(j);
		pthread_mutex_lock(&ps->lock);
	}
	if (--ps->alive == 0)
		pthread_cond_signal(&ps->gone);
	pthread_mutex_unlock(&ps->lock);
	return (NULL);
}

static int
thread_start(struct io_pools *ps, struct pool_lane *ln, unsigned nr)
{
	struct thread_arg *a = malloc(sizeof(*a));
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	if (a == NULL)
		return (-ENOMEM);
	*a = (struct thread_arg){ln, nr};
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the main thread's */
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	err = pthread_create(&ps->thread[ps->nthread], &attr, pool_thread, a);
	if (err == EINVAL) /* thread-local storage counts as stack: somebody links much of it */
		err = pthread_create(&ps->thread[ps->nthread], NULL, pool_thread, a);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err != 0) {
		free(a);
		return (-err);
	}
	ps->nthread++;
	pthread_mutex_lock(&ps->lock);
	ps->alive++;
	pthread_mutex_unlock(&ps->lock);
	return (0);
}

static int
lane_start(struct io_pools *ps, enum io_lane nr, const char *name, unsigned threads, unsigned max_queue)
{
	struct pool_lane *ln = &ps->lane[nr];
	unsigned i;
	int err;

	ln->name = name;
	ln->threads = threads;
	ln->max_queue = max_queue;
	for (i = 0; i < threads; i++) {
		err = thread_start(ps, ln, i);
		if (err != 0)
			return (err);
	}
	return (0);
}

static unsigned
clamp(unsigned n)
{
	return (n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : n);
}

static void
pools_init(struct io_pools *ps)
{
	pthread_condattr_t mono;
	unsigned i;

	pthread_mutex_init(&ps->lock, NULL);
	pthread_condattr_init(&mono);
	pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
	pthread_cond_init(&ps->gone, &mono);
	pthread_condattr_destroy(&mono);
	for (i = 0; i < LANES; i++) {
		ps->lane[i].pools = ps;
		list_init(&ps->lane[i].queue);
		pthread_cond_init(&ps->lane[i].more, NULL);
	}
}

int
io_pools_new(const struct io_pools_conf *conf, struct io_pools **out)
{
	unsigned nstat = clamp(conf->stat_threads), nread = clamp(conf->read_threads);
	struct io_pools *ps = calloc(1, sizeof(*ps) + (nstat + nread + 1) * sizeof(pthread_t));
	int err;

	if (ps == NULL)
		return (-ENOMEM);
	pools_init(ps);
	err = lane_start(ps, LANE_STAT, "stat", nstat, conf->max_queue);
	if (err == 0)
		err = lane_start(ps, LANE_URGENT, "recheck", 1, conf->max_queue);
	if (err == 0)
		err = lane_start(ps, LANE_READ, "read", nread, conf->max_queue);
	if (err != 0) {
		io_pools_free(ps, 1000);
		return (err);
	}
	*out = ps;
	return (0);
}

/* True when all threads have left. */
static bool
pools_wait(struct io_pools *ps, unsigned wait_ms)
{
	uint64_t until = clock_mono_ns() + wait_ms * NS_PER_MS;
	struct timespec ts = {.tv_sec = (time_t)(until / NS_PER_S), .tv_nsec = (long)(until % NS_PER_S)};
	bool left;
	unsigned i;

	pthread_mutex_lock(&ps->lock);
	ps->stop = true;
	for (i = 0; i < LANES; i++)
		pthread_cond_broadcast(&ps->lane[i].more);
	while (ps->alive > 0 && pthread_cond_timedwait(&ps->gone, &ps->lock, &ts) == 0)
		;
	left = ps->alive == 0;
	pthread_mutex_unlock(&ps->lock);
	return (left);
}

/* Jobs nobody took: closes are done here, everything else is put away unrun. */
static void
lane_empty(struct pool_lane *ln)
{
	struct list *l;
	struct io_job *j;

	while ((l = list_pop(&ln->queue)) != NULL) {
		j = list_entry(l, struct io_job, link);
		j->queued = false;
		j->res = -ECANCELED;
		if (j->finish == NULL) {
			j->run(j);
			free(j);
		} else {
			port_put(j->port, j);
		}
	}
}

void
io_pools_free(struct io_pools *ps, unsigned wait_ms)
{
	bool left;
	unsigned i;

	if (ps == NULL)
		return;
	left = pools_wait(ps, wait_ms);
	for (i = 0; i < ps->nthread; i++) {
		if (left)
			pthread_join(ps->thread[i], NULL);
		else
			pthread_detach(ps->thread[i]);
	}
	if (!left)
		return; /* a thread is stuck in the kernel and will still look at *ps */
	for (i = 0; i < LANES; i++) {
		lane_empty(&ps->lane[i]);
		pthread_cond_destroy(&ps->lane[i].more);
	}
	pthread_cond_destroy(&ps->gone);
	pthread_mutex_destroy(&ps->lock);
	free(ps);
}

/* ---------------------------------------------------------------- jobs */

struct io_job *
io_job_new(struct io *io, struct io_op *op, const char *path)
{
	size_t n = path != NULL ? strlen(path) + 1 : 0;
	struct io_job *j = malloc(sizeof(*j) + n);

	if (j == NULL)
		return (NULL);
	memset(j, 0, sizeof(*j));
	list_init(&j->link);
	j->port = io->port;
	j->op = op;
	j->fd = -1;
	if (n != 0)
		memcpy(j->path, path, n);
	return (j);
}

int
io_job_push(struct io *io, struct io_job *j, enum io_lane lane)
{
	struct io_pools *ps = io->pools;
	struct pool_lane *ln;

	if (ps == NULL)
		return (-EAGAIN);
	ln = &ps->lane[lane];
	if (j->finish != NULL) {
		pthread_mutex_lock(&j->port->lock);
		j->port->refs++;
		pthread_mutex_unlock(&j->port->lock);
	}
	pthread_mutex_lock(&ps->lock);
	/* Closing gives something back: never refused. */
	if (ln->queued >= ln->max_queue && j->finish != NULL) {
		pthread_mutex_unlock(&ps->lock);
		pthread_mutex_lock(&j->port->lock);
		port_unref_unlock(j->port);
		return (-EAGAIN);
	}
	j->lane = lane;
	j->queued = true;
	list_add_tail(&ln->queue, &j->link);
	ln->queued++;
	if (ln->idle > 0)
		pthread_cond_signal(&ln->more);
	pthread_mutex_unlock(&ps->lock);
	return (0);
}

void
io_job_start(struct io_op *op, struct io_job *j, enum io_lane lane)
{
	int err;

	op->at.submit = clock_mono_ns(); /* cold: worth the exact time */
	op->job = j;
	op->state = OP_JOB;
	err = io_job_push(op->io, j, lane);
	if (err != 0) {
		op->job = NULL;
		io_job_free(op->io, j);
		io_complete(op, err);
		return;
	}
	io_arm(op);
}

/* True: it was still queued and is yours again. */
static bool
job_pull(struct io_pools *ps, struct io_job *j)
{
	bool mine;

	pthread_mutex_lock(&ps->lock);
	mine = j->queued;
	if (mine) {
		list_del(&j->link);
		j->queued = false;
		ps->lane[j->lane].queued--;
	}
	pthread_mutex_unlock(&ps->lock);
	if (mine) {
		pthread_mutex_lock(&j->port->lock);
		port_unref_unlock(j->port);
	}
	return (mine);
}

void
io_job_abandon(struct io_op *op)
{
	struct io_job *j = op->job;

	op->job = NULL;
	j->op = NULL;
	if (job_pull(op->io->pools, j)) {
		j->res = -ECANCELED;
		j->finish(j);
	}
}

void
io_job_free(struct io *io, struct io_job *j)
{
	if (j->fd >= 0)
		io_file_close_job(io, j->fd);
	io_give_back(io, j->buf);
	io_file_put(j->file);
	free(j);
}
