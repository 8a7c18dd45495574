/* io/file/linux_aio_read.c -- reads windows into shared memory: by the kernel, or by a thread if
 * the kernel cannot.
 *
 *   start --> thread: shm_renew(), io_submit() --> disk --> eventfd ---.
 *                     pread(2) of both ends -----> eventfd ------------+--> the loop: both are back
 *
 * The thread needs no port (its job has no finish()).  At the end the loop waits a moment for
 * requests in flight, when the port is closed already.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/log.h"
#include "io/file/linux_aio.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342 /* "XFSB" */
#endif

#define EVENTS 32

struct aio_fill {
	struct io_job job;
	struct read_job *read;
};

/* The part that O_DIRECT reads: from..to, nothing if from >= to. */
static uint64_t
direct_from(const struct read_job *r)
{
	return (page_down(r->job.off + PAGE - 1));
}

static uint64_t
direct_to(const struct read_job *r)
{
	return (page_down(r->job.off + r->job.len));
}

static char *
place_of(const struct read_job *r, uint64_t off)
{
	return (r->shm->map + (off - page_down(r->job.off)));
}

void
linux_aio_log_fallback(enum reason why, int err)
{
	static bool said[REASONS];
	static const char *const text[REASONS] = {
		[R_FOREIGN] = "a file system not known to read asynchronously with O_DIRECT",
		[R_REFUSED] = "O_DIRECT is refused",
		[R_MEMORY] = "no shared memory, or slow clients hold all of it",
	};

	if (__atomic_exchange_n(&said[why], true, __ATOMIC_RELAXED))
		return;
	log_event(LOG_WARN, NULL, "linux-aio.fallback", LF_STR("why", text[why]),
	    LF_ERR("error", err), LF_STR("then", "the read pool"));
}

/* ---------------------------------------------------------------- in a thread */

/* Opens the file again, for one request, which holds this descriptor.  (That takes 5 us.  A second
 * descriptor for each file would double those of all open files.) */
static int
direct_open(struct read_job *r)
{
	int noatime, fd = r->job.file->fd;
	struct statfs fs;
	char path[32];

	if (fstatfs(fd, &fs) < 0 ||
	    (fs.f_type != EXT4_SUPER_MAGIC && fs.f_type != XFS_SUPER_MAGIC)) {
		r->why = R_FOREIGN;
		r->err = -EOPNOTSUPP;
		return (-1);
	}
	noatime = fcntl(fd, F_GETFL) & O_NOATIME;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOCTTY | noatime);
	if (fd < 0) {
		r->why = R_REFUSED;
		r->err = -errno;
	}
	return (fd);
}

/* False: this read cannot be submitted to the kernel. */
static bool
submit(struct read_job *r)
{
	uint64_t from = direct_from(r), to = direct_to(r);
	struct iocb *cb = &r->cb;
	int fd, n;

	if (r->no_direct || from >= to || (fd = direct_open(r)) < 0)
		return (false);
	io_prep_pread(cb, fd, place_of(r, from), to - from, (long long)from);
	io_set_eventfd(cb, r->la->eventfd);
	cb->data = r;
	n = io_submit(r->la->ctx, 1, &cb);
	if (n != 1) {
		r->why = R_REFUSED;
		r->err = n;
	}
	close(fd);
	return (n == 1);
}

static int64_t
read_part(const struct read_job *r, uint64_t from, uint64_t to)
{
	if (from >= to)
		return (0);
	return (io_read_window(r->job.file->fd, place_of(r, from), (uint32_t)(to - from), from, 0));
}

static void
fill(struct read_job *r)
{
	uint64_t off = r->job.off, end = off + r->job.len;

	r->submitted = false;
	if (shm_renew(r->shm, r->la->shm.size) != 0) {
		r->head = -ENOMEM;
		return;
	}
	r->submitted = submit(r);
	r->head = read_part(r, off, r->submitted ? direct_from(r) : end);
	r->tail = r->submitted ? read_part(r, direct_to(r), end) : 0;
}

static void
fill_run(struct io_job *j)
{
	struct read_job *r = container_of(j, struct aio_fill, job)->read;
	struct linux_aio *la = r->la;

	fill(r);
	pthread_mutex_lock(&la->lock);
	list_add_tail(&la->filled, &r->back);
	io_ring(la->eventfd); /* with the lock: the loop may end as soon as it has this one */
	pthread_mutex_unlock(&la->lock);
}

/* ---------------------------------------------------------------- end of a read */

static int
fill_start(struct read_job *r)
{
	struct aio_fill *f = malloc(sizeof(*f));

	if (f == NULL)
		return (-ENOMEM);
	io_job_init(&f->job, r->la->io, NULL);
	f->job.run = fill_run;
	f->job.lane = LANE_READ;
	f->job.dev = r->job.dev;
	f->job.turn.client = r->job.turn.client;
	f->read = r;
	r->no_direct = r->job.file->no_direct;
	r->why = R_NONE;
	r->err = 0;
	r->parts = 2;
	return (io_job_push(&f->job));
}

void
linux_aio_read_start(struct io_async *async, struct io_job *j)
{
	struct read_job *r = container_of(j, struct read_job, job);
	int err;

	err = shm_get(&r->la->shm, &r->shm);
	if (err == 0)
		err = fill_start(r);
	if (err != 0)
		io_async_done(async, j, err);
}

static int64_t
bytes_read(const struct read_job *r)
{
	uint64_t from = direct_from(r), to = direct_to(r);
	int64_t n = r->head;

	if (!r->submitted || n != (int64_t)(from - r->job.off))
		return (n);
	if (r->direct < 0)
		return (n > 0 ? n : r->direct);
	n += r->direct;
	return (r->direct == (int64_t)(to - from) && r->tail > 0 ? n + r->tail : n);
}

static void
refused(struct io_file *f, enum reason why, int err)
{
	/* other errors go away, such as a lack of descriptors */
	if (err == -EINVAL || err == -EOPNOTSUPP)
		f->no_direct = true;
	linux_aio_log_fallback(why, err);
}

static void
part_back(struct read_job *r)
{
	int err;

	if (--r->parts > 0)
		return;
	if (r->submitted && r->direct == -EINVAL) { /* some file systems refuse only now */
		refused(r->job.file, R_REFUSED, -EINVAL);
		err = fill_start(r);
		if (err != 0)
			io_async_done(&r->la->async, &r->job, err);
		return;
	}
	io_async_done(&r->la->async, &r->job, bytes_read(r));
}

static void
threads_back(struct linux_aio *la)
{
	struct read_job *r;
	struct list back, *l;

	list_init(&back);
	pthread_mutex_lock(&la->lock);
	list_splice_tail(&back, &la->filled);
	pthread_mutex_unlock(&la->lock);
	while ((l = list_pop(&back)) != NULL) {
		r = list_entry(l, struct read_job, back);
		if (r->why != R_NONE)
			refused(r->job.file, r->why, r->err);
		if (!r->submitted)
			r->parts--;
		part_back(r);
	}
}

static void
kernel_back(struct linux_aio *la)
{
	struct timespec none = { 0 };
	struct io_event ev[EVENTS];
	struct read_job *r;
	int i, n;

	while ((n = io_getevents(la->ctx, 0, EVENTS, ev, &none)) > 0) {
		for (i = 0; i < n; i++) {
			r = ev[i].data;
			r->direct = (long)ev[i].res;
			part_back(r);
		}
	}
}

void
linux_aio_reads_back(struct io_watch *w)
{
	struct linux_aio *la = container_of(w, struct linux_aio, watch);

	threads_back(la);
	kernel_back(la);
}
