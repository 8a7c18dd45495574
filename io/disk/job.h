/* io/disk/job.h -- inside io/ only: work that may take long, and its way to a thread or the kernel
 * and back.
 *
 *   loop                              thread (or the kernel, see io/disk/async.h: then no port)
 *   io_job_push() --> queue       --> run()        uses the job only
 *   finish()      <-- port        <--              the op may be gone by then: job->op is NULL
 *
 * Owner    a job owns copies of everything it needs, so a deadline or cancel ends the op at once
 *          while the thread stays stuck. finish() releases late results (a descriptor, a buffer, a
 *          file reference).
 * Thread   job->op belongs to the loop; a thread never uses it.
 */
#ifndef IO_DISK_JOB_H
#define IO_DISK_JOB_H

#include <linux/openat2.h>
#include "base/fair_queue.h"
#include "io/disk/pools.h"
#include "io/io.h"

enum io_lane { LANE_STAT, LANE_URGENT, LANE_READ, LANE_REREAD, LANE_WORK, LANE_TLS, LANES };

struct held;      /* io/hotset.h */
struct io_async;  /* io/disk/async.h */
struct io_device; /* io/disk/queue.c */
struct io_queue;

struct io_job {
	struct list link;
	void (*run)(struct io_job *); /* in a thread: sets res */
	/* On the loop; NULL: nobody waits, and the thread frees the job. */
	void (*finish)(struct io_job *);
	/* On the loop: its op has ended early; NULL: no action. */
	void (*abandoned)(struct io_op *, struct io_job *);
	/* Any thread, instead of finish(): the loop has ended; releases what only this job has.
	 * NULL: it has nothing. */
	void (*orphaned)(struct io_job *);
	struct io *io; /* for finish(); the loop may have ended during run() */
	struct io_port *port;
	struct io_op *op;
	int64_t res;
	uint64_t start, end;
	bool awake;           /* as in io_stamps */
	struct io_file *file; /* with a reference */
	int fd;
	uint64_t off;
	uint32_t len;
	char *buf; /* a window of the loop */
	/* The job's place in a queue. */
	uint64_t dev; /* st_dev of the disk it needs */
	/* run() found that it needs another device: dev has changed, and run() is called again. */
	bool moves;
	bool must_run;          /* even if its op has ended */
	bool waits;             /* in the queue; protected by its lock */
	bool displaced;         /* displaced by a job of a client that has fewer */
	enum io_lane lane;      /* the threads that do it */
	bool spare;             /* only by an idle thread */
	bool held;              /* counted in held_jobs of its loop */
	struct io_async *async; /* the kernel does it; NULL: a thread */
	uint8_t flying;         /* a bit per request in the kernel, for jobs of a ring */
	struct io_queue *queue; /* its queue; NULL: none yet */
	struct io_device *device;
	struct fair_queue_item turn; /* in the row of its client; since_ns: time of the push */
	/* OPEN and STAT: io/disk/open.h */
	bool only_stat;
	bool unmarks, marks; /* O_NOATIME is wanted; the file's owner is another user */
	bool links;          /* IO_LINKS */
	bool given;          /* IO_GIVEN */
	bool walks;          /* by io/disk/links.h */
	bool names;          /* IO_REAL_NAME */
	bool named;          /* there may be a link in the path, so first.real is asked for */
	bool at_once;        /* on the loop: an open that would wait fails instead */
	uint8_t tries;
	int root;
	struct open_how how;
	struct statx stx;
	struct io_first first;
	uint64_t opened; /* if bytes are read as well: the time between */
	char path[];
};

/* path NULL: none.  NULL: no memory. */
struct io_job *io_job_new(struct io *, struct io_op *, const char *path);
/* For a struct that begins with a job, made by malloc: it is freed like a job. */
void io_job_init(struct io_job *, struct io *, struct io_op *);
/* A job with run() and finish(), for an op.  NULL: no memory, and the op ends with -ENOMEM. */
struct io_job *io_job_for(struct io_op *, const char *path, void (*run)(struct io_job *),
    void (*finish)(struct io_job *));
/* Sets the part of the file that it needs. */
void io_job_set_file(struct io_job *, struct io_file *, uint64_t off, uint32_t len);
/* To a thread of j->lane, or to the kernel.  A job that needs a disk has its dev set.  0, or the
 * job has ended with an error: -EAGAIN if it was refused (see io/disk/queue.h), if no thread is
 * idle (j->spare), or if there are no pools; -ENOMEM. finish() was called then, and a job without
 * finish() was freed. */
int io_job_push(struct io_job *);
void io_job_wait(struct io_op *, struct io_job *);  /* op waits for the job from now on */
void io_job_start(struct io_op *, struct io_job *); /* op waits for the job, which is pushed */
/* The job goes on without its op, or is removed from the queue. */
void io_job_abandon(struct io_op *);
bool io_job_withdraw(struct io_op *); /* true: the job was in a queue, and is freed */
void io_job_free(struct io_job *);    /* with its file reference, buffer and descriptor */
void io_job_finish(struct io_job *);  /* sets stamps, then calls finish() */

