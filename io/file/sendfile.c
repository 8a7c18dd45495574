/* io/file/sendfile.c -- adaptive, linux-sendfile: from memory where the loop has the bytes, else by
 * a thread's sendfile(2).
 *
 *   held by the server (io/hotset.h) ------------------------------> the sender sends them
 *   the page cache has them: preadv2(RWF_NOWAIT) copies them ------> send on the loop
 *   else -------------------------------> a thread of the read pool: sendfile(2)
 *
 * The loop never calls sendfile(2) on a file.  It has no NOWAIT, and what was in memory a moment
 * ago may have left: on a hung disk one wrong guess stops the loop for ever.
 *
 * Measured, CPU for 100 kB and 10 MB: copied 17.4 and 3260 us, by sendfile(2) from the page cache
 * 8.7 and 1340, held 1 and 2 % more than that.
 *
 * While a thread sends one window, the next is read ahead; adaptive also reads those after it, up
 * to IO_AHEAD windows, if threads are idle.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include "io/engine.h"
#include "io/disk/job.h"
#include "io/proof.h"

#define COPY (64u << 10) /* at a time: both copies find it in the processor's cache */

/* ---------------------------------------------------------------- on the loop */

/* Sends n bytes, and clears the hint if the socket is full.  Their number, or -errno. */
static int64_t
send_bytes(struct io_op *op, const char *p, size_t n, bool more)
{
	ssize_t k;

	do
		k = send(op->sock->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
	while (k < 0 && errno == EINTR);
	if (k < (ssize_t)n && (k >= 0 || errno == EAGAIN))
		op->sock->hints &= (uint8_t)~SOCK_WRITABLE;
	return (k < 0 ? -errno : k);
}

/* Copies and sends.  Returns the bytes sent, the last ones of them in buf; -EAGAIN: the socket is
 * full, or, with *missed, the bytes are not in memory. */
static int64_t
copy_and_send(struct io_op *op, char *buf, uint32_t *last, bool *missed)
{
	uint32_t done = 0, n;
	int64_t got, sent;

	do {
		n = op->file.len - done < COPY ? op->file.len - done : COPY;
		got = io_look_for(op->file.file, buf, n, op->file.off + done);
		if (got <= 0) {
			*missed = got < 0;
			return (done != 0 ? (int64_t)done : got < 0 ? -EAGAIN : 0);
		}
		sent = send_bytes(op, buf, (size_t)got, op->more || done + got < op->file.len);
		if (sent < 0)
			return (done != 0 ? (int64_t)done : sent);
		*last = (uint32_t)sent;
		done += *last;
	} while (sent == got && done < op->file.len);
	return (done);
}

/* Sends bytes that are in the page cache.  False: a thread must send. */
static bool
send_cached(struct io_op *op)
{
	bool missed = false;
	uint32_t last = 0;
	int64_t n;
	char *buf;

	if (!io_file_may_look(op->file.file))
		return (false);
	n = op->file.goes_on ? io_proof_look_warm(op->file.proof, op->file.file) : 0;
	if (n == -EAGAIN)
		return (false); /* the file has perhaps grown, and its samples are not in memory */
	if (n == 0) {
		buf = io_window_get(op->io);
		n = buf != NULL ? copy_and_send(op, buf, &last, &missed) : -ENOMEM;
		if (n > 0)
			io_proof_note(op->file.proof, op->file.file,
			    op->file.off + (uint64_t)n - last, buf, last);
		io_give_back(op->io, buf);
	}
	if (n == -EAGAIN && missed)
		return (false);
	if (n == -EAGAIN) {
		op->io->calls->park(op->io, op);
		return (true);
	}
	if (n > 0) {
		io_moved(op->io, op->file.len, (uint64_t)n);
		io_count_read(op->io, false);
	}
	io_complete_next(op, n);
	return (true);
}

/* ---------------------------------------------------------------- read ahead */

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

/* The op has waited for this read.  It gets no byte after those that were read: where the disk has
 * failed it would fail again. */
static void
send_again(struct io_op *op, const struct io_job *j)
{
	uint64_t end = j->off + (uint64_t)j->res;

	if (op->file.off >= end && op->file.off == j->off) {
		io_complete(op, 0); /* the end of the file */
		return;
	}
	if (op->file.off < end && op->file.len > end - op->file.off)
		op->file.len = (uint32_t)(end - op->file.off);
	io_send_warm(op);
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
	else if (op != NULL) {
		op->at.handed = clock_mono_ns();
		send_again(op, j);
	}
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
	if (io_file_was_read(f, off))
		return;
	j = warm_job(op, off, len);
	if (j == NULL)
		return;
	*place = j; /* until warm_finish() */
	if (bring_in(j, spare) == 0)
		io_count_read(op->io, true);
}

/* Reads the next window, and with idle threads those after it. */
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

/* ---------------------------------------------------------------- SEND_FILE */

/* Perhaps the whole window is in the page cache but cannot be had without waiting: on a file system
 * without RWF_NOWAIT, or on a device that is not fit. */
static void
send_by_thread(struct io_op *op)
{
	struct io_file *f = op->file.file;

	io_send_pool(op, io_file_read_lane(f, op->file.off, op->file.len), true);
}

/* Called at submit, and again when the socket of a parked op has room. */
void
io_send_warm(struct io_op *op)
{
	struct io_file *f = op->file.file;
	uint64_t off = op->file.off, len = op->file.len;
	/* of the longest op: more will be needed */
	uint64_t end = len < IO_SEND_FILE_MAX ? off + len : f->size;
	bool cold = io_file_was_read(f, off);

	if ((op->sock->hints & SOCK_WRITABLE) == 0) {
		op->io->calls->park(op->io, op);
	} else if (!send_cached(op)) {
		cold = true;
		if (!join_ahead(op))
			send_by_thread(op);
	}
	if (cold)
		read_ahead(op, (off / IO_WINDOW + 1) * IO_WINDOW, end);
}

const struct file_backend file_linux_sendfile = {
	.name = "linux-sendfile",
	.doc = "the loop sends what is in memory: files wanted again from the server's own, "
	       "others by preadv2(RWF_NOWAIT); the read pool sends the rest by sendfile(2)",
	.waits = IO_LOOK_WAITS,
	.tag = "network_linux_sendfile.c.78:",
	.send_file = true,
	.holds = true,
	.counts = FILE_COUNTS(linux_sendfile),
	.read = io_read_cached,
	.send = io_send_warm,
};

const struct file_backend file_adaptive = {
	.name = "adaptive",
	.doc = "as linux-sendfile; the read pool also reads up to 1 MiB ahead while it has "
	       "nothing else to do",
	.waits = IO_LOOK_WAITS,
	.tag = "network_adaptive.c.78:",
	.send_file = true,
	.holds = true,
	.counts = FILE_COUNTS(adaptive),
	.read = io_read_cached,
	.spare_ahead = true,
	.send = io_send_warm,
};
