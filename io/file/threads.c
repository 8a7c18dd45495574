/* io/file/threads.c -- gthread-aio: the read pool reads each window, then the loop sends it from
 * memory.
 */
#include "io/engine.h"
#include "io/disk/job.h"

const struct file_backend file_gthread_aio = {
	.name = "gthread-aio",
	.doc = "pread(2) in the read pool, then writev(2)",
	.tag = "network_gthread_aio.c.78:",
	.chunk = 64 << 10,
	.counts = FILE_COUNTS(gthread_aio),
	.read = io_read_pool,
};
