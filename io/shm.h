/* io/shm.h -- inside io/ only: windows in shared memory, which sendfile(2) can send.
 *
 *   shm_get() --> shm_renew() --> bytes come into ->map --> sendfile(->fd) --> shm_put()
 *                 in a thread
 *
 * sendfile(2) queues pages, not copies: when it returns, the socket (on loopback even the receiver) still refers to
 * them, and nothing tells when it no longer does.  So a window is never written to again: shm_renew() throws its pages
 * out of the file, a socket that refers to them keeps them, and what is written next gets fresh ones.  Each window is a file
 * of its own and is renewed as a whole, because a huge page of which only a part is thrown out is not replaced but
 * zeroed in place.
 *
 * Measured, 1 MiB: 220 us to throw pages out (a new file costs the same and a descriptor, a mapping and their two
 * ends besides), 690 us for fresh ones: too much for a loop.
 *
 * Units    size in bytes, a multiple of the page size.
 * Thread   the loop's; shm_renew() and shm_free() any, but one at a time.
 */
#ifndef IO_SHM_H
#define IO_SHM_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"

struct shm {
	struct list link;
	int fd;
	bool used; /* written to since it was renewed */
	char *map;
};

struct shm_pool {
	struct list spare, out;
	unsigned nspare, nout, max;
	uint32_t size;
};

void shm_pool_init(struct shm_pool *, uint32_t size, unsigned max);
void shm_pool_free(struct shm_pool *);      /* nobody uses any */
/* 0; -ENOBUFS: max are out; -errno of the system, no memory first of all. */
int shm_get(struct shm_pool *, struct shm **);
bool shm_put(struct shm_pool *, struct shm *); /* false: there are enough; yours to shm_free() */
int shm_renew(struct shm *, uint32_t size);    /* 0 or -errno */
void shm_free(struct shm *, uint32_t size);

#endif