/* Takes wakefd, unless it fails: a thread may still ring when the loop has ended. */
struct io_port *io_port_new(struct io *, int wakefd);
void io_ring(int eventfd);            /* any thread: makes it readable */
void io_port_drain(struct io_port *); /* finish() of all jobs that came back */
void io_port_wake(struct io_port *);  /* any thread */
void io_port_ref(struct io_port *);   /* any thread: one for each job that will be put */
void io_port_unref(struct io_port *);
/* Any thread: the job has run; takes the reference. */
void io_port_put(struct io_port *, struct io_job *);
/* The same in two steps, for several jobs: all are given before a loop is woken.  The job is freed
 * in between if its loop looks. */
void io_port_give(struct io_port *, struct io_job *);
void io_port_tell(struct io_port *);
/* The loop ends; jobs that still run release their resources themselves. */
void io_port_close(struct io_port *);

void io_start_open(struct io_op *); /* IO_OPEN */
/* Closes it in a thread, or here if that is impossible. */
void io_file_close_job(struct io *, int fd, uint64_t dev);
/* The last reference was released; io NULL: closes it here. */
void io_file_destroy(struct io_file *, struct io *);
uint64_t io_dev_of(int fd);             /* st_dev; never waits */
uint64_t io_file_dev(struct io_file *); /* likewise, and remembers it */

void io_read_pool(struct io_op *); /* READ, for backends: always in a thread */
/* READ, for backends: from the page cache if that does not wait, otherwise by the backend. */
void io_read_cached(struct io_op *);
/* SEND_FILE, for backends: from the loop, if the bytes can be copied without waiting; else a thread
 * reads and sends. */
void io_send_warm(struct io_op *);
/* SEND_FILE: a thread of the lane reads and sends, at most io_chunk() bytes.  async: the counter to
 * use. */
void io_send_pool(struct io_op *, enum io_lane, bool async);
/* In a thread.  Returns bytes (fewer at the end of the file) or -errno.  The kernel starts to read
 * `ahead` bytes after them. */
int64_t io_read_window(int fd, char *buf, uint32_t len, uint64_t off, uint32_t ahead);
/* As io_read_window(), without a buffer: the bytes are in memory then. */
int64_t io_warm_window(int fd, uint32_t len, uint64_t off);
/* The two as run() of a job: len bytes of its file, from off.  io_read_finish() ends the op with
 * the bytes, if there are any. */
void io_read_run(struct io_job *);
void io_warm_run(struct io_job *);
void io_read_finish(struct io_job *);
/* in a thread: the kernel starts to read all of it */
void io_will_need(int fd, uint64_t off, uint64_t end);
#define IO_KERNEL_READ (128ull << 10) /* ... in pieces of this size */
void io_start_warm(struct io_op *);   /* IO_READ, only_warm */
void io_start_temp(struct io_op *);   /* IO_OPEN without a path */
void io_start_take(struct io_op *);   /* IO_OPEN with removes */
void io_start_write(struct io_op *);  /* IO_WRITE */
void io_start_work(struct io_op *);   /* IO_WORK */

/* Never waits.  1: every page is in the page cache or on its way; 0: not every one; -ENOSYS: Linux
 * before 6.5, or not allowed. */
int io_pages_counted(int fd, uint64_t off, uint64_t len);
/* Some of these pages are not written back: a writer that has mapped the file may write to them
 * again without a new time.  False if the kernel does not count for us, too. */
bool io_pages_dirty(int fd, uint64_t off, uint64_t len);
/* The kernel counts for us, and some of these pages are gone.  Ask it before RWF_NOWAIT, which
 * starts to read those pages, and sleeps if the queue of the device is full. */
bool io_pages_gone(int fd, uint64_t off, uint64_t len, uint64_t size);
/* 1: all bytes can be had without waiting; 0: not all; -EOPNOTSUPP: unknown (FUSE, NFS, tmpfs). */
int io_range_cached(int fd, uint64_t from, uint64_t to);

/* True if the loop may look for its bytes in the page cache: they are asked for with
 * preadv2(RWF_NOWAIT), on a device that is fit (io/disk/health.h). */
bool io_file_may_look(struct io_file *);
/* Copies bytes that the page cache has, on the loop: their number, fewer at the end of the file or
 * if the others are not there; -EAGAIN, or another -errno: a thread reads them. */
int64_t io_look_for(struct io_file *, char *buf, uint32_t len, uint64_t off);
/* A thread has read some of the window lately: the file is cold, and its next windows are worth
 * reading ahead. */
bool io_file_was_read(struct io_file *, uint64_t off);
/* The loop has not found bytes of this window. */
void io_file_missed(struct io_file *, uint64_t off);
/* The lane for reading bytes not known to be in memory: LANE_REREAD if they were there lately
 * and the kernel still counts all their pages, so that a hot file does not wait for a thread
 * behind cold files. */
enum io_lane io_file_read_lane(struct io_file *, uint64_t off, uint64_t len);

/* The window of these bytes is wanted.  Returns it with a reference if the server holds it,
 * otherwise NULL.  A thread meanwhile reads a window that is wanted again. */
struct held *io_file_held(struct io_file *, uint64_t off);

#endif
