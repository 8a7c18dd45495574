/* io/file/posix_aio.c -- posix-aio: aio_read(3), with the threads of the C library.
 *
 *   loop                                 library                reaper, a thread of this loop
 *   queue --> aio_read() --------------> thread: pread(2)
 *         \-- EAGAIN: read pool          |
 *   <-- eventfd <------------------------+----- aio_suspend() for all requests in progress
 *   send from memory
 *
 * SIGEV_THREAD would need no reaper, but starts a thread for each result and unblocks all signals
 * in it: a TERM that arrives there does not reach the main thread and ends the process (glibc
 * 2.36).  aio_suspend() does not notice reads that begin after it.  So one request is always a read
 * of an eventfd, the bell, and the loop writes to the bell for new reads.
 *
 * glibc gives requests of one descriptor to one thread, one after the other.  Clients of different
 * files are served in parallel, clients of one cold file in turn.
 */
#include <aio.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/log.h"
#include "io/disk/async.h"
#include "io/engine.h"

/* The library starts threads when they are needed and keeps them for a second; the queues of io/
 * are the limit. */
#define LIBRARY_THREADS 16384
/* The library's threads start each other, which the interceptors of ThreadSanitizer (gcc 12) do not
 * support. */
#ifdef __SANITIZE_THREAD__
#define LIBRARY_ERR (-ENOSYS)
#else
#define LIBRARY_ERR 0
#endif
#define NO_BELL_NS 10000000 /* interval of checks while there is no memory for the bell */

struct aio_job {
	struct io_job job;
	struct list reading; /* of the reaper */
	struct aiocb cb;
};

struct posix_aio {
	struct io *io;
	struct io_async async;
	struct io_watch watch;
	pthread_t reaper;
	pthread_mutex_t lock;
	/* Protected by lock. */
	struct list reading, ended;
	bool stop, belled;
	/* Of the reaper. */
	int wakefd, bellfd;
	struct aiocb bell;
	uint64_t rung;
	const struct aiocb **wait;
};

/* ---------------------------------------------------------------- the reaper */

static bool
ended(const struct aiocb *cb)
{
	return (aio_error(cb) != EINPROGRESS);
}

static bool
bell_set(struct posix_aio *p)
{
	p->bell = (struct aiocb){ .aio_fildes = p->bellfd,
		.aio_buf = &p->rung,
		.aio_nbytes = sizeof(p->rung) };
	p->bell.aio_sigevent.sigev_notify = SIGEV_NONE;
	return (aio_read(&p->bell) == 0);
}

/* Call it with the lock.  True: there are results for the loop. */
static bool
take_ended(struct posix_aio *p)
{
	struct aio_job *j;
	bool any = false;

	list_each(j, &p->reading, reading) {
		if (!ended(&j->cb))
			continue;
		list_del(&j->reading);
		list_add_tail(&p->ended, &j->reading);
		any = true;
	}
	return (any);
}

/* Call it with the lock, which is released meanwhile. */
static void
wait_for_some(struct posix_aio *p)
{
	const struct timespec soon = { .tv_nsec = NO_BELL_NS };
	struct aio_job *j;
	int n = 0;

	if (p->belled)
		p->wait[n++] = &p->bell;
	list_each(j, &p->reading, reading)
		p->wait[n++] = &j->cb;
	pthread_mutex_unlock(&p->lock);
	(void)aio_suspend(p->wait, n, p->belled ? NULL : &soon);
	pthread_mutex_lock(&p->lock);
}

static void *
reaper_main(void *arg)
{
	struct posix_aio *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		wait_for_some(p);
		if (take_ended(p))
			io_ring(p->wakefd);
		if (!p->belled || ended(&p->bell))
			p->belled = bell_set(p);
	}
	pthread_mutex_unlock(&p->lock);
	if (p->belled) {
		io_ring(p->bellfd); /* it may have been set again since */
		while (!ended(&p->bell))
			(void)aio_suspend((const struct aiocb *[]){ &p->bell }, 1, NULL);
	}
	return (NULL);
}

/* ---------------------------------------------------------------- a read */

static struct aio_job *
read_job(struct io_op *op, struct io_async *async)
{
	struct aio_job *a = malloc(sizeof(*a));

	if (a == NULL)
		return (NULL);
	io_job_init(&a->job, op->io, op);
	list_init(&a->reading);
	a->job.async = async;
	a->job.finish = io_read_finish;
	io_job_set_file(&a->job, op->file.file, op->file.off, op->file.len);
	a->job.buf = io_window_get(op->io);
	if (a->job.buf == NULL) {
		io_job_free(&a->job);
		return (NULL);
	}
	return (a);
}

/* The library has no memory for another request. */
static void
pool_instead(struct io_job *j)
{
	static bool said;
	struct io_op *op = j->op;

	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		log_event(LOG_WARN, NULL, "posix-aio.refused", LF_ERR("error", j->res),
		    LF_STR("then", "the read pool"));
	if (op == NULL) {
		io_job_free(j);
		return;
	}
	io_count_read(j->io, false);
	j->async = NULL;
	j->lane = LANE_READ;
	j->run = io_read_run;
	j->finish = io_read_finish;
	io_job_start(op, j);
}

