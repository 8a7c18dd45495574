/* accel-pool/cache.h -- how much of a file is in memory.
 *
 * cachestat(2) tells it since Linux 6.5.  Older kernels have mincore(2), which answers only users
 * who own the file or may write to it, and does not count dirty pages.
 *
 * Errors   -errno; -EPERM: the kernel does not tell this user.
 * Thread   any.
 */
#ifndef ACCEL_POOL_CACHE_H
#define ACCEL_POOL_CACHE_H

#include <stdint.h>

struct cache_facts {
	uint64_t in_memory, dirty; /* bytes; dirty: not on the disk yet */
};

int cache_look(int fd, uint64_t size, struct cache_facts *);
int cache_look_mincore(int fd, uint64_t size, struct cache_facts *); /* what old kernels get */

#endif
