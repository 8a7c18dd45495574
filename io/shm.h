/* io/shm.h -- inside io/ only: windows in shared memory, which sendfile(2) can send.
 *
 *   shm_get() --> shm_renew() --> bytes are written to ->map --> sendfile(->fd) --> shm_put()
 *                 in a thread
 *
 * sendfile(2) queues pages, not copies.  When it returns, the socket (on loopback even the
 * receiver) still refers to them, and nothing reports when it no longer does.  So a window is
 * never written to again: shm_renew() removes its pages from the file, a socket that refers to
 * them keeps them, and the next bytes get fresh pages.  Each window is a file of its own and is
 * emptied as a whole, because a huge page that is removed in part is not replaced but zeroed in
 * place.
 *
 * Measured, 1 MiB: 220 us to remove pages (a new file costs the same, and a descriptor and a
 * mapping besides), 690 us for fresh ones: too much for a loop.
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
	bool used; /* written to since shm_renew() */
	char *map;
};

struct shm_pool {
	struct list spare, out;
	unsigned nspare, nout, max;
	uint32_t size;
};

void shm_pool_init(struct shm_pool *, uint32_t size, unsigned max);
void shm_pool_free(struct shm_pool *); /* call it when no window is in use */
/* 0; -ENOBUFS: max are in use; -errno of the system, mostly no memory. */
int shm_get(struct shm_pool *, struct shm **);
/* false: there are enough spare ones; free it with shm_free() */
bool shm_put(struct shm_pool *, struct shm *);
int shm_renew(struct shm *, uint32_t size); /* 0 or -errno */
void shm_free(struct shm *, uint32_t size);

#endif
