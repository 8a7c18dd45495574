/* io/file/sendfile.c -- linux-sendfile, adaptive: sendfile(2) from the loop, but only what is in memory.
 *
 *   known resident ----------------------------------> sendfile on the loop
 *   not known ---> a thread reads the window --------> sendfile on the loop
 *                  (into a scratch buffer: it is the page cache that counts)
 *
 * sendfile(2) has no NOWAIT, and a socket that is full does not help: it reads before it looks at the
 * socket.  While one window is sent the next is read ahead; with adaptive also those behind it, up to IO_AHEAD of a file,
 * by threads that would have nothing to do.
 */
#include <errno.h>
#include <sys/sendfile.h>
#include <unistd.h>
#include "io/engine.h"
#include "io/disk/job.h"

/* True: the op has its result.  False: the socket is full. */
static bool
send_now(struct io_op *op, uint64_t len)
{
	off_t off = (off_t)op->file.off;
	int err = op->file.goes_on ? io_file_look(op->file.file) : 0;
	ssize_t n;

	if (err != 0) {
		io_complete(op, err);
		return (true);
	}
	do
		n = sendfile(op->sock->fd, op->file.file->fd, &off, len);
	while (n < 0 && errno == EINTR);
	/* Unlike a short send, a short count may also mean that the file ends or cannot be read further,
	 * which raises no edge: only EAGAIN says that the socket is full. */
	if (n < 0 && errno == EAGAIN) {
		op->sock->hints &= (uint8_t)~SOCK_WRITABLE;
		return (false);
	}
	if (n > 0 && op->file.len > IO_LONG_SEND)
		op->io->moved += (uint64_t)n;
	io_complete_next(op, n < 0 ? -errno : n);
	return (true);
}

static void
warm_run(struct io_job *j)
{
	j->res = io_read_window(j->file->fd, j->buf, j->len, j->off, 0);
}

static struct io_job **
ahead_find(struct io_file *f, const struct io_job *j)
{
	unsigned i;

	for (i = 0; i < IO_AHEAD; i++) {
		if (f->ahead[i] == j)
			return (&f->ahead[i]);
	}
	return (NULL);
}

static void
ahead_forget(const struct io_job *j)
{
	struct io_job **place = ahead_find(j->file, j);

	if (place != NULL)
		*place = NULL;
}

/* The read that will bring this byte. */
static struct io_job *
ahead_of(const struct io_file *f, uint64_t off)
{
	unsigned i;

	for (i = 0; i < IO_AHEAD; i++) {
		if (f->ahead[i] != NULL && f->ahead[i]->off <= off && off < f->ahead[i]->off + f->ahead[i]->len)
			return (f->ahead[i]);
	}
	return (NULL);
}

/* No byte behind those that were read: where the disk failed it would fail again, and keep the loop waiting. */
static void
send_read(struct io *io, struct io_op *op, const struct io_job *j)
{
	uint64_t end = j->off + (uint64_t)j->res, room = end - op->file.off;

	op->at.handed = clock_mono_ns();
	if (op->file.off >= end && op->file.off == j->off)
		io_complete(op, 0); /* the end of the file */
	else if (op->file.off >= end)
		io->backend->send(io, io->backend_state, op); /* not what it had joined this read for: one of its own */
	else if ((op->sock->hints & SOCK_WRITABLE) == 0 || !send_now(op, op->file.len < room ? op->file.len : room))
		io->calls->park(io, op);
}

static void
warm_finish(struct io_job *j)
{
	struct io *io = io_port_loop(j->port);
	struct io_op *op = j->op;

	ahead_forget(j);
	if (j->res > 0)
		io_file_proved(j->file, j->off, (uint64_t)j->res);
	if (op != NULL && j->res < 0)
		io_complete(op, j->res);
	else if (op != NULL)
		send_read(io, op, j);
	io_job_free(io, j);
}

static struct io_job *
warm_job(struct io *io, struct io_file *f, uint64_t off, uint64_t len)
{
	uint64_t room = IO_WINDOW - off % IO_WINDOW; /* whole windows, so that equal readers meet */
	struct io_job *j = io_job_new(io, NULL, NULL);

	if (j == NULL)
		return (NULL);
	j->buf = io_window_get(io);
	if (j->buf == NULL) {
		io_job_free(io, j);
		return (NULL);
	}
	j->run = warm_run;
	j->finish = warm_finish;
	j->file = io_file_ref(f);
	j->dev = io_file_dev(f);
	j->off = off;
	j->len = (uint32_t)(len < room ? len : room);
	return (j);
}

/* What was there lately is read again by a thread that has no cold windows to read. */
static int
bring_in(struct io *io, struct io_job *j, io_push_fn *push)
{
	enum io_lane lane = io_file_read_lane(j->file, j->off, j->len);

	return (lane == LANE_READ ? push(io, j) : io_job_push(io, j, lane));
}

