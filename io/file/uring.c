/* io/file/uring.c -- io-uring: the kernel looks up names and reads; the loop sends bytes in memory.
 *
 *   OPEN, STAT --> queue "meta" --.                       .--> openat2, then statx: io/disk/open.h
 *                                  >-- ring -- workers --<
 *   cold window -> queue "data" --'   one call a round    `--> read, 128 KiB each at the same time
 *   hot window --> the loop copies it, or has it (io/hotset.h)
 *
 * Every request has IOSQE_ASYNC, so that a worker of the kernel does it.  Without the flag the
 * kernel tries it during the submit: openat2 of a cached name sleeps on FUSE and NFS (17 ms of 20
 * were seen), and a read may have to fetch the block map of a file first.
 *
 * Workers belong to the thread that submits, not to the ring, so a second ring gains nothing.
 * Measured on Linux 6.18, 16 opens and then 16 reads of 200 ms, a limit of 4 workers for files:
 *
 *   reads are submitted      the last open, the last read came after
 *   plain, same ring                   802 ms    801 ms
 *   plain, a ring of their own         808 ms    802 ms
 *   IOSQE_ASYNC, same ring             810 ms    201 ms
 *   IOSQE_ASYNC, a ring of their own   802 ms    210 ms
 *
 * With the flag, the other class of workers (for sockets) does the reads, because the kernel
 * has not inspected their file yet.  So that nothing depends on this, each class may have as many
 * workers as both queues may have requests in flight.  The queues keep opens from starving reads.
 * The limits belong to the ring and apply to every thread that submits, because the thread that
 * makes a loop need not be the one that runs it.  For the same reason no flag ties the ring to a
 * thread.
 *
 * Re-checks of files in demand go to their own threads: the kernel takes requests first come, first
 * served.
 */
#include <errno.h>
#include <stdlib.h>
#include "io/engine.h"
#include "io/file/uring_setup.h"
#include "io/disk/open.h"

#define PARTS_MAX     (IO_CHUNK_MAX / URING_PART)
#define REAP          64u /* results taken at a time */
#define CLOSE_WAIT_NS (100 * NS_PER_MS)

/* The low bits of user_data, next to the job: the part of a read, or the step of a look-up. */
enum { STEP_OPEN, STEP_STATX };
#define STEP_BITS 15ull
_Static_assert(PARTS_MAX <= STEP_BITS && PARTS_MAX <= 8, "io_job.flying has eight bits");

struct uring {
	struct io_async meta, data;
	struct io_watch watch;
	struct io *io;
	struct uring *next_left;
	bool leaving; /* no more requests */
	struct io_uring ring;
};

/* ---------------------------------------------------------------- into the ring */

/* A free request of the ring.  NULL: the kernel takes no more requests now. */
static struct io_uring_sqe *
next_request(struct uring *u)
{
	struct io_uring_sqe *sqe;

	if (u->leaving)
		return (NULL);
	sqe = io_uring_get_sqe(&u->ring);
	if (sqe != NULL)
		return (sqe);
	io_uring_submit(&u->ring);
	return (io_uring_get_sqe(&u->ring));
}

static void
request(struct io_uring_sqe *sqe, struct io_job *j, unsigned step)
{
	sqe->flags |= IOSQE_ASYNC;
	io_uring_sqe_set_data64(sqe, (uintptr_t)j | step);
	j->flying |= (uint8_t)(1u << step);
}

static void
uring_flush(struct io *io)
{
	struct uring *u = io->backend_state;

	if (io_uring_sq_ready(&u->ring) != 0 && io_uring_submit(&u->ring) < 0)
		/* no memory, or too many unread results: next round */
		io_wake(io);
}

/* Tries to cancel: a hung request is interrupted, a queued one is not done.  The job ends as usual,
 * with its results. */
static void
abandoned(struct io_op *op, struct io_job *j)
{
	struct uring *u = op->io->backend_state;
	struct io_uring_sqe *sqe;
	unsigned step;

	for (step = 0; step < PARTS_MAX; step++) {
		if ((j->flying & 1u << step) == 0 || (sqe = next_request(u)) == NULL)
			continue;
		io_uring_prep_cancel64(sqe, (uintptr_t)j | step, 0);
		io_uring_sqe_set_data64(sqe, 0);
	}
}

/* ---------------------------------------------------------------- look-ups */

/* A free request for the look-up.  NULL: none is free, and the look-up has ended with -EAGAIN. */
static struct io_uring_sqe *
look_request(struct uring *u, struct io_job *j)
{
	struct io_uring_sqe *sqe = next_request(u);

	if (sqe == NULL)
		io_async_done(j->async, j, -EAGAIN);
	return (sqe);
}

