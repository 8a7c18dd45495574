/* io/file/uring.c -- io-uring: the kernel looks names up and reads; the loop sends what is in memory then.
 *
 *   OPEN, STAT --> queue "meta" --.                        .--> openat2, then statx: as in io/disk/open.c
 *                                  >-- ring -- workers ---<
 *   cold window -> queue "data" --'   one call a round     `--> read, 128 KiB each at the same time
 *   hot window --> sendfile(2) from the loop, as with linux-sendfile
 *
 * Every request has IOSQE_ASYNC, so that a worker of the kernel's does it: tried first where they are submitted,
 * openat2 of a cached name sleeps on FUSE and NFS (17 ms of 20 were seen), and a read may have to fetch the map of
 * a file first.
 *
 * Workers belong to the thread that submits, not to the ring, so a second ring gains nothing.  Measured on Linux 6.18, 16
 * opens and then 16 reads of 200 ms, a limit of 4 workers for files:
 *
 *   reads are submitted      the last open, the last read came after
 *   plain, same ring                   802 ms    801 ms
 *   plain, a ring of their own         808 ms    802 ms
 *   IOSQE_ASYNC, same ring             810 ms    201 ms
 *   IOSQE_ASYNC, a ring of their own   802 ms    210 ms
 *
 * With the flag reads are done by the other class of workers (that of sockets), because their file has not been looked at
 * yet.  Lest things depend on that, each class may have as many workers as both queues may have requests in flight;
 * it is the queues that keep opens from starving reads.  The limits are noted in the ring and hold for whichever
 * thread submits: a loop may be made by another than runs it.  For the same reason no flag ties the ring to a thread.
 *
 * Re-checks of files in demand go to their own threads: the kernel takes requests first come, first served.
 */
#include <errno.h>
#include <stdlib.h>
#include "io/engine.h"
#include "io/file/uring_setup.h"
#include "io/disk/open.h"

#define PARTS_MAX (IO_CHUNK_MAX / URING_PART)
#define REAP 64u            /* results looked at in one go */
#define CLOSE_WAIT_NS (100 * NS_PER_MS)

/* In the low bits of user_data, the rest is the job: which part of a read, or which step of a look-up. */
enum { STEP_OPEN, STEP_STATX };
#define STEP_BITS 15ull
_Static_assert(PARTS_MAX <= STEP_BITS && PARTS_MAX <= 8, "io_job.flying has eight bits");

struct uring {
	struct io_async meta, data;
	struct io_watch watch;
	struct io *io;
	struct uring *next_left;
	bool leaving; /* no more requests */
	bool closing; /* jobs have no port to go to */
	struct io_uring ring;
};

/* ---------------------------------------------------------------- into the ring */

/* NULL: the kernel takes no more requests just now. */
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
uring_flush(struct io *io, void *state)
{
	struct uring *u = state;

	if (io_uring_sq_ready(&u->ring) != 0 && io_uring_submit(&u->ring) < 0)
		io_wake(io); /* no memory for them, or too many results to be fetched first: next round */
}

/* A courtesy: what hangs is interrupted, what waits for a worker is not done.  The job ends as always, with its results. */
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

static void
job_ends(struct uring *u, struct io_job *j, int64_t res)
{
	if (!u->closing) {
		io_async_done(j->async, j, res);
		return;
	}
	queue_ran(&j->async->queue, j);
	io_job_free(u->io, j);
}

/* ---------------------------------------------------------------- look-ups */

static void
look_open(struct uring *u, struct io_job *j)
{
	struct io_uring_sqe *sqe = next_request(u);

	if (sqe == NULL) {
		job_ends(u, j, -EAGAIN);
		return;
	}
	io_uring_prep_openat2(sqe, j->root, io_open_path(j), &j->how);
	request(sqe, j, STEP_OPEN);
}

static void
look_statx(struct uring *u, struct io_job *j)
{
	struct io_uring_sqe *sqe = next_request(u);

	if (sqe == NULL) {
		job_ends(u, j, -EAGAIN);
		return;
	}
	io_uring_prep_statx(sqe, j->fd, "", AT_EMPTY_PATH, IO_OPEN_FACTS, &j->stx);
	request(sqe, j, STEP_STATX);
}

static void
look_failed(struct uring *u, struct io_job *j, int err)
{
	switch (io_open_failed(j, err)) {
	case OPEN_AGAIN:
		look_open(u, j);
		break;
	case OPEN_MOVES:
		io_async_move(&u->meta, j);
		break;
	case OPEN_FAILED:
		job_ends(u, j, j->res);
		break;
	}
}

static void
look_seen(struct uring *u, struct io_job *j, int err)
{
	int fd = j->fd;

	j->fd = -1;
	if (!io_open_seen(j, fd, err))
		u->io->calls->close_file(u->io, fd, j->dev);
	job_ends(u, j, j->res);
}