/* Fire and forget; if there is no memory or no place in the queue the window is read when its turn comes. */
static void
read_window_ahead(struct io *io, const struct io_op *op, uint64_t off, uint64_t len, io_push_fn *push)
{
	struct io_file *f = op->file.file;
	struct io_job **place = ahead_find(f, NULL), *j;

	if (place == NULL || ahead_of(f, off) != NULL)
		return;
	/* All of it: a window that is there in part is best read at once. */
	if (io_file_resident(f, off, len) == len)
		return;
	j = warm_job(io, f, off, len);
	if (j == NULL)
		return;
	j->turn.client = op->client;
	*place = j; /* before it is pushed: a ring that takes nothing ends it at once, and it leaves its place then */
	if (bring_in(io, j, push) != 0) {
		*place = NULL;
		io_job_free(io, j);
		return;
	}
	io_count_read(io, true);
}

/* The next window; and those behind it if there are threads with nothing to do. */
static void
read_ahead(struct io *io, const struct io_op *op, uint64_t off, uint64_t end, const struct io_reader *reader)
{
	uint64_t size = op->file.file->size, next;
	io_push_fn *push = reader->push;
	unsigned i;

	for (i = 0; i < IO_AHEAD && off < size && off < end && push != NULL; i++, off = next) {
		next = (off / IO_WINDOW + 1) * IO_WINDOW;
		next = next < size ? next : size;
		read_window_ahead(io, op, off, next - off, push);
		push = reader->spare;
	}
}

/* The window that is being read ahead is the one wanted now: wait for that. */
static bool
join_ahead(struct io_op *op)
{
	struct io_job *j = ahead_of(op->file.file, op->file.off);

	if (j == NULL)
		return (false);
	if (op->file.off + op->file.len > j->off + j->len)
		op->file.len = (uint32_t)(j->off + j->len - op->file.off);
	ahead_forget(j); /* another one may be read ahead now */
	j->op = op;
	io_job_wait(op, j);
	return (true);
}

static void
warm_first(struct io *io, struct io_op *op, io_push_fn *push)
{
	struct io_job *j;
	int err;

	if (join_ahead(op))
		return;
	j = warm_job(io, op->file.file, op->file.off, op->file.len);
	if (j == NULL) {
		io_complete(op, -ENOMEM);
		return;
	}
	j->turn.client = op->client;
	j->op = op;
	io_count_read(io, true);
	io_job_wait(op, j);
	err = bring_in(io, j, push);
	if (err != 0)
		io_job_refused(op, j, err);
}

/* At submit, and again when the socket of a parked op has room. */
void
io_send_warm(struct io *io, struct io_op *op, const struct io_reader *reader)
{
	struct io_file *f = op->file.file;
	uint64_t off = op->file.off, len = op->file.len, n;
	uint64_t end = len < IO_SEND_FILE_MAX ? off + len : f->size; /* of the longest op: more will be wanted */

	n = io_file_resident(f, off, len);
	if (n == 0) {
		warm_first(io, op, reader->push);
		n = IO_WINDOW - off % IO_WINDOW;
	} else if ((op->sock->hints & SOCK_WRITABLE) != 0 && send_now(op, n)) {
		io_count_read(io, false);
	} else {
		io->calls->park(io, op);
	}
	read_ahead(io, op, off + n, end, reader); /* more is wanted than that: have it ready by then */
}

static void
sendfile_send(struct io *io, void *state, struct io_op *op)
{
	static const struct io_reader reader = {.push = io_push_read};

	io_send_warm(io, op, &reader);
}

static void
adaptive_send(struct io *io, void *state, struct io_op *op)
{
	static const struct io_reader reader = {.push = io_push_read, .spare = io_push_spare};

	io_send_warm(io, op, &reader);
}

static void
sendfile_read(struct io *io, void *state, struct io_op *op)
{
	io_read_cached(op, io_push_read);
}

const struct file_backend file_linux_sendfile = {
	.name = "linux-sendfile",
	.doc = "sendfile(2) of what is in memory; the read pool brings in what is not",
	.tag = "network_linux_sendfile.c.78:",
	.send_file = true, .counts = FILE_COUNTS(linux_sendfile),
	.read = sendfile_read, .send = sendfile_send,
};

const struct file_backend file_adaptive = {
	.name = "adaptive",
	.doc = "sendfile(2) of what is in memory; the read pool brings in what is not, up to 1 MiB ahead while it has nothing else to do",
	.tag = "network_adaptive.c.78:",
	.send_file = true, .counts = FILE_COUNTS(adaptive),
	.read = sendfile_read, .send = adaptive_send,
};