static void
look_open(struct uring *u, struct io_job *j)
{
	struct io_uring_sqe *sqe = look_request(u, j);

	if (sqe == NULL)
		return;
	io_uring_prep_openat2(sqe, j->root, io_open_path(j), &j->how);
	request(sqe, j, STEP_OPEN);
}

static void
look_statx(struct uring *u, struct io_job *j)
{
	struct io_uring_sqe *sqe = look_request(u, j);

	if (sqe == NULL)
		return;
	io_uring_prep_statx(sqe, j->fd, "", AT_EMPTY_PATH, IO_OPEN_FACTS, &j->stx);
	request(sqe, j, STEP_STATX);
}

static void
look_failed(struct uring *u, struct io_job *j, int err)
{
	switch (io_open_failed(j, err)) {
	case OPEN_AGAIN: look_open(u, j); break;
	case OPEN_MOVES: io_async_move(&u->meta, j); break;
	case OPEN_WALKS: io_async_leave(&u->meta, j); break;
	case OPEN_FAILED: io_async_done(j->async, j, j->res); break;
	}
}

static void
look_seen(struct uring *u, struct io_job *j, int err)
{
	int fd = j->fd;

	j->fd = -1;
	if (!io_open_seen(j, fd, err))
		u->io->calls->close_file(u->io, fd, j->dev);
	io_async_done(j->async, j, j->res);
}

static void
look_result(struct uring *u, struct io_job *j, unsigned step, int res)
{
	if (step == STEP_OPEN && res >= 0)
		j->fd = res;
	if (j->op == NULL)
		/* nobody waits: the file is closed with the job */
		io_async_done(j->async, j, -ECANCELED);
	else if (step == STEP_STATX)
		look_seen(u, j, res);
	else if (res < 0)
		look_failed(u, j, res);
	else
		look_statx(u, j);
}

static void
meta_start(struct io_async *a, struct io_job *j)
{
	j->abandoned = abandoned;
	look_open(container_of(a, struct uring, meta), j);
}

/* ---------------------------------------------------------------- windows */

static uint32_t
part_len(const struct io_job *j, unsigned part)
{
	uint32_t left = j->len - part * URING_PART;

	return (left < URING_PART ? left : URING_PART);
}

/* j->res: end of the whole part of the window.  A failed part ends it there; only a failed first
 * part makes the read fail. */
static void
part_read(struct io_job *j, unsigned part, int res)
{
	int64_t whole =
	    res < 0 && part == 0 ? res : part * (int64_t)URING_PART + (res > 0 ? res : 0);

	if ((res < 0 || (uint32_t)res < part_len(j, part)) && whole < j->res)
		j->res = whole;
}

static void
part_start(struct uring *u, struct io_job *j, unsigned part)
{
	struct io_uring_sqe *sqe = next_request(u);
	uint64_t at = part * (uint64_t)URING_PART;

	if (sqe == NULL) {
		part_read(j, part, -EAGAIN);
		return;
	}
	io_uring_prep_read(sqe, j->file->fd, j->buf + at, part_len(j, part), j->off + at);
	request(sqe, j, part);
}

static void
data_start(struct io_async *a, struct io_job *j)
{
	struct uring *u = container_of(a, struct uring, data);
	unsigned part;

	if (j->buf == NULL)
		j->buf = io_window_get(u->io);
	if (j->buf == NULL) {
		io_async_done(j->async, j, -ENOMEM);
		return;
	}
	j->abandoned = abandoned;
	j->res = j->len;
	for (part = 0; part * URING_PART < j->len; part++)
		part_start(u, j, part);
	if (j->flying == 0)
		io_async_done(j->async, j, j->res);
}

static void
part_result(struct uring *u, struct io_job *j, unsigned part, int res)
{
	if (res == -EINTR && j->op != NULL)
		part_start(u, j, part);
	else
		part_read(j, part, res);
	if (j->flying == 0)
		io_async_done(j->async, j, j->res);
}

/* ---------------------------------------------------------------- out of the ring */

static void
result(struct uring *u, uint64_t data, int res)
{
	struct io_job *j = (struct io_job *)(uintptr_t)(data & ~STEP_BITS);
	unsigned step = (unsigned)(data & STEP_BITS);

	if (j == NULL)
		return; /* result of a cancel */
	j->flying &= (uint8_t) ~(1u << step);
	if (j->async == &u->meta)
		look_result(u, j, step, res);
	else
		part_result(u, j, step, res);
}

