/* io/file/gthread_sendfile.c -- gthread-sendfile: the thread that reads also sends.
 *
 *   socket full? --yes--> parks on the loop -----.
 *        | no                                    |  there is room
 *        v                                       v
 *   read pool: sendfile(2) of a chunk, to a duplicate of the socket ---> loop: so many bytes are out
 *        '--- EAGAIN before the first byte: parks on the loop
 *
 * The socket does not block, so a thread waits for disks only, never for a client.
 *
 * A thread may be stuck in the disk when its client's deadline comes, and the connection is closed meanwhile: the
 * duplicate keeps the socket alive and its number from being given to another connection.  It is shut down then: what the
 * disk brings too late goes nowhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>
#include "io/engine.h"
#include "io/disk/job.h"

struct send_job {
	struct io_job job; /* fd: the duplicate */
	bool goes_on;      /* to be looked at before more of it is sent */
	struct io_version version; /* what the file was when it was pushed: the loop's may change */
	bool async;        /* how it is counted */
	bool full;         /* out: the socket took all it has room for */
};

/* At once and here: while it is open the socket lives on, in the epoll set too, though its owner has closed it.  A thread
 * for closing files would get to it when the disk answers again. */
static void
duplicate_close(struct send_job *s)
{
	if (s->job.fd >= 0)
		close(s->job.fd);
	s->job.fd = -1;
}

static int
changed(const struct send_job *s)
{
	struct io_version now;

	return (io_version_look(&s->version, s->job.file->fd, 0, &now));
}

static void
send_run(struct io_job *j)
{
	struct send_job *s = container_of(j, struct send_job, job);
	off_t off = (off_t)j->off;
	uint32_t got = 0;
	ssize_t n;

	if (s->goes_on && (j->res = changed(s)) != 0) {
		duplicate_close(s);
		return;
	}
	io_will_need(j->file->fd, j->off, j->off + j->len);
	do {
		n = sendfile(j->fd, j->file->fd, &off, j->len - got);
		if (n > 0)
			got += (uint32_t)n;
	} while ((n > 0 && got < j->len) || (n < 0 && errno == EINTR));
	s->full = n < 0 && errno == EAGAIN;
	j->res = n < 0 && got == 0 ? -errno : (int64_t)got;
	duplicate_close(s);
}

static void
send_finish(struct io_job *j)
{
	struct send_job *s = container_of(j, struct send_job, job);
	struct io *io = io_port_loop(j->port);
	struct io_op *op = j->op;

	duplicate_close(s); /* still open if it did not run */
	if (j->res > 0)
		io_count_read(io, s->async);
	if (op != NULL) {
		op->at.handed = clock_mono_ns();
		j->file->stale |= j->res == -ETXTBSY || j->res == -ENODATA;
		if (!s->full)
			op->sock->hints |= SOCK_WRITABLE;
		if (s->full && j->res == -EAGAIN)
			io_send_pool(op, s->async);
		else
			io_complete(op, j->res);
	}
	io_job_free(io, j);
}

/* Its connection will be closed: part of the range may be out and nobody knows how much. */
static void
send_abandoned(struct io_op *op, struct io_job *j)
{
	shutdown(op->sock->fd, SHUT_RDWR);
	op->sock->hints |= SOCK_SHARED;
}

static struct send_job *
send_job(struct io_op *op, bool async)
{
	struct send_job *s = malloc(sizeof(*s));
	uint32_t chunk = io_chunk(op->io);

	if (s == NULL)
		return (NULL);
	io_job_init(&s->job, op->io, op);
	s->job.run = send_run;
	s->job.finish = send_finish;
	s->job.abandoned = send_abandoned;
	s->job.file = io_file_ref(op->file.file);
	s->job.dev = io_file_dev(op->file.file);
	s->job.off = op->file.off;
	s->job.len = op->file.len < chunk ? op->file.len : chunk;
	s->job.fd = fcntl(op->sock->fd, F_DUPFD_CLOEXEC, 0);
	s->goes_on = op->file.goes_on && op->file.file->watched;
	s->version = op->file.file->version;
	s->async = async;
	s->full = false;
	return (s);
}

void
io_send_pool(struct io_op *op, bool async)
{
	struct io *io = op->io;
	struct send_job *s;
	int err;

	if ((op->sock->hints & SOCK_WRITABLE) == 0) {
		io->calls->park(io, op);
		return;
	}
	s = send_job(op, async);
	if (s == NULL) {
		io_complete(op, -ENOMEM);
		return;
	}
	io_job_wait(op, &s->job);
	err = s->job.fd < 0 ? -EMFILE : io_job_push(io, &s->job, LANE_READ);
	if (err != 0) {
		duplicate_close(s);
		io_job_refused(op, &s->job, err);
		return;
	}
	/* An edge that comes while the thread fills the socket must not be lost: it sets this again. */
	op->sock->hints &= (uint8_t)~SOCK_WRITABLE;
}

static void
gthread_send(struct io *io, void *state, struct io_op *op)
{
	io_send_pool(op, true);
}

static void
gthread_read(struct io *io, void *state, struct io_op *op)
{
	io_read_pool(op);
}

const struct file_backend file_gthread_sendfile = {
	.name = "gthread-sendfile",
	.doc = "sendfile(2) in the read pool: the thread that reads also sends",
	.tag = "network_gthread_sendfile.c.78:",
	.send_file = true, .chunk = 512 << 10, .counts = FILE_COUNTS(gthread_sendfile),
	.read = gthread_read, .send = gthread_send,
};
