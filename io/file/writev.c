/* io/file/writev.c -- what is in memory is copied on the loop, the rest in the read pool; then sent. */
#include "io/engine.h"
#include "io/disk/job.h"

static void
writev_read(struct io *io, void *state, struct io_op *op)
{
	io_read_cached(op, io_push_read);
}

const struct file_backend file_writev = {
	.name = "writev",
	.doc = "preadv2(RWF_NOWAIT), or pread(2) in the read pool when that would wait; then writev(2)",
	.tag = "network_writev.c.78:",
	.counts = FILE_COUNTS(writev),
	.read = writev_read,
};
