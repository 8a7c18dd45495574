/* io/file.c -- open files: references, windows known to be in memory, and reading windows. */
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>
#include "io/engine.h"
#include "io/disk/job.h"

#define PROOF_NS NS_PER_S /* how long a proof is valid: a wrong guess costs one window */
#define PROOFS   64u      /* windows remembered per file: 16 MiB; later ones replace earlier ones */

/* Part of one window that is in memory.  Its slot is the number of the window modulo the size of
 * the table. */
struct io_proof {
	uint64_t from, to, at_ns;
};

/* ---------------------------------------------------------------- references */

struct io_file *
io_file_new(struct io *io, int fd, uint64_t size)
{
	struct io_file *f = calloc(1, sizeof(*f));

	if (f == NULL) {
		io_close_later(io, fd);
		return (NULL);
	}
	f->fd = fd;
	f->refs = 1;
	f->size = size;
	f->io = io;
	return (f);
}

struct io_file *
io_file_ref(struct io_file *f)
{
	f->refs++;
	return (f);
}

void
io_file_destroy(struct io_file *f, struct io *io)
{
	if (io != NULL)
		io->calls->close_file(io, f->fd, io_file_dev(f));
	else
		close(f->fd);
	free(f->proof);
	free(f);
}

uint64_t
io_file_dev(struct io_file *f)
{
	if (f->dev == 0)
		f->dev = io_dev_of(f->fd);
	return (f->dev);
}

void
io_file_put(struct io_file *f)
{
	if (f == NULL)
		return;
	must(f->refs > 0);
	if (--f->refs == 0)
		io_file_destroy(f, f->io);
}

static void
close_run(struct io_job *j)
{
	close(j->fd);
}

/* close(2) of a file may flush, or talk to a file server: not on the loop. */
void
io_file_close_job(struct io *io, int fd, uint64_t dev)
{
	struct io_job *j = io_job_new(io, NULL, NULL);

	if (j != NULL) {
		j->run = close_run;
		j->fd = fd;
		j->dev = dev;
		if (io_job_push(j) == 0)
			return;
	}
	close(fd);
}

/* ---------------------------------------------------------------- windows in memory */

static bool
fresh(const struct io_file *f, uint64_t at_ns)
{
	return (at_ns != 0 && io_now(f->io) < at_ns + PROOF_NS);
}

static unsigned
proofs(const struct io_file *f)
{
	uint64_t n = (f->size + IO_WINDOW - 1) / IO_WINDOW;

	return (n < PROOFS && !f->grows ? n > 0 ? (unsigned)n : 1 : PROOFS);
}

static struct io_proof *
proof_of(struct io_file *f, uint64_t off)
{
	if (f->proof == NULL)
		f->proof = calloc(proofs(f), sizeof(*f->proof));
	return (f->proof != NULL ? &f->proof[off / IO_WINDOW % proofs(f)] : NULL);
}

static uint64_t
window_end(uint64_t off)
{
	return ((off / IO_WINDOW + 1) * IO_WINDOW);
}

/* from..to is in one window. */
static void
prove(struct io_file *f, uint64_t from, uint64_t to)
{
	struct io_proof *p = proof_of(f, from);

	if (from == 0 && to >= f->size)
		f->resident_ns = io_now(f->io);
	if (p == NULL)
		return;
	if (fresh(f, p->at_ns) && p->from <= from && from <= p->to) {
		p->to = to > p->to ? to : p->to; /* extends it; the older time stays */
		return;
	}
	*p = (struct io_proof){ .from = from, .to = to, .at_ns = io_now(f->io) };
}

void
io_file_proved(struct io_file *f, uint64_t off, uint64_t len)
{
	uint64_t end = off + len, to;

	for (; off < end; off = to) {
		to = window_end(off) < end ? window_end(off) : end;
		prove(f, off, to);
	}
}

static bool
window_cached(struct io_file *f, uint64_t from, uint64_t to)
{
	int is = f->no_nowait ? 0 : io_range_cached(f->fd, from, to);

	if (is == -EOPNOTSUPP)
		f->no_nowait = true; /* FUSE, NFS: only windows read by a thread are known */
	return (is == 1);
}

/* End of the proven part that begins at off, within its window; off itself if none is known. */
static uint64_t
proven_to(struct io_file *f, uint64_t off, uint64_t end)
{
	struct io_proof *p;
	uint64_t to = window_end(off) < f->size ? window_end(off) : f->size;

	p = proof_of(f, off);
	if (p != NULL && fresh(f, p->at_ns) && p->from <= off && off < p->to)
		return (p->to);
	/* checks the rest of the window at once, for all later calls */
	if (to > off && window_cached(f, off, to)) {
		prove(f, off, to);
		return (to);
	}
	if (end < to && window_cached(f, off, end)) {
		prove(f, off, end);
		return (end);
	}
	return (off);
}

uint64_t
io_file_resident(struct io_file *f, uint64_t off, uint64_t len)
{
	uint64_t at = off, end = off + len, to;

	if (fresh(f, f->resident_ns))
		return (len);
	while (at < end) {
		to = proven_to(f, at, end);
		if (to <= at)
			break;
		at = to;
	}
	return ((at < end ? at : end) - off);
}

