/* io/file/linux_aio.c -- linux-aio-sendfile: the disk writes into shared memory, which sendfile(2)
 * sends.
 *
 *   loop                       read pool                               kernel
 *   queue --> shm_get() -----> shm_renew(), io_submit(O_DIRECT) -----> disk --> shared memory
 *                              pread(2) of the ends                      |
 *                  <-- eventfd -----'                    <-- eventfd ----'
 *   sendfile(2) from shared memory, in as many calls as the socket wants; sock->kept meanwhile
 *
 * io_submit() takes the pages of the buffer (690 us for fresh ones of 1 MiB), and sleeps if the
 * block map of the file is not in memory: so a thread calls it.  O_DIRECT needs whole pages; bytes
 * before the first and after the last page are read through the ordinary descriptor.
 *
 * Only the file systems in linux_aio_read.c are known to have asynchronous O_DIRECT.  Elsewhere,
 * and if a file refuses it, a thread reads the whole window.  FUSE is not listed, because a
 * process cannot end before its requests (exit_aio), and a hung daemon never ends them.  Without
 * shared memory the read pool sends the window.
 *
 * libaio makes the system calls.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <unistd.h>
#include "io/file/linux_aio.h"
#include "io/proof.h"

#define CHUNK (1u << 20)
/* Windows of a loop, in flight or kept for slow clients; if all are in use, the read pool sends. */
#define WINDOWS 96u

struct free_job {
	struct io_job job;
	struct shm *shm;
	uint32_t size;
};

static void
free_run(struct io_job *j)
{
	struct free_job *f = container_of(j, struct free_job, job);

	shm_free(f->shm, f->size);
}

/* In a thread if possible. */
static void
window_free(struct linux_aio *la, struct shm *shm)
{
	struct free_job *f = malloc(sizeof(*f));

	if (f != NULL) {
		io_job_init(&f->job, la->io, NULL);
		f->job.run = free_run;
		f->shm = shm;
		f->size = la->shm.size;
		if (io_job_push(&f->job) == 0)
			return;
	}
	shm_free(shm, la->shm.size);
}

static void
read_free(struct read_job *r)
{
	if (r->shm != NULL && !shm_put(&r->la->shm, r->shm))
		window_free(r->la, r->shm);
	io_job_free(&r->job);
}

static void
linux_drop(struct io_sock *s)
{
	struct read_job *r = s->kept;

	s->kept = NULL;
	read_free(r);
}

static void
send_kept(struct io *io, struct io_op *op)
{
	struct read_job *r = op->sock->kept;
	uint64_t left = (uint64_t)r->job.res - r->sent;
	off_t at = (off_t)(r->job.off % PAGE + r->sent);
	ssize_t n;

	do
		n = sendfile(op->sock->fd, r->shm->fd, &at,
		    left < op->file.len ? left : op->file.len);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN) {
		op->sock->hints &= (uint8_t)~SOCK_WRITABLE;
		io->calls->park(io, op);
		return;
	}
	io_complete(op, n < 0 ? -errno : n);
	if (n > 0) {
		io_proof_note(op->file.proof, op->file.file, op->file.off,
		    r->shm->map + (r->job.off % PAGE + r->sent), (size_t)n);
		io_moved(io, op->file.len, (uint64_t)n);
		r->sent += (uint32_t)n;
	}
	if (r->sent == r->job.res)
		linux_drop(op->sock);
}

/* True if there was no window, or no memory for it: io_submit() and pread() report that.  (-EAGAIN
 * without a window: the read lost its place in the queue.) */
static bool
no_memory(const struct read_job *r, int64_t res)
{
	return ((r->shm == NULL && res != -EAGAIN) || res == -ENOMEM || res == -ENOSPC ||
		res == -EFAULT);
}

/* The read brought no bytes, or its op has ended. */
static void
read_failed(struct read_job *r, struct io_op *op, int64_t res)
{
	bool memory = no_memory(r, res);

	read_free(r);
	if (op == NULL)
		return;
	if (!memory) {
		io_complete(op, res);
		return;
	}
	linux_aio_log_fallback(R_MEMORY, (int)res);
	io_send_pool(op, LANE_READ, false);
}

static void
read_finish(struct io_job *j)
{
	struct read_job *r = container_of(j, struct read_job, job);
	struct io *io = r->la->io;
	struct io_op *op = j->op;
	int err = 0;

	if (j->res > 0)
		io_count_read(io, r->submitted);
	/* bytes in shared memory do not change any more */
	if (op != NULL && j->res > 0 && op->file.goes_on)
		err = io_proof_look(op->file.proof, j->file);
	if (err == -EAGAIN) {
		read_free(r);
		io_send_pool(op, LANE_READ, false); /* a thread compares, reads and sends */
		return;
	}
	if (err != 0)
		j->res = err;
	if (op == NULL || j->res <= 0) {
		read_failed(r, op, j->res);
		return;
	}
	op->at.handed = clock_mono_ns();
	op->sock->kept = r;
	j->op = NULL;
	if (op->sock->hints & SOCK_WRITABLE)
		send_kept(io, op);
	else
		io->calls->park(io, op);
}

