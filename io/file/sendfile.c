/* io/file/sendfile.c -- linux-sendfile, adaptive: sendfile(2) from the loop, only for bytes in
 * memory.
 *
 *   known resident ----------------------------------> sendfile on the loop
 *   not known ---> a thread reads the window --------> sendfile on the loop
 *                  (into a scratch buffer, which fills the page cache)
 *
 * sendfile(2) has no NOWAIT.  It reads even when the socket is full.  While one window is sent, the
 * next is read ahead; adaptive also reads those behind it, up to IO_AHEAD windows, if threads are
 * idle.
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
	/* Unlike a short send, a short count may also mean that the file ends or cannot be read
	 * further, which raises no edge: only EAGAIN proves a full socket. */
	if (n < 0 && errno == EAGAIN) {
		op->sock->hints &= (uint8_t)~SOCK_WRITABLE;
		return (false);
	}
	if (n > 0)
		io_moved(op->io, op->file.len, (uint64_t)n);
	io_complete_next(op, n < 0 ? -errno : n);
	return (true);
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

/* The read that brings this byte. */
static struct io_job *
ahead_of(const struct io_file *f, uint64_t off)
{
	unsigned i;

	for (i = 0; i < IO_AHEAD; i++) {
		if (f->ahead[i] != NULL && f->ahead[i]->off <= off &&
		    off < f->ahead[i]->off + f->ahead[i]->len)
			return (f->ahead[i]);
	}
	return (NULL);
}

/* No byte behind the bytes that were read: where the disk failed it would fail again, and block
 * the loop. */
static void
send_read(struct io *io, struct io_op *op, const struct io_job *j)
{
	uint64_t end = j->off + (uint64_t)j->res, room = end - op->file.off;

	op->at.handed = clock_mono_ns();
	if (op->file.off >= end && op->file.off == j->off)
		io_complete(op, 0); /* the end of the file */
	else if (op->file.off >= end)
		/* not the window it had joined this read for: starts a read of its own */
		io->backend->send(op);
	else if ((op->sock->hints & SOCK_WRITABLE) == 0 ||
		 !send_now(op, op->file.len < room ? op->file.len : room))
		io->calls->park(io, op);
}

static void
warm_finish(struct io_job *j)
{
	struct io_op *op = j->op;

	ahead_forget(j);
	if (j->res > 0)
		io_file_proved(j->file, j->off, (uint64_t)j->res);
	if (op != NULL && j->res < 0)
		io_complete(op, j->res);
	else if (op != NULL)
		send_read(j->io, op, j);
	io_job_free(j);
}

static struct io_job *
warm_job(const struct io_op *op, uint64_t off, uint64_t len)
{
	/* whole windows, so that equal reads are joined */
	uint64_t room = IO_WINDOW - off % IO_WINDOW;
	struct io_job *j = io_job_new(op->io, NULL, NULL);

	if (j == NULL)
		return (NULL);
	j->run = io_warm_run;
	j->finish = warm_finish;
	j->turn.client = op->client;
	io_job_set_file(j, op->file.file, off, (uint32_t)(len < room ? len : room));
	return (j);
}

/* An idle thread reads a window again that was in memory lately. */
static int
bring_in(struct io_job *j, bool spare)
{
	j->lane = io_file_read_lane(j->file, j->off, j->len);
	if (j->lane == LANE_READ) {
		j->async = j->io->reads;
		j->spare = spare;
	}
	return (io_job_push(j));
}

/* Nobody waits for this read.  Without memory or a place in the queue, the window is read when
 * its turn comes. */
static void
read_window_ahead(const struct io_op *op, uint64_t off, uint64_t len, bool spare)
{
	struct io_file *f = op->file.file;
	struct io_job **place = ahead_find(f, NULL), *j;

	if (place == NULL || ahead_of(f, off) != NULL)
		return;
	/* all of it: a window that is only partly in memory is read at once */
	if (io_file_resident(f, off, len) == len)
		return;
	j = warm_job(op, off, len);
	if (j == NULL)
		return;
	*place = j; /* until warm_finish() */
	if (bring_in(j, spare) == 0)
		io_count_read(op->io, true);
}

/* Reads the next window, and with idle threads those behind it. */
static void
read_ahead(const struct io_op *op, uint64_t off, uint64_t end)
{
	uint64_t size = op->file.file->size, next;
	unsigned i, n = op->io->backend->spare_ahead ? IO_AHEAD : 1;

	for (i = 0; i < n && off < size && off < end; i++, off = next) {
		next = (off / IO_WINDOW + 1) * IO_WINDOW;
		next = next < size ? next : size;
		read_window_ahead(op, off, next - off, i > 0);
	}
}

/* True: the needed window is being read ahead, and the op waits for that read. */
static bool
join_ahead(struct io_op *op)
{
	struct io_job *j = ahead_of(op->file.file, op->file.off);

	if (j == NULL)
		return (false);
	if (op->file.off + op->file.len > j->off + j->len)
		op->file.len = (uint32_t)(j->off + j->len - op->file.off);
	ahead_forget(j); /* another window may be read ahead now */
	j->op = op;
	io_job_wait(op, j);
	return (true);
}

static void
warm_first(struct io_op *op)
{
	struct io_job *j;

	if (join_ahead(op))
		return;
	j = warm_job(op, op->file.off, op->file.len);
	if (j == NULL) {
		io_complete(op, -ENOMEM);
		return;
	}
	j->op = op;
	io_count_read(op->io, true);
	io_job_wait(op, j);
	(void)bring_in(j, false); /* refused: warm_finish() has ended the op */
}

/* Called at submit, and again when the socket of a parked op has room. */
void
io_send_warm(struct io_op *op)
{
	struct io_file *f = op->file.file;
	uint64_t off = op->file.off, len = op->file.len, n;
	/* of the longest op: more will be needed */
	uint64_t end = len < IO_SEND_FILE_MAX ? off + len : f->size;

	n = io_file_resident(f, off, len);
	if (n == 0) {
		warm_first(op);
		n = IO_WINDOW - off % IO_WINDOW;
	} else if ((op->sock->hints & SOCK_WRITABLE) != 0 && send_now(op, n)) {
		io_count_read(op->io, false);
	} else {
		op->io->calls->park(op->io, op);
	}
	/* more is needed than that: reads it ahead */
	read_ahead(op, off + n, end);
}

const struct file_backend file_linux_sendfile = {
	.name = "linux-sendfile",
	.doc = "sendfile(2) of bytes in memory; the read pool reads the others",
	.tag = "network_linux_sendfile.c.78:",
	.send_file = true,
	.counts = FILE_COUNTS(linux_sendfile),
	.read = io_read_cached,
	.send = io_send_warm,
};

const struct file_backend file_adaptive = {
	.name = "adaptive",
	.doc = "sendfile(2) of bytes in memory; the read pool reads the others, up to 1 MiB "
	       "ahead while it has nothing else to do",
	.tag = "network_adaptive.c.78:",
	.send_file = true,
	.counts = FILE_COUNTS(adaptive),
	.read = io_read_cached,
	.spare_ahead = true,
	.send = io_send_warm,
};
