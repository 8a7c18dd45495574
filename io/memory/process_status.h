/* io/memory/process_status.h -- descriptors, memory and processor time of this process, under the
 * names that all clients of Prometheus use: process_open_fds, process_max_fds,
 * process_cpu_seconds_total, process_resident_memory_bytes, process_virtual_memory_bytes,
 * process_start_time_seconds.
 *
 * Thread   any; never waits for a disk.
 */
#ifndef IO_PROCESS_STATUS_H
#define IO_PROCESS_STATUS_H

#include "base/prometheus.h"

/* Opens two files of /proc, because a sandbox closes /proc later.  Without it, rows are missing. */
void process_status_open(void);

/* started_s: seconds since 1970. */
void process_status_metrics(struct buf *out, uint64_t started_s);

/* Linux before 6.2 does not say how many descriptors are open.  Their numbers are then tried, at
 * 0.1 us each, and no more than these: the lowest free number is used first. */
#define PROCESS_STATUS_FDS 16384u

#endif
