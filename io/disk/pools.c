/* io/disk/pools.c -- the pools of threads; see pools.h.
 *
 *   io_job_push() --> queue of the lane --> thread: take, run, ran --> port of the job's loop
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include "io/engine.h"
#include "io/disk/health.h"
#include "io/disk/job.h"
#include "io/disk/pools_impl.h"

#define THREADS_MAX 1024u
#define STACK_SIZE  (256u << 10)
#define FDS_SOON    16384u /* Space for this many descriptors: 130 kB of the kernel's memory. */
/* Threads that keep hot files hot: one per device, for this many devices at a time. */
#define KEEPERS 8u
#define WORKERS 16u /* threads that compute, at most */
/* Results of short jobs go back together while more jobs wait: a loop that is woken for each one
 * takes the core from the thread each time. */
#define HELD_MAX 8u
#define HELD_NS  (2 * NS_PER_MS)
/* They get a tenth of a core that a loop keeps busy, and all of one that nobody else needs. */
#define WORKER_NICE 10

/* ---------------------------------------------------------------- a thread */

static const struct lane_kind lanes[LANES] = {
	[LANE_STAT] = { "stat" },
	[LANE_URGENT] = { "recheck", .keeps = true },
	[LANE_READ] = { "read", .reads = true },
	[LANE_REREAD] = { "reread", .reads = true, .keeps = true },
	[LANE_WORK] = { "work", .works = true },
	/* Kept apart from "work": a flood of handshakes must not delay a password, nor the
	 * compression of a long file a handshake. */
	[LANE_TLS] = { "tls", .works = true, .holds = true },
};

static int thread_start(struct pool_lane *);
static void pools_put_away(struct io_pools *);

/* A job may run.  True: an idle thread must be woken, which counts as busy from now on.  If all
 * threads are busy with something else, the job's device gets a new thread. */
static bool
lane_wants(struct pool_lane *ln)
{
	if (!queue_ready(&ln->queue))
		return (false);
	if (ln->idle == 0 && ln->threads <= ln->queue.running && ln->threads < ln->queue.total &&
	    !ln->pools->stop)
		(void)thread_start(ln); /* if that fails, the existing threads do the job later */
	if (ln->idle == 0)
		return (false);
	ln->idle--;
	return (true);
}

static void
lane_wake_all(struct pool_lane *ln)
{
	for (; ln->idle > 0; ln->idle--)
		sem_post(&ln->more);
}

/* Call it with the lock, which is released meanwhile. */
static void
lane_wait(struct pool_lane *ln)
{
	ln->idle++;
	pthread_mutex_unlock(&ln->pools->lock);
	while (sem_wait(&ln->more) != 0)
		;
	pthread_mutex_lock(&ln->pools->lock);
}

/* Call it with the lock.  0: there is a thread, now or later, that does the jobs. */
int
io_lane_staff(struct pool_lane *ln)
{
	return (ln->threads != 0 || ln->pools->stop ? 0 : thread_start(ln));
}

/* Releases the lock before it wakes a thread, because a woken thread takes the lock first. */
void
io_lane_unlock(struct pool_lane *ln)
{
	bool tell = lane_wants(ln);

	pthread_mutex_unlock(&ln->pools->lock);
	if (tell)
		sem_post(&ln->more);
}

/* The job belongs to another device: moves it to that queue.  False: it has its result.  No thread
 * is woken, because this thread takes the next job in a moment. */
static bool
job_moves(struct pool_lane *ln, struct io_job *j, struct io_job **displaced)
{
	int err;

	if (!j->moves)
		return (false);
	j->moves = false;
	err = queue_push(&ln->queue, j, displaced);
	if (err != 0)
		j->res = err;
	return (err == 0);
}

void
io_job_put(struct io_job *j)
{
	if (j->finish != NULL)
		io_port_put(j->port, j);
	else
		free(j);
}

