/* io/file/gthread_sendfile.c -- gthread-sendfile: the thread that reads also sends.
 *
 *   socket full? --yes--> parks on the loop -----.
 *        | no                                    |  there is room
 *        v                                       v
 *   read pool: sendfile(2) of a chunk, to a duplicate of the socket ---> loop: counts the bytes
 *        '--- EAGAIN before the first byte: parks on the loop
 *
 * The socket does not block, so a thread waits for disks only, never for a client.
 *
 * A thread may be stuck in the disk at the client's deadline, and the connection is closed
 * meanwhile.
 * The duplicate keeps the socket alive, and its number from being given to another connection.  The
 * socket is shut down then, so bytes that the disk returns too late go nowhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>
#include "io/engine.h"
#include "io/disk/job.h"
#include "io/proof.h"

#define LATELY_S 3600 /* see io/proof.h */

struct send_job {
	struct io_job job;         /* fd: the duplicate */
	bool goes_on;              /* check the version before sending more */
	struct io_version version; /* copied at push: the loop may change the file's */
	struct io_proof proof;     /* likewise */
	bool lately;               /* the file was written to lately, so it may grow */
	bool grew;                 /* out */
	bool async;                /* how it is counted */
	bool full;                 /* out: the socket is full */
};

/* Closed at once, on the loop: while it is open the socket lives on, in the epoll set too,
 * though its owner has closed it.  A thread would close it only after the disk answers. */
static void
duplicate_close(struct send_job *s)
{
	if (s->job.fd >= 0)
		close(s->job.fd);
	s->job.fd = -1;
}

static int
changed(struct send_job *s)
{
	return (io_proof_look_in_thread(&s->proof, &s->version, s->job.file->fd, &s->grew));
}

/* The bytes went from the page cache to the socket, so the samples are read from the file.  A file
 * that does not change costs no call. */
static void
note(struct send_job *s)
{
	if (s->lately || s->grew)
		io_proof_note_file(&s->proof, s->job.file, s->job.off, (size_t)s->job.res);
	else
		s->proof.lost = true;
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
	if (j->res > 0)
		note(s);
}

static void
send_finish(struct io_job *j)
{
	struct send_job *s = container_of(j, struct send_job, job);
	struct io_op *op = j->op;

	duplicate_close(s); /* still open if the job did not run */
	if (j->res > 0) {
		io_count_read(j->io, s->async);
		io_file_proved(j->file, j->off, (uint64_t)j->res);
	}
	if (op != NULL) {
		op->at.handed = clock_mono_ns();
		*op->file.proof = s->proof;
		if (s->grew)
			io_proof_grew(op->file.proof, j->io);
		j->file->stale |= s->grew || j->res == -ETXTBSY || j->res == -ENODATA;
		if (!s->full)
			op->sock->hints |= SOCK_WRITABLE;
		if (s->full && j->res == -EAGAIN)
			io_send_pool(op, s->job.lane, s->async);
		else
			io_complete(op, j->res);
	}
	io_job_free(j);
}

/* Shuts the connection of the op down: an unknown part of the range may have been sent. */
static void
send_abandoned(struct io_op *op, struct io_job *j)
{
	shutdown(op->sock->fd, SHUT_RDWR);
	op->sock->hints |= SOCK_SHARED;
}

static struct send_job *
send_job(struct io_op *op, enum io_lane lane, bool async)
{
	struct send_job *s = malloc(sizeof(*s));
	uint32_t chunk = io_chunk(op->io);

	if (s == NULL)
		return (NULL);
	io_job_init(&s->job, op->io, op);
	s->job.run = send_run;
	s->job.finish = send_finish;
	s->job.abandoned = send_abandoned;
	s->job.lane = lane;
	io_job_set_file(&s->job, op->file.file, op->file.off,
	    op->file.len < chunk ? op->file.len : chunk);
	s->job.fd = fcntl(op->sock->fd, F_DUPFD_CLOEXEC, 0);
	s->goes_on = op->file.goes_on && op->file.file->watched;
	s->version = op->file.file->version;
	s->proof = *op->file.proof;
	s->lately =
	    op->file.file->version.mtime_s > (int64_t)(io_wall_ns(op->io) / NS_PER_S) - LATELY_S;
	s->grew = false;
	s->async = async;
	s->full = false;
	return (s);
}

void
io_send_pool(struct io_op *op, enum io_lane lane, bool async)
{
	struct io *io = op->io;
	struct send_job *s;

	if ((op->sock->hints & SOCK_WRITABLE) == 0) {
		io->calls->park(io, op);
		return;
	}
	s = send_job(op, lane, async);
	if (s == NULL) {
		io_complete(op, -ENOMEM);
		return;
	}
	if (s->job.fd < 0) {
		io_job_free(&s->job);
		io_complete(op, -EMFILE);
		return;
	}
	/* An edge may come while the thread fills the socket; it sets this again. */
	op->sock->hints &= (uint8_t)~SOCK_WRITABLE;
	io_job_start(op, &s->job);
}

static void
gthread_send(struct io_op *op)
{
	io_send_pool(op, LANE_READ, true);
}

const struct file_backend file_gthread_sendfile = {
	.name = "gthread-sendfile",
	.doc = "sendfile(2) in the read pool: the thread that reads also sends",
	.tag = "network_gthread_sendfile.c.78:",
	.send_file = true,
	.chunk = 512 << 10,
	.counts = FILE_COUNTS(gthread_sendfile),
	.read = io_read_pool,
	.send = gthread_send,
};