/* Also submits requests that found no space, if that ever happens. */
static void
results(struct uring *u)
{
	struct io_uring_cqe *cqe[REAP];
	unsigned i, n;

	while ((n = io_uring_peek_batch_cqe(&u->ring, cqe, REAP)) != 0) {
		for (i = 0; i < n; i++)
			result(u, cqe[i]->user_data, cqe[i]->res);
		io_uring_cq_advance(&u->ring, n);
	}
}

static void
ring_ready(struct io_watch *w)
{
	results(container_of(w, struct uring, watch));
}

/* ---------------------------------------------------------------- the beginning */

static int
uring_open(struct io *io, const struct io_conf *conf, const char **why)
{
	struct uring *u = calloc(1, sizeof(*u));
	unsigned parts = uring_parts(conf), looks, reads;
	int err;

	if (u == NULL) {
		*why = uring_why(-ENOMEM);
		return (-ENOMEM);
	}
	u->io = io;
	u->watch.ready = ring_ready;
	io_async_init(&u->meta, conf, conf->stat_jobs, URING_WORKERS_MAX / 2, meta_start);
	looks = u->meta.queue.total;
	io_async_init(&u->data, conf, conf->read_jobs, (URING_WORKERS_MAX - looks) / parts,
	    data_start);
	reads = u->data.queue.total;
	err = uring_setup(&u->ring, looks + reads * parts, why);
	if (err != 0) {
		free(u);
		return (err);
	}
	err = io->calls->watch(io, u->ring.ring_fd, &u->watch);
	if (err != 0) {
		*why = uring_why(err);
		io_uring_queue_exit(&u->ring);
		free(u);
		return (err);
	}
	io->looks = looks != 0 ? &u->meta : NULL;
	io->reads = reads != 0 ? &u->data : NULL;
	io->backend_state = u;
	return (0);
}

/* ---------------------------------------------------------------- the end */

/* Rings with hung requests: their workers may still write to memory of the jobs.  The list keeps
 * them reachable. */
static struct uring *left_behind;

static unsigned
running(const struct uring *u)
{
	return (u->meta.queue.running + u->data.queue.running);
}

static void
put_waiting_away(struct uring *u, struct io_async *a)
{
	struct io_job *j;

	while ((j = queue_pop_any(&a->queue)) != NULL)
		io_job_free(j);
}

/* Everything that can be interrupted ends at once. */
static void
interrupt_all(struct uring *u)
{
	struct __kernel_timespec ts = { .tv_nsec = CLOSE_WAIT_NS };
	uint64_t until = clock_mono_ns() + CLOSE_WAIT_NS;
	struct io_uring_sqe *sqe = next_request(u);
	struct io_uring_cqe *cqe;

	if (sqe != NULL) {
		io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
		io_uring_sqe_set_data64(sqe, 0);
	}
	u->leaving = true;
	io_uring_submit(&u->ring);
	while (running(u) != 0 && clock_mono_ns() < until) {
		if (io_uring_wait_cqe_timeout(&u->ring, &cqe, &ts) == 0)
			results(u);
	}
}

/* A thread that ends waits for its workers in exit(2), uninterruptibly, and a thread that joins it
 * waits as long.  The workers are interrupted there too, but a file system may ignore all signals
 * but SIGKILL (NFS, most of FUSE), which comes with the end of the process. */
static bool
uring_leave(struct io *io)
{
	struct uring *u = io->backend_state;

	if (running(u) != 0)
		interrupt_all(u);
	return (running(u) == 0);
}

static void
uring_close(struct io *io)
{
	struct uring *u = io->backend_state;

	put_waiting_away(u, &u->meta);
	put_waiting_away(u, &u->data);
	results(u);
	if (running(u) != 0 && !u->leaving)
		interrupt_all(u);
	if (running(u) != 0) {
		u->next_left = __atomic_exchange_n(&left_behind, u, __ATOMIC_ACQ_REL);
		return;
	}
	(void)io_async_fini(&u->meta);
	(void)io_async_fini(&u->data);
	io->calls->unwatch(io, &u->watch);
	io_uring_queue_exit(&u->ring);
	free(u);
}

extern const struct file_backend file_adaptive;

const struct file_backend file_io_uring = {
	.name = "io-uring",
	.doc = "workers of the kernel, by io_uring(7), look up names and read bytes that are not "
	       "in memory; then the loop sends them from the server's memory",
	.waits = IO_LOOK_WAITS,
	.tag = "network_io_uring.c.78:",
	.holds = true,
	.counts = FILE_COUNTS(io_uring),
	.instead = &file_adaptive,
	.open = uring_open,
	.close = uring_close,
	.read = io_read_cached,
	.flush = uring_flush,
	.leave = uring_leave,
};
