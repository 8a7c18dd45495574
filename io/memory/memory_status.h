/* io/memory/memory_status.h -- memory of the machine and waits for it, as numbers for a page.
 *
 * A number that the kernel does not have is left out.
 *
 * Thread   any; never waits.
 */
#ifndef IO_MEMORY_STATUS_H
#define IO_MEMORY_STATUS_H

#include "base/buf.h"
#include "base/log.h"
#include "base/prometheus.h"
#include "io/disk/pools.h"
#include "io/memory/pressure.h"

struct io_memory_status {
	struct pressure pressure;
	bool holds; /* the program keeps windows of files in its own memory */
	struct io_hotset_status held;
};

/* The last look at the pressure.  NULL: a program, or a simulated loop, that holds no windows. */
void io_memory_status_take(struct io_memory_status *, struct io_pools *);

/* Each number with its name: "memory.limit-bytes", "memory.pressure.machine.some-us". */
void io_memory_status_each(const struct io_memory_status *,
    void (*each)(void *arg, const char *name, uint64_t v), void *arg);
/* "memory":{...} */
void io_memory_status_json(struct buf *, const struct io_memory_status *);
void io_memory_status_metrics(const struct prom *, const struct io_memory_status *);

/* For a line of the log: fills f and returns how many.  Counts are those since the first look, at
 * the start.  The pressure is the cgroup's, where the kernel has it. */
#define IO_MEMORY_FIELDS 8u
size_t io_memory_status_fields(const struct pressure *, struct log_field f[IO_MEMORY_FIELDS]);

#endif