/* Jobs that have gone back, and whose loops have not been woken.  The next job may take seconds, so
 * these loops look by themselves, too: IO_LOOK_MS. */
struct held_jobs {
	struct io_port *port[HELD_MAX];
	unsigned n;
	uint64_t since; /* the end of the first one */
};

/* Without the lock. */
static void
held_tell(struct held_jobs *h)
{
	unsigned i;

	for (i = 0; i < h->n; i++)
		io_port_tell(h->port[i]);
	h->n = 0;
}

/* With the lock.  True: the loop of *j is woken later, after the next job. */
static bool
holds(const struct pool_lane *ln, const struct io_job *j, struct held_jobs *h)
{
	if (!ln->kind->holds || j->end - j->start > HELD_NS)
		return (false);
	if (h->n == 0)
		h->since = j->end;
	return (h->n + 1 < HELD_MAX && j->end - h->since < HELD_NS && queue_ready(&ln->queue));
}

/* Without the lock. */
static void
job_ran(struct held_jobs *h, struct io_job *j, bool later)
{
	if (j->finish == NULL) {
		free(j);
		return;
	}
	h->port[h->n++] = j->port;
	io_port_give(j->port, j);
	if (!later)
		held_tell(h);
}

/* Call it with the lock, which is released meanwhile. */
static void
job_run(struct pool_lane *ln, struct io_job *j, struct held_jobs *held)
{
	struct io_pools *ps = ln->pools;
	struct io_job *displaced = NULL;
	bool moves, later;
	long slept;

	ln->jobs++;
	io_lane_unlock(ln); /* there may be another job */
	slept = ps->tells_awake ? io_times_slept() : 0;
	j->run(j);
	j->end = clock_mono_ns();
	j->awake = slept != 0 && io_times_slept() == slept;
	pthread_mutex_lock(&ps->lock);
	queue_ran(&ln->queue, j);
	moves = job_moves(ln, j, &displaced);
	if (moves && displaced == NULL)
		return;
	later = !moves && holds(ln, j, held);
	pthread_mutex_unlock(&ps->lock);
	if (!moves)
		job_ran(held, j, later);
	if (displaced != NULL)
		io_job_put(displaced);
	pthread_mutex_lock(&ps->lock);
}

/* This thread ends, and nobody joins it. */
static void
thread_forget(struct io_pools *ps, struct pool_lane *ln)
{
	unsigned i;

	for (i = 0; !pthread_equal(ps->thread[i], pthread_self()); i++)
		must(i + 1 < ps->nthread);
	ps->thread[i] = ps->thread[--ps->nthread];
	ln->threads--;
	pthread_detach(pthread_self());
}

/* It computes for milliseconds, a loop for microseconds.  A loop that wakes up has to wait for the
 * end of the running thread's slice, up to 4 ms, if it has just had more than its share; beside a
 * nice thread it hardly ever has.  Measured beside handshakes with RSA 4096: of the waits of a loop
 * one of a hundred took 4.0 ms, and 0.2 ms beside nice threads.  A nice thread may have started
 * this one, so the main thread's value counts. */
static void
let_loops_run(void)
{
	(void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, (id_t)getpid()) + WORKER_NICE);
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
	struct held_jobs held = { .n = 0 };
	struct io_job *j;
	char name[16];
	bool last;

	free(arg);
	snprintf(name, sizeof(name), "%s-%u", a.lane->name, a.nr);
	pthread_setname_np(pthread_self(), name);
	if (a.lane->kind->works)
		let_loops_run();
	pthread_mutex_lock(&ps->lock);
	while (!ps->stop) {
		j = queue_take(&a.lane->queue);
		if (j != NULL) {
			job_run(a.lane, j, &held);
			continue;
		}
		if (held.n != 0) { /* another thread has taken the job that was waiting */
			pthread_mutex_unlock(&ps->lock);
			held_tell(&held);
			pthread_mutex_lock(&ps->lock);
			continue;
		}
		if (ps->shrinks && a.lane->threads > 1) {
			thread_forget(ps, a.lane);
			break;
		}
		lane_wait(a.lane);
	}
	pthread_mutex_unlock(&ps->lock);
	held_tell(&held);
	pthread_mutex_lock(&ps->lock);
	if (--ps->alive == 0)
		pthread_cond_signal(&ps->gone);
	last = ps->alive == 0 && ps->left_behind;
	pthread_mutex_unlock(&ps->lock);
	if (last)
		pools_put_away(ps);
	return (NULL);
}

