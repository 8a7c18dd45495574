/* io/file/writev.c -- the loop copies bytes in memory, the read pool reads the others; then the
 * loop sends them.
 */
#include "io/engine.h"
#include "io/disk/job.h"

const struct file_backend file_writev = {
	.name = "writev",
	.doc = "preadv2(RWF_NOWAIT), or pread(2) in the read pool if that would wait; then "
	       "writev(2); files wanted again from the server's own memory",
	.waits = IO_LOOK_WAITS,
	.tag = "network_writev.c.78:",
	.holds = true,
	.counts = FILE_COUNTS(writev),
	.read = io_read_cached,
};
