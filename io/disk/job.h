/* io/disk/job.h -- inside io/ only: work that may take long, on its way to a thread or the kernel and back.
 *
 *   loop                              thread (or the kernel, see io/disk/async.h: then no port)
 *   io_job_push() --> queue       --> run()        touches the job only
 *   finish()      <-- port        <--              the op may be gone by then: job->op is NULL
 *
 * Owner    a job owns copies of all it needs, so a deadline or cancel ends the op at once while the thread
 *          stays stuck; what comes late (a descriptor, a buffer, a file reference) is put away by finish().
 * Thread   job->op belongs to the loop; a thread never looks at it.
 */
#ifndef IO_DISK_JOB_H
#define IO_DISK_JOB_H

#include <linux/openat2.h>
#include "base/rows.h"
#include "io/disk/pools.h"
#include "io/io.h"

enum io_lane { LANE_STAT, LANE_URGENT, LANE_READ, LANE_REREAD, LANES };

struct io_async;  /* io/disk/async.h */
struct io_device; /* io/disk/queue.c */

struct io_job {
	struct list link;
	void (*run)(struct io_job *);    /* in a thread: sets res */
	void (*finish)(struct io_job *); /* on the loop; NULL: nobody waits, the thread frees the job */
	void (*abandoned)(struct io_op *, struct io_job *); /* on the loop: its op has ended early; NULL: nothing to do */
	struct io_port *port;
	struct io_op *op;
	int64_t res;
	uint64_t start, end;
	struct io_file *file; /* counted */
	int fd;
	uint64_t off;
	uint32_t len;
	char *buf;            /* a window of the loop's */
	/* its place in a queue */
	uint64_t dev;         /* st_dev: whose disk it needs */
	bool moves;           /* run() found that it needs another device: dev is new, run() again */
	bool waits;           /* in the queue; under its lock */
	bool displaced;       /* it lost its place to a job of a client that has fewer */
	enum io_lane lane;
	struct io_async *async; /* the kernel does it, no thread */
	uint8_t flying;         /* bit per request that the kernel has, of a ring's job */
	struct io_device *device;
	struct rows_item turn;  /* of its client; since_ns: when it was pushed */
	/* OPEN and STAT: io/disk/open.h */
	bool only_stat;
	uint8_t tries;
	int root;
	struct open_how how;
	struct statx stx;
	struct io_first first;
	uint64_t opened; /* when bytes are read as well: the time between */
	char path[];
};

/* path NULL: none.  NULL: no memory. */
struct io_job *io_job_new(struct io *, struct io_op *, const char *path);
/* For a backend's own structure that begins with a job (and has no path): from malloc, it goes the way of all jobs. */
void io_job_init(struct io_job *, struct io *, struct io_op *);
/* For a thread of the lane: 0; -EAGAIN: refused (see io/disk/queue.h), or there are no pools; the job is still yours then.
 * A job that needs a disk has its dev set. */
int io_job_push(struct io *, struct io_job *, enum io_lane);
/* Puts a job where it will be done: 0, or -errno and it is still the caller's. */
typedef int io_push_fn(struct io *, struct io_job *);
int io_push_read(struct io *, struct io_job *); /* into the read pool */
int io_push_spare(struct io *, struct io_job *); /* the same, if a thread has nothing to do; else -EAGAIN */
struct io_reader {     /* who brings windows in */
	io_push_fn *push;
	io_push_fn *spare; /* for windows further ahead than the next; NULL: none are read */
};
/* Pushes it for op, which waits then; if that fails the op ends and the job is freed. */
void io_job_start(struct io_op *, struct io_job *, enum io_lane);
void io_job_start_by(struct io_op *, struct io_job *, io_push_fn *);
void io_job_abandon(struct io_op *);   /* its job goes on without it, or is taken out of the queue */
bool io_job_withdraw(struct io_op *);  /* true: the job was waiting in a queue and is gone */
void io_job_free(struct io *, struct io_job *); /* with its file reference, buffer and descriptor */
/* Their parts, for those who queue jobs elsewhere. */
void io_job_wait(struct io_op *, struct io_job *);             /* op waits for it from now on */
void io_job_refused(struct io_op *, struct io_job *, int err); /* ... no longer: it ends, the job is freed */
void io_job_finish(struct io_job *);                           /* stamps, then finish() */
bool io_job_waits(struct io_pools *, const struct io_job *);   /* in its queue */
void io_job_joined(struct io_pools *, struct io_job *, uint32_t client); /* queue_join() if it waits */
bool io_job_pull(struct io_pools *, struct io_job *);          /* true: it was still waiting and is yours again */