static void
look_result(struct uring *u, struct io_job *j, unsigned step, int res)
{
	if (step == STEP_OPEN && res >= 0)
		j->fd = res;
	if (j->op == NULL)
		job_ends(u, j, -ECANCELED); /* nobody waits: closed with the job */
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
	look_open(container_of(a, struct uring, meta), j);
}

static void
uring_look(struct io *io, void *state, struct io_op *op)
{
	struct uring *u = state;
	struct io_job *j;

	if (op->urgent || u->meta.queue.total == 0) {
		io_start_open(op);
		return;
	}
	j = io_open_job(op);
	if (j == NULL) {
		io_complete(op, -ENOMEM);
		return;
	}
	j->abandoned = abandoned;
	io_async_start(&u->meta, op, j);
}

/* ---------------------------------------------------------------- windows */

static uint32_t
part_len(const struct io_job *j, unsigned part)
{
	uint32_t left = j->len - part * URING_PART;

	return (left < URING_PART ? left : URING_PART);
}

/* j->res: how far the window is whole.  A part that failed ends it there; only the first has nothing before it. */
static void
part_read(struct io_job *j, unsigned part, int res)
{
	int64_t whole = res < 0 && part == 0 ? res : part * (int64_t)URING_PART + (res > 0 ? res : 0);

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

	j->res = j->len;
	for (part = 0; part * URING_PART < j->len; part++)
		part_start(u, j, part);
	if (j->flying == 0)
		job_ends(u, j, j->res);
}

static void
part_result(struct uring *u, struct io_job *j, unsigned part, int res)
{
	if (res == -EINTR && j->op != NULL)
		part_start(u, j, part);
	else
		part_read(j, part, res);
	if (j->flying == 0)
		job_ends(u, j, j->res);
}

static int
push_data(struct io *io, struct io_job *j)
{
	struct uring *u = io->backend_state;

	if (u->data.queue.total == 0)
		return (io_push_read(io, j));
	j->abandoned = abandoned;
	return (io_async_push(&u->data, j));
}

static void
uring_read(struct io *io, void *state, struct io_op *op)
{
	io_read_cached(op, push_data);
}

static void
uring_send(struct io *io, void *state, struct io_op *op)
{
	static const struct io_reader reader = {.push = push_data};

	io_send_warm(io, op, &reader);
}

/* ---------------------------------------------------------------- out of the ring */

static void
result(struct uring *u, uint64_t data, int res)
{
	struct io_job *j = (struct io_job *)(uintptr_t)(data & ~STEP_BITS);
	unsigned step = (unsigned)(data & STEP_BITS);

	if (j == NULL)
		return; /* of a cancel */
	j->flying &= (uint8_t)~(1u << step);
	if (j->async == &u->meta)
		look_result(u, j, step, res);
	else
		part_result(u, j, step, res);
}

/* Also asks the kernel for those that found no room, should that ever happen. */
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
uring_open(struct io *io, const struct io_conf *conf, void **state, const char **why)
{
	struct uring *u = calloc(1, sizeof(*u));
	struct io_async_conf looks, reads;
	int err;

	if (u == NULL) {
		*why = uring_why(-ENOMEM);
		return (-ENOMEM);
	}
	u->io = io;
	u->watch.ready = ring_ready;
	err = uring_setup(&u->ring, conf, &looks, &reads, why);
	if (err != 0) {
		free(u);
		return (err);
	}
	io_async_init(&u->meta, &looks, meta_start);
	io_async_init(&u->data, &reads, data_start);
	err = io->calls->watch(io, u->ring.ring_fd, &u->watch);
	if (err != 0) {
		*why = uring_why(err);
		io_uring_queue_exit(&u->ring);
		free(u);
		return (err);
	}
	*state = u;
	return (0);
}

/* ---------------------------------------------------------------- the end */

/* Rings with requests that hang: their workers may still write to what the jobs own.  A list, so that it is not lost. */
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
		io_job_free(u->io, j);
}

/* Whatever can be interrupted ends at once. */
static void
interrupt_all(struct uring *u)
{
	struct __kernel_timespec ts = {.tv_nsec = CLOSE_WAIT_NS};
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

/* A thread that ends waits for its workers in exit(2), uninterruptibly, and a thread that joins it waits with it.  They are
 * interrupted there too, but a file system may heed nothing less than SIGKILL (NFS, most of FUSE), which comes with
 * the end of the process. */
static bool
uring_leave(struct io *io, void *state)
{
	struct uring *u = state;

	if (running(u) != 0)
		interrupt_all(u);
	return (running(u) == 0);
}

static void
uring_close(struct io *io, void *state)
{
	struct uring *u = state;

	u->closing = true;
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
	.doc = "the kernel's own workers, by io_uring(7), look names up and bring in what is not in memory; then sendfile(2)",
	.tag = "network_io_uring.c.78:",
	.send_file = true, .counts = FILE_COUNTS(io_uring),
	.instead = &file_adaptive,
	.open = uring_open, .close = uring_close,
	.read = uring_read, .send = uring_send, .look = uring_look, .flush = uring_flush,
	.leave = uring_leave,
};