static void
read_start(struct io_async *async, struct io_job *j)
{
	struct posix_aio *p = container_of(async, struct posix_aio, async);
	struct aio_job *a = container_of(j, struct aio_job, job);

	a->cb = (struct aiocb){ .aio_fildes = j->file->fd,
		.aio_buf = j->buf,
		.aio_nbytes = j->len,
		.aio_offset = (off_t)j->off };
	a->cb.aio_sigevent.sigev_notify = SIGEV_NONE;
	if (aio_read(&a->cb) != 0) {
		j->finish = pool_instead;
		io_async_done(async, j, -errno);
		return;
	}
	io_count_read(p->io, true);
	pthread_mutex_lock(&p->lock);
	list_add_tail(&p->reading, &a->reading);
	pthread_mutex_unlock(&p->lock);
	io_ring(p->bellfd);
}

static void
reads_ended(struct io_watch *w)
{
	struct posix_aio *p = container_of(w, struct posix_aio, watch);
	struct list done, *l;
	struct aio_job *a;
	int err;

	list_init(&done);
	pthread_mutex_lock(&p->lock);
	list_splice_tail(&done, &p->ended);
	pthread_mutex_unlock(&p->lock);
	while ((l = list_pop(&done)) != NULL) {
		a = list_entry(l, struct aio_job, reading);
		err = aio_error(&a->cb);
		io_async_done(&p->async, &a->job, err != 0 ? -err : aio_return(&a->cb));
	}
}

static void
posix_read(struct io_op *op)
{
	struct posix_aio *p = op->io->backend_state;
	struct aio_job *a = read_job(op, &p->async);

	must(op->file.len <= op->io->window);
	if (a == NULL) {
		io_complete(op, -ENOMEM);
		return;
	}
	io_job_start(op, &a->job);
}

/* ---------------------------------------------------------------- open and close */

static void
library_init(void)
{
	const struct aioinit all = { .aio_threads = LIBRARY_THREADS, .aio_num = 1024 };

	aio_init(&all);
}

static int
reaper_start(struct posix_aio *p)
{
	sigset_t all, old;
	int err;

	p->belled = bell_set(p);
	if (!p->belled)
		return (-errno);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are for the main thread */
	err = pthread_create(&p->reaper, NULL, reaper_main, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err != 0) { /* the library holds the bell */
		io_ring(p->bellfd);
		while (!ended(&p->bell))
			(void)aio_suspend((const struct aiocb *[]){ &p->bell }, 1, NULL);
	}
	return (-err);
}

static void
state_free(struct posix_aio *p)
{
	p->io->calls->unwatch(p->io, &p->watch);
	if (p->wakefd >= 0)
		close(p->wakefd);
	if (p->bellfd >= 0)
		close(p->bellfd);
	pthread_mutex_destroy(&p->lock);
	free(p->wait);
	free(p);
}

static int
state_open(struct posix_aio *p, struct io *io, unsigned jobs)
{
	int err;

	p->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->bellfd = eventfd(0, EFD_CLOEXEC);
	if (p->wakefd < 0 || p->bellfd < 0)
		return (-errno);
	p->wait = calloc(jobs + 1, sizeof(*p->wait));
	if (p->wait == NULL)
		return (-ENOMEM);
	p->watch.ready = reads_ended;
	err = io->calls->watch(io, p->wakefd, &p->watch);
	return (err != 0 ? err : reaper_start(p));
}

static int
posix_open(struct io *io, const struct io_conf *conf, const char **why)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct posix_aio *p;
	int err;

	if (LIBRARY_ERR != 0) {
		*why = "not under ThreadSanitizer, which does not survive the threads of the C "
		       "library";
		return (LIBRARY_ERR);
	}
	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		*why = "no memory for a loop";
		return (-ENOMEM);
	}
	pthread_once(&once, library_init);
	p->io = io;
	p->wakefd = p->bellfd = -1;
	list_init(&p->reading);
	list_init(&p->ended);
	pthread_mutex_init(&p->lock, NULL);
	io_async_init(&p->async, conf, conf->read_jobs, UINT_MAX, read_start);
	err = state_open(p, io, p->async.queue.total);
	if (err != 0) {
		*why = "no memory, thread or descriptor for a loop's reaper";
		state_free(p);
		return (err);
	}
	io->backend_state = p;
	return (0);
}

static void
posix_close(struct io *io)
{
	struct posix_aio *p = io->backend_state;

	io_async_settle(&p->async, p->wakefd, &p->watch);
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_mutex_unlock(&p->lock);
	io_ring(p->bellfd);
	pthread_join(p->reaper, NULL);
	if (io_async_fini(&p->async) == 0)
		state_free(p);
}

extern const struct file_backend file_gthread_aio;

const struct file_backend file_posix_aio = {
	.name = "posix-aio",
	.doc = "aio_read(3), then writev(2); the C library reads one file for one client at a time",
	.waits = "a lock of the C library, which its threads hold for a moment",
	.tag = "network_posix_aio.c.78:",
	.chunk = 1 << 20,
	.counts = FILE_COUNTS(posix_aio),
	.instead = &file_gthread_aio,
	.open = posix_open,
	.close = posix_close,
	.read = posix_read,
};
