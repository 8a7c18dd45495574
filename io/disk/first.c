/* io/disk/first.c -- what an open of a regular file does next: it reads the first bytes, drops the
 * file from memory, closes it.  See struct io_first.
 *
 * Thread   the one that has the job.  The loop, if j->at_once: then nothing here waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "io/engine.h"
#include "io/disk/hot.h"
#include "io/disk/open.h"
#include "io/disk/pin.h"

#define READ_TRIES 3 /* for a file that changes while it is read */

/* Updates j->stx; true: the file still has the contents it had before. */
static bool
still_holds(struct io_job *j)
{
	struct io_version then = io_version_of(&j->stx), now;

	if (statx(j->fd, "", AT_EMPTY_PATH, IO_OPEN_FACTS, &j->stx) < 0)
		return (true);
	now = io_version_of(&j->stx);
	return (io_version_holds(&then, &now));
}

static int64_t
read_bytes(struct io_job *j, char *to, uint32_t n)
{
	return (j->at_once ? io_read_hot(j->fd, to, n) : io_read_window(j->fd, to, n, 0, 0));
}

/* Reads all of a small file.  Bytes of two versions are not kept, nor bytes of one version with the
 * times of another. */
static int64_t
keep_first(struct io_job *j)
{
	struct io_first *f = &j->first;
	unsigned tries;
	int64_t n = 0;

	for (tries = 0; tries < READ_TRIES && j->stx.stx_size <= f->keep; tries++) {
		free(f->bytes);
		f->bytes = malloc(j->stx.stx_size + 1);
		if (f->bytes == NULL)
			return (-ENOMEM);
		n = read_bytes(j, f->bytes, (uint32_t)j->stx.stx_size);
		if (n < 0 || still_holds(j))
			return (n);
	}
	free(f->bytes);
	f->bytes = NULL;
	f->changing = true;
	return (0);
}

/* On the loop it is enough to look at the two ends: the sender checks the bytes between them. */
static int64_t
warm_first(struct io_job *j, uint32_t n)
{
	int64_t got;

	if (j->at_once)
		return (io_ends_hot(j->fd, n) ? 0 : -EAGAIN);
	got = io_warm_window(j->fd, n, 0);
	if (got > 0)
		io_pin_window(j->fd, 0, (uint64_t)got);
	return (got);
}

static bool
wants_first(const struct io_first *f, uint64_t size)
{
	return (size <= f->keep || (f->warm && (f->warm_most == 0 || size <= f->warm_most)));
}

/* Reads the bytes that will be needed.  Measured with cold files from 16 disks: this saves the way
 * back to the loop and into the read pool, 3 of 7.7 context switches and a sixth of the CPU at 100
 * kB, 5 of 9 and a quarter at 8 kB.  A read error is ignored, because the later read will get it,
 * too.  False: there was one. */
static bool
read_first(struct io_job *j)
{
	struct io_first *f = &j->first;
	uint32_t size = (uint32_t)(j->stx.stx_size < IO_WINDOW ? j->stx.stx_size : IO_WINDOW);
	int64_t n;

	if (!S_ISREG(j->stx.stx_mode) || size == 0 || !wants_first(f, j->stx.stx_size))
		return (true);
	__atomic_store_n(&j->opened, clock_mono_ns(), __ATOMIC_RELAXED); /* io_phase() reads it */
	n = j->stx.stx_size <= f->keep ? keep_first(j) : warm_first(j, size);
	f->n = n > 0 ? (uint32_t)n : 0;
	if (n < 0) {
		free(f->bytes);
		f->bytes = NULL;
	}
	return (n >= 0);
}

/* The kernel keeps pages that are mapped, or written and not yet on the disk.  Newer kernels start
 * to read a page that RWF_NOWAIT does not find: the page in the middle is looked at, and the page
 * at the end stays away. */
static void
forget(struct io_job *j)
{
	uint64_t size = j->stx.stx_size, middle = size / 2;

	if (!S_ISREG(j->stx.stx_mode) || size < IO_FORGET_MIN || size > j->first.forget)
		return;
	io_pin_drop(&j->stx);
	posix_fadvise(j->fd, 0, 0, POSIX_FADV_DONTNEED);
	j->first.forgotten = io_range_cached(j->fd, middle, middle + 1) == 0;
}

/* A file that was to be kept and was not kept is sent from its descriptor.  The last descriptor of
 * a file without a name frees its blocks: not on the loop. */
static bool
may_shut(const struct io_job *j)
{
	const struct io_first *f = &j->first;

	if (f->shut == 0 || (j->at_once && j->stx.stx_nlink == 0))
		return (false);
	if (!S_ISREG(j->stx.stx_mode))
		return (true);
	return (j->stx.stx_size <= f->shut &&
		(f->keep == 0 || (f->bytes != NULL && f->n == j->stx.stx_size)));
}

/* Closes the file here: another job would need another trip to a thread. */
static void
shut(struct io_job *j)
{
	if (!may_shut(j))
		return;
	close(j->fd);
	j->fd = -1;
	j->res = 0;
	j->first.closed = true;
}

bool
io_first_read(struct io_job *j)
{
	if (!read_first(j))
		return (false);
	forget(j);
	shut(j);
	return (true);
}
