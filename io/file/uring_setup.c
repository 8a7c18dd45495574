/* io/file/uring_setup.c -- see uring_setup.h */
#include <errno.h>
#include "io/engine.h"
#include "io/file/uring_setup.h"

#define SUBMIT_MAX 256u /* requests collected before the kernel must take them */

const char *
uring_why(int err)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
		return ("io_uring is forbidden here, by sysctl kernel.io_uring_disabled or a "
			"seccomp filter (containers have one)");
	case -ENOSYS: return ("this kernel has no io_uring, or a seccomp filter hides it");
	case -ENOMEM: return ("no memory for an io_uring, or more than may be locked (ulimit -l)");
	case -EMFILE:
	case -ENFILE: return ("no descriptor left for an io_uring");
	default: return ("the kernel refused an io_uring");
	}
}

static bool
kernel_can(struct io_uring *ring)
{
	static const int ops[] = { IORING_OP_OPENAT2, IORING_OP_STATX, IORING_OP_READ,
		IORING_OP_ASYNC_CANCEL };
	struct io_uring_probe *p = io_uring_get_probe_ring(ring);
	bool can = p != NULL && (ring->features & IORING_FEAT_NODROP) != 0;
	size_t i;

	for (i = 0; can && i < NELEM(ops); i++)
		can = io_uring_opcode_supported(p, ops[i]) != 0;
	io_uring_free_probe(p);
	return (can);
}

/* A window is at least IO_WINDOW. */
unsigned
uring_parts(const struct io_conf *conf)
{
	return (
	    ((conf->chunk > IO_WINDOW ? conf->chunk : IO_WINDOW) + URING_PART - 1) / URING_PART);
}

int
uring_setup(struct io_uring *ring, unsigned workers, const char **why)
{
	/* Every request in flight has space for its result and for the result of its cancel. */
	struct io_uring_params p = { .flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
		.cq_entries = 2 * workers + SUBMIT_MAX };
	unsigned limit[2] = { workers, workers }; /* for both classes of workers */
	int err = io_uring_queue_init_params(SUBMIT_MAX, ring, &p);

	if (err != 0) {
		*why = uring_why(err);
		return (err);
	}
	err = 0;
	if (!kernel_can(ring)) {
		*why = "this kernel's io_uring cannot look names up and read (Linux 5.6 can)";
		err = -ENOSYS;
	} else if (io_uring_register_iowq_max_workers(ring, limit) != 0) {
		*why = "this kernel's io_uring has too few workers to keep reads apart from "
		       "look-ups (Linux 5.15 has more)";
		err = -ENOSYS;
	}
	if (err != 0)
		io_uring_queue_exit(ring);
	return (err);
}
