/* io/disk/temp.c -- temporary files without a name: IO_OPEN without a path makes one, IO_WRITE
 * writes to it, both in threads.
 *
 * The file is gone when its descriptor is closed, even after a crash.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "io/engine.h"
#include "io/disk/job.h"

#define NAME_TRIES 100
#define OPEN_FLAGS (O_RDWR | O_CLOEXEC | O_NOCTTY)

/* ---------------------------------------------------------------- opening */

/* For file systems without O_TMPFILE: the name exists during two system calls. */
static int
open_and_unlink(int root)
{
	char name[64];
	int fd = -EEXIST, i;

	for (i = 0; i < NAME_TRIES && fd == -EEXIST; i++) {
		snprintf(name, sizeof(name), ".accel-%d-%llx", (int)getpid(),
		    (unsigned long long)clock_mono_ns());
		fd = openat(root, name, OPEN_FLAGS | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
		if (fd < 0)
			fd = -errno;
	}
	if (fd >= 0 && unlinkat(root, name, 0) != 0) {
		i = -errno;
		close(fd);
		return (i);
	}
	return (fd);
}

static bool
has_no_tmpfile(int err)
{
	return (err == EOPNOTSUPP || err == EISDIR || err == EINVAL || err == ENOENT);
}

static void
temp_run(struct io_job *j)
{
	int fd = openat(j->root, ".", OPEN_FLAGS | O_TMPFILE, 0600);

	if (fd < 0)
		fd = has_no_tmpfile(errno) ? open_and_unlink(j->root) : -errno;
	if (fd >= 0) /* the loop reads it: no access time */
		(void)fcntl(fd, F_SETFL, O_NOATIME);
	j->fd = fd >= 0 ? fd : -1;
	j->res = fd;
}

static void
temp_finish(struct io_job *j)
{
	if (j->op != NULL) {
		j->fd = -1; /* the caller owns it now */
		io_complete(j->op, j->res);
	}
	io_job_free(j);
}

void
io_start_temp(struct io_op *op)
{
	struct io_job *j = io_job_for(op, NULL, temp_run, temp_finish);

	if (j == NULL)
		return;
	j->root = op->open.root;
	j->dev = io_dev_of(op->open.root);
	io_job_start(op, j);
}

struct io_file *
io_file_temp(struct io *io, int fd)
{
	struct io_file *f = io_file_new(io, fd, 0);

	if (f != NULL)
		/* bytes may not be written out yet, and O_DIRECT would not read them */
		f->grows = f->no_direct = true;
	return (f);
}

/* ---------------------------------------------------------------- writing */

/* The bytes are after the job, in the place of a path, and are freed with it. */
static void
write_run(struct io_job *j)
{
	uint32_t done = 0;
	ssize_t n;

	do {
		n = pwrite(j->file->fd, j->path + done, j->len - done, (off_t)(j->off + done));
		if (n > 0)
			done += (uint32_t)n;
	} while ((n > 0 && done < j->len) || (n < 0 && errno == EINTR));
	j->res = n < 0 && done == 0 ? -errno : (int64_t)done;
}

static void
write_finish(struct io_job *j)
{
	uint64_t end = j->off + (j->res > 0 ? (uint64_t)j->res : 0);

	if (end > j->file->size)
		j->file->size = end;
	if (j->res > 0)
		io_file_proved(j->file, j->off, (uint64_t)j->res);
	if (j->op != NULL)
		io_complete(j->op, j->res);
	io_job_free(j);
}

void
io_start_write(struct io_op *op)
{
	struct io_job *j = malloc(sizeof(*j) + op->write.len);

	if (j == NULL) {
		io_complete(op, -ENOMEM);
		return;
	}
	io_job_init(j, op->io, op);
	memcpy(j->path, op->write.p, op->write.len);
	j->run = write_run;
	j->finish = write_finish;
	j->lane = LANE_READ;
	io_job_set_file(j, op->write.file, op->write.off, op->write.len);
	io_job_start(op, j);
}
