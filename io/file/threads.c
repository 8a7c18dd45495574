/* io/file/threads.c -- gthread-aio: every window is read in the read pool, then sent from memory. */
#include "io/engine.h"
#include "io/disk/job.h"

static void
threads_read(struct io *io, void *state, struct io_op *op)
{
	io_read_pool(op);
}

const struct file_backend file_gthread_aio = {
	.name = "gthread-aio",
	.doc = "pread(2) in the read pool, then writev(2)",
	.tag = "network_gthread_aio.c.78:",
	.chunk = 64 << 10, .counts = FILE_COUNTS(gthread_aio),
	.read = threads_read,
};