/* Call it with the lock: the thread begins by waiting for it. */
static int
thread_start(struct pool_lane *ln)
{
	struct io_pools *ps = ln->pools;
	struct thread_arg *a = malloc(sizeof(*a));
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	if (a == NULL)
		return (-ENOMEM);
	*a = (struct thread_arg){ ln, ln->threads };
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are for the main thread */
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	err = pthread_create(&ps->thread[ps->nthread], &attr, pool_thread, a);
	/* thread-local storage counts as stack, and a library may need much of it */
	if (err == EINVAL)
		err = pthread_create(&ps->thread[ps->nthread], NULL, pool_thread, a);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err != 0) {
		free(a);
		return (-err);
	}
	ps->nthread++;
	ps->alive++;
	ln->threads++;
	return (0);
}

/* ---------------------------------------------------------------- pools */

/* One thread is left for the others, if there is more than one. */
static unsigned
tls_per_client(unsigned threads, const struct io_pools_conf *conf)
{
	unsigned n = conf->tls_per_client != 0 ? conf->tls_per_client : threads - 1;

	return (n < 1 ? 1 : n < ROW_RUNNING ? n : ROW_RUNNING);
}

/* threads 0: jobs are done where they are pushed. */
static int
lane_new(struct io_pools *ps, enum io_lane nr, unsigned threads, const struct io_pools_conf *conf)
{
	struct pool_lane *ln = &ps->lane[nr];
	unsigned each = threads != 0, total = KEEPERS;
	int err = 0;

	if (lanes[nr].works) {
		each = total = threads;
		threads = 0;
	} else if (lanes[nr].keeps)
		threads = each;
	else
		queue_places(conf->per_device, threads, THREADS_MAX, &each, &total);
	ln->pools = ps;
	ln->name = lanes[nr].name;
	ln->kind = &lanes[nr];
	sem_init(&ln->more, 0, 0);
	queue_init(&ln->queue, each, total, conf->max_queue, conf->stuck_ms);
	ln->queue.per_client = nr == LANE_TLS ? tls_per_client(total, conf) : 0;
	ln->queue.lock = &ps->lock;
	pthread_mutex_lock(&ps->lock);
	while (err == 0 && ln->threads < threads)
		err = thread_start(ln);
	pthread_mutex_unlock(&ps->lock);
	return (err);
}

/* The loops need the other half of the cores. */
static unsigned
workers(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN) / 2;

	return (n < 1 ? 1 : n > WORKERS ? WORKERS : (unsigned)n);
}

static unsigned
at_most_max(unsigned n)
{
	return (n > THREADS_MAX ? THREADS_MAX : n);
}

/* Gives the table of descriptors its size before there are threads.  The kernel grows it at the
 * 65th, 129th ... descriptor.  If threads share it, the kernel waits for a grace period of RCU
 * first: measured 6 ms in accept(2), on the loop. */
static void
reserve_descriptors(void)
{
	struct rlimit rl;
	int fd;

	if (getrlimit(RLIMIT_NOFILE, &rl) != 0 || rl.rlim_cur == 0)
		return;
	fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC,
	    (int)(rl.rlim_cur < FDS_SOON ? rl.rlim_cur : FDS_SOON) - 1);
	if (fd >= 0)
		close(fd);
}