/* Windows end at a page, so that only the first of a range has a head and only the last a tail. */
static uint32_t
window_of(const struct io_op *op)
{
	uint64_t off = op->file.off, end = page_down(off + io_chunk(op->io));

	if (op->file.len <= io_chunk(op->io) || end <= off)
		return (op->file.len < io_chunk(op->io) ? op->file.len : io_chunk(op->io));
	return ((uint32_t)(end - off));
}

static struct read_job *
read_job(struct linux_aio *la, struct io_op *op)
{
	struct read_job *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return (NULL);
	io_job_init(&r->job, la->io, op);
	list_init(&r->back);
	r->job.finish = read_finish;
	r->job.async = &la->async;
	io_job_set_file(&r->job, op->file.file, op->file.off, window_of(op));
	r->la = la;
	return (r);
}

static void
read_window(struct linux_aio *la, struct io_op *op)
{
	struct read_job *r = read_job(la, op);

	if (r == NULL)
		io_complete(op, -ENOMEM);
	else
		io_job_start(op, &r->job);
}

static bool
continues(const struct read_job *r, const struct io_op *op)
{
	return (r->job.file == op->file.file && r->job.off + r->sent == op->file.off);
}

static void
linux_send(struct io_op *op)
{
	struct io_sock *s = op->sock;
	struct io *io = op->io;

	if (s->kept != NULL && !continues(s->kept, op))
		linux_drop(s);
	if ((s->hints & SOCK_WRITABLE) == 0)
		io->calls->park(io, op);
	else if (s->kept != NULL)
		send_kept(io, op);
	else
		read_window(io->backend_state, op);
}

/* ---------------------------------------------------------------- open and close */

static int
context_open(struct linux_aio *la, struct io *io, unsigned jobs, const char **why)
{
	int err;

	la->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (la->eventfd < 0) {
		*why = "no descriptor for a loop";
		return (-errno);
	}
	err = io_setup((int)jobs, &la->ctx);
	if (err != 0) {
		*why = err == -EAGAIN ? "all slots of /proc/sys/fs/aio-max-nr are taken"
				      : "this kernel refuses aio";
		return (err);
	}
	la->watch.ready = linux_aio_reads_back;
	err = io->calls->watch(io, la->eventfd, &la->watch);
	if (err != 0)
		*why = "the loop takes no more descriptors";
	return (err);
}

static void
state_free(struct linux_aio *la)
{
	pthread_mutex_lock(&la->lock); /* until the thread of the last read has signalled */
	pthread_mutex_unlock(&la->lock);
	la->io->calls->unwatch(la->io, &la->watch);
	if (la->ctx != NULL)
		io_destroy(la->ctx); /* nothing is in flight, so it does not wait for a disk */
	if (la->eventfd >= 0)
		close(la->eventfd);
	shm_pool_free(&la->shm);
	pthread_mutex_destroy(&la->lock);
	free(la);
}

static int
linux_open(struct io *io, const struct io_conf *conf, const char **why)
{
	struct linux_aio *la = calloc(1, sizeof(*la));
	uint32_t chunk = conf->chunk != 0 ? conf->chunk : CHUNK;
	int err;

	if (la == NULL) {
		*why = "no memory for a loop";
		return (-ENOMEM);
	}
	la->io = io;
	list_init(&la->filled);
	pthread_mutex_init(&la->lock, NULL);
	shm_pool_init(&la->shm,
	    (uint32_t)page_down((chunk > IO_CHUNK_MIN ? chunk : IO_CHUNK_MIN) + 2 * PAGE), WINDOWS);
	io_async_init(&la->async, conf, conf->read_jobs, UINT_MAX, linux_aio_read_start);
	err = context_open(la, io, la->async.queue.total, why);
	if (err != 0) {
		state_free(la);
		return (err);
	}
	io->backend_state = la;
	return (0);
}

/* Requests in flight still write to this memory, and io_destroy() would wait for them: leaves
 * both behind. */
static void
linux_close(struct io *io)
{
	struct linux_aio *la = io->backend_state;

	io_async_settle(&la->async, la->eventfd, &la->watch);
	if (io_async_fini(&la->async) == 0)
		state_free(la);
}

extern const struct file_backend file_gthread_sendfile;

const struct file_backend file_linux_aio_sendfile = {
	.name = "linux-aio-sendfile",
	.doc = "O_DIRECT reads by the kernel's aio into shared memory, then sendfile(2); bypasses "
	       "the page cache, so every request of a file reads the disk again",
	.waits = "its shared memory, if that was pushed out to swap",
	.tag = "network_linux_aio.c.78:",
	.send_file = true,
	.chunk = CHUNK,
	.counts = FILE_COUNTS(linux_aio),
	.instead = &file_gthread_sendfile,
	.open = linux_open,
	.close = linux_close,
	.read = io_read_pool,
	.send = linux_send,
	.drop = linux_drop,
};