struct io_port *io_port_new(struct io *, int wakefd);
struct io *io_port_loop(const struct io_port *);
void io_port_drain(struct io_port *);  /* finish() of all that came back */
void io_port_wake(struct io_port *);   /* any thread */
void io_port_ref(struct io_port *);    /* any thread: one for each job that will be put */
void io_port_unref(struct io_port *);
void io_port_put(struct io_port *, struct io_job *); /* any thread: it has run; takes the reference */
void io_port_close(struct io_port *);  /* the loop ends; jobs still running put their things away themselves */

void io_start_open(struct io_op *);          /* IO_OPEN, IO_STAT, in a thread */
struct io_job *io_open_job(struct io_op *);  /* the job it pushes; NULL: no memory */
void io_file_close_job(struct io *, int fd, uint64_t dev); /* closes it in a thread, or here if there is no other way */
void io_file_destroy(struct io_file *, struct io *); /* the last reference has gone; io NULL: closes it here */
uint64_t io_dev_of(int fd);                  /* st_dev; never waits */
uint64_t io_file_dev(struct io_file *);      /* the same, asked once */

/* READ, for backends: in a thread; or from the page cache if that needs no waiting, else by a job. */
void io_read_pool(struct io_op *);
void io_read_cached(struct io_op *, io_push_fn *);
/* SEND_FILE, for backends: from the loop, after a job has brought in what is not known to be in memory. */
void io_send_warm(struct io *, struct io_op *, const struct io_reader *);
/* SEND_FILE: a thread reads and sends, at most io_chunk() bytes.  async: how that is counted. */
void io_send_pool(struct io_op *, bool async);
/* In a thread.  Bytes (fewer at the end of the file) or -errno.  The kernel starts on `ahead`
 * bytes behind them. */
int64_t io_read_window(int fd, char *buf, uint32_t len, uint64_t off, uint32_t ahead);
/* The same without the bytes: they are in memory then. */
int64_t io_warm_window(int fd, uint32_t len, uint64_t off);
void io_will_need(int fd, uint64_t off, uint64_t end); /* in a thread: the kernel starts on all of it */
#define IO_KERNEL_READ (128ull << 10) /* ... in pieces of this size */
void io_start_warm(struct io_op *); /* IO_WARM */
void io_start_temp(struct io_op *);  /* IO_TEMP */
void io_start_write(struct io_op *); /* IO_WRITE */

/* What the page cache holds; neither waits.  1: all of it, 0: not, -errno. */
int io_pages_counted(int fd, uint64_t off, uint64_t len); /* those that are still being read count.  -ENOSYS: Linux before 6.5, or not for us */
int io_range_cached(int fd, uint64_t from, uint64_t to);  /* all can be had now.  -EOPNOTSUPP: it cannot be known of FUSE, NFS */

/* Bytes from off on, at most len, that may be sent without waiting for a disk; 0: ask a thread.  Asks
 * the kernel once per window and second. */
uint64_t io_file_resident(struct io_file *, uint64_t off, uint64_t len);
/* The lane for reading what is not known to be there: LANE_REREAD when it was there lately and the kernel still counts all
 * its pages, so that a hot file does not wait behind cold ones for a thread to say so again. */
enum io_lane io_file_read_lane(struct io_file *, uint64_t off, uint64_t len);

#endif