int
io_pools_new(const struct io_pools_conf *conf, struct io_pools **out)
{
	unsigned nstat = at_most_max(conf->stat_threads), nread = at_most_max(conf->read_threads);
	struct io_pools *ps =
	    calloc(1, sizeof(*ps) + (QUEUE_SPARE * (nstat + nread) + 2 * KEEPERS + 2 * WORKERS) *
					sizeof(pthread_t));
	pthread_condattr_t mono;
	enum io_lane i;
	int n, err = 0;

	if (ps == NULL)
		return (-ENOMEM);
	ps->shares = 1;
	ps->tells_awake = conf->tells_awake != 0;
	ps->hotset = hotset_new((uint64_t)conf->hotset_mib << 20);
	reserve_descriptors();
	pthread_mutex_init(&ps->lock, NULL);
	pthread_condattr_init(&mono);
	pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
	pthread_cond_init(&ps->gone, &mono);
	pthread_condattr_destroy(&mono);
	for (i = 0; i < LANES; i++) {
		n = lane_new(ps, i,
		    lanes[i].works   ? workers()
		    : lanes[i].reads ? nread
				     : nstat,
		    conf);
		err = err != 0 ? err : n;
	}
	if (err != 0) {
		io_pools_free(ps, 1000);
		return (err);
	}
	*out = ps;
	return (0);
}

/* Threads are stuck in the kernel and will still use *ps. */
static void
leave_behind_locked(struct io_pools *ps)
{
	unsigned i;

	for (i = 0; i < ps->nthread; i++)
		pthread_detach(ps->thread[i]);
	ps->left_behind = true;
}

/* True if all threads have left; otherwise *ps belongs to them. */
static bool
pools_wait(struct io_pools *ps, unsigned wait_ms)
{
	uint64_t until = clock_mono_ns() + wait_ms * NS_PER_MS;
	struct timespec ts = { .tv_sec = (time_t)(until / NS_PER_S),
		.tv_nsec = (long)(until % NS_PER_S) };
	bool left;
	unsigned i;

	pthread_mutex_lock(&ps->lock);
	ps->stop = true;
	for (i = 0; i < LANES; i++)
		lane_wake_all(&ps->lane[i]);
	while (ps->alive > 0 && pthread_cond_timedwait(&ps->gone, &ps->lock, &ts) == 0)
		;
	left = ps->alive == 0;
	if (!left)
		leave_behind_locked(ps);
	pthread_mutex_unlock(&ps->lock);
	return (left);
}

/* Jobs that no thread took: closes are done here, the others are freed without running. */
static void
lane_empty(struct pool_lane *ln)
{
	struct io_job *j;

	while ((j = queue_pop_any(&ln->queue)) != NULL) {
		j->res = -ECANCELED;
		if (j->finish == NULL)
			j->run(j);
		io_job_put(j);
	}
	queue_fini(&ln->queue);
	sem_destroy(&ln->more);
}

static void
pools_put_away(struct io_pools *ps)
{
	unsigned i;

	for (i = 0; i < LANES; i++)
		lane_empty(&ps->lane[i]);
	hotset_free(ps->hotset);
	pthread_cond_destroy(&ps->gone);
	pthread_mutex_destroy(&ps->lock);
	free(ps);
}

struct io_pools *
io_pools_share(struct io_pools *ps)
{
	ps->shares++;
	return (ps);
}

void
io_pools_shrink(struct io_pools *ps)
{
	unsigned i;

	hotset_close(ps->hotset);
	pthread_mutex_lock(&ps->lock);
	ps->shrinks = true;
	for (i = 0; i < LANES; i++)
		lane_wake_all(&ps->lane[i]);
	pthread_mutex_unlock(&ps->lock);
}

void
io_pools_free(struct io_pools *ps, unsigned wait_ms)
{
	unsigned i;

	if (ps == NULL || --ps->shares > 0 || !pools_wait(ps, wait_ms))
		return;
	for (i = 0; i < ps->nthread; i++)
		pthread_join(ps->thread[i], NULL);
	pools_put_away(ps);
}