enum io_lane
io_file_read_lane(struct io_file *f, uint64_t off, uint64_t len)
{
	const struct io_proof *p = proof_of(f, off);
	bool was = p != NULL && p->at_ns != 0 && p->from <= off && off + len <= p->to;

	return (was && io_pages_counted(f->fd, off, len) == 1 ? LANE_REREAD : LANE_READ);
}

/* ---------------------------------------------------------------- reading */

int64_t
io_read_window(int fd, char *buf, uint32_t len, uint64_t off, uint32_t ahead)
{
	uint32_t got = 0;
	ssize_t n;

	io_will_need(fd, off + IO_KERNEL_READ, off + len + ahead);
	do {
		n = pread(fd, buf + got, len - got, (off_t)(off + got));
		if (n > 0)
			got += (uint32_t)n;
	} while ((n > 0 && got < len) || (n < 0 && errno == EINTR));
	return (n < 0 && got == 0 ? -errno : (int64_t)got);
}

void
io_read_run(struct io_job *j)
{
	/* A whole window: the next one will be needed, so the disk starts to read it now.
	 * (Measured as above, one client: 59 MB/s instead of 31.)
	 */
	j->res = io_read_window(j->file->fd, j->buf, j->len, j->off,
	    j->len == IO_WINDOW ? IO_WINDOW : 0);
}

void
io_read_finish(struct io_job *j)
{
	if (j->op != NULL && j->res > 0) {
		j->op->buf = j->buf;
		j->buf = NULL;
	}
	if (j->op != NULL)
		io_complete(j->op, j->res);
	io_job_free(j);
}

static void
read_window(struct io_op *op, char *buf, struct io_async *async)
{
	struct io_job *j = io_job_for(op, NULL, io_read_run, io_read_finish);

	if (j == NULL) {
		io_give_back(op->io, buf);
		return;
	}
	io_job_set_file(j, op->file.file, op->file.off, op->file.len);
	j->buf = buf;
	j->lane = LANE_READ;
	j->async = async;
	io_count_read(op->io, true);
	io_job_start(op, j);
}

static char *
window_for(struct io_op *op)
{
	char *buf;

	must(op->file.len <= op->io->window);
	buf = io_window_get(op->io);
	if (buf == NULL)
		io_complete(op, -ENOMEM);
	return (buf);
}

void
io_read_pool(struct io_op *op)
{
	char *buf = window_for(op);

	if (buf != NULL)
		read_window(op, buf, NULL);
}

void
io_read_cached(struct io_op *op)
{
	struct io_file *f = op->file.file;
	struct iovec iov = { .iov_len = op->file.len };
	ssize_t n = -1;

	iov.iov_base = window_for(op);
	if (iov.iov_base == NULL)
		return;
	if (!f->no_nowait) {
		n = preadv2(f->fd, &iov, 1, (off_t)op->file.off, RWF_NOWAIT);
		if (n < 0 && errno == EOPNOTSUPP)
			f->no_nowait = true;
	}
	if (n < 0) {
		read_window(op, iov.iov_base, op->io->reads);
		return;
	}
	if (n > 0) {
		io_count_read(op->io, false);
		op->buf = iov.iov_base;
	} else {
		io_give_back(op->io, iov.iov_base);
	}
	io_complete(op, n);
}

/* ---------------------------------------------------------------- backends */

#define B(name) extern const struct file_backend file_##name;
#include "io/backends.def"
#undef B

const struct file_backend *const file_backends[] = {
#define B(name) &file_##name,
#include "io/backends.def"
#undef B
	NULL,
};

/* Names of 2007 and the nearest backend of today. */
static const struct {
	const char *name, *now, *note;
} old_names[] = {
	{ "write", "writev", "\"write\" is \"writev\" now" },
	{ "sendfile", "linux-sendfile", "\"sendfile\" is \"linux-sendfile\" here" },
	{ "threads", "gthread-aio", "\"threads\" is \"gthread-aio\" here" },
	{ "linux-aio", "linux-aio-sendfile", "\"linux-aio\" is \"linux-aio-sendfile\" here" },
	{ "aio", "gthread-aio", "\"aio\" is \"gthread-aio\" here" },
#ifndef HAVE_LIBURING
	{ "io-uring", "adaptive",
	    "io-uring is not built in, for want of liburing; adaptive reads in threads" },
#endif
};

static const struct file_backend *
backend_named(const char *name)
{
	const struct file_backend *const *b;

	for (b = file_backends; *b != NULL; b++) {
		if (strcmp((*b)->name, name) == 0)
			return (*b);
	}
	return (NULL);
}

const struct file_backend *
file_backend_by_name(const char *name, const char **note)
{
	const struct file_backend *b = backend_named(name);
	size_t i;

	*note = NULL;
	for (i = 0; b == NULL && i < NELEM(old_names); i++) {
		if (strcmp(old_names[i].name, name) == 0) {
			b = backend_named(old_names[i].now);
			*note = old_names[i].note;
		}
	}
	return (b);
}
