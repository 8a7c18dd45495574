/* io/file/linux_aio.h -- linux-aio-sendfile, for its two files: linux_aio.c sends windows,
 * linux_aio_read.c reads them.
 *
 * Thread   the loop's, except what a read lends to its thread.
 */
#ifndef IO_FILE_LINUX_AIO_H
#define IO_FILE_LINUX_AIO_H

#include <libaio.h>
#include <pthread.h>
#include "io/disk/async.h"
#include "io/engine.h"
#include "io/shm.h"

enum reason { R_NONE, R_FOREIGN, R_REFUSED, R_MEMORY, REASONS };

struct linux_aio {
	struct io *io;
	struct io_async async;
	struct io_watch watch;
	struct shm_pool shm;
	io_context_t ctx;
	int eventfd;
	pthread_mutex_t lock;
	struct list filled; /* protected by lock */
};

/* Byte off of the file is at off % PAGE of the shared memory, so that pages match. */
struct read_job {
	struct io_job job; /* off, len: the requested range */
	struct linux_aio *la;
	struct shm *shm;
	uint32_t sent;
	unsigned parts; /* unfinished: the thread, the kernel */
	int64_t direct; /* the kernel's result */
	/* used by the thread until it is back */
	struct list back;
	struct iocb cb;
	bool no_direct, submitted;
	int64_t head, tail; /* read by the thread; head is everything if nothing was submitted */
	enum reason why;
	int err; /* of these: -errno, or 0 */
};

static inline uint64_t
page_down(uint64_t off)
{
	return (off & ~(PAGE - 1));
}

/* For io_async: r->job ends through io_async_done(), with r->shm if there was memory. */
void linux_aio_read_start(struct io_async *, struct io_job *);
void linux_aio_reads_back(struct io_watch *);      /* of la->eventfd */
void linux_aio_log_fallback(enum reason, int err); /* logs once why a fallback is used */

#endif
