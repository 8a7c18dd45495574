/* io/disk/pools_status.h -- the threads that wait for disks, as numbers for a page: each pool, each
 * device.
 *
 * Thread   any; never waits.
 */
#ifndef IO_DISK_POOLS_STATUS_H
#define IO_DISK_POOLS_STATUS_H

#include "base/buf.h"
#include "base/prometheus.h"
#include "io/disk/pools.h"

#define IO_STATUS_LANES   8u
#define IO_STATUS_DEVICES 64u

struct io_pools_status {
	struct io_lane_status lane[IO_STATUS_LANES];
	struct io_device_status device[IO_STATUS_DEVICES];
	size_t nlanes, ndevices;
};

/* NULL: a simulated loop, which has no pools */
void io_pools_status_take(struct io_pools_status *, struct io_pools *);
unsigned io_pools_status_stuck(const struct io_pools_status *); /* number of stuck devices */

#define IO_DEVICE_NAME 24u /* "8:1" and NUL */
const char *io_device_name(const struct io_device_status *, char name[IO_DEVICE_NAME]);

/* Each number with its name: "threads.stat.busy", "devices.8:1.oldest-us". */
void io_pools_status_each(const struct io_pools_status *,
    void (*each)(void *arg, const char *name, uint64_t v), void *arg);
/* "threads":{...},"devices":[...] */
void io_pools_status_json(struct buf *, const struct io_pools_status *);
void io_pools_status_metrics(const struct prom *, const struct io_pools_status *);

#endif
