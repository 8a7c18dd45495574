/* io/engine.h -- inside io/ only: what a loop, a file backend and the pools share.
 *
 *   op_submit() --> calls->start() --> OP_READY  the result is there; done() is due
 *                                      OP_TRY    to be tried when its turn comes (RECV, ACCEPT: so that
 *                                                one lent buffer is enough for all sockets)
 *                                      OP_PARKED waits for its socket
 *                                      OP_TIMER  waits for its deadline only
 *                                      OP_JOB    a thread or the kernel works for it; sees the job, never the op
 *
 * Every way out leads through io_complete(), and every callback is called by io_dispatch().
 */
#ifndef IO_ENGINE_H
#define IO_ENGINE_H

#include "base/clock.h"
#include "base/counter.h"
#include "base/must.h"
#include "io/file.h"
#include "io/io.h"

#define PAGE 4096ull

enum { OP_IDLE, OP_READY, OP_TRY, OP_PARKED, OP_TIMER, OP_JOB };

/* io_sock.hints */
enum {
	SOCK_REGISTERED = 1,
	SOCK_READABLE = 2, /* worth a recv: fresh, or an event said so and it was not drained since */
	SOCK_WRITABLE = 4,
	SOCK_HUNG = 8,     /* peer closed: readable for ever */
	SOCK_LISTENS = 16, /* registered as a listener */
	SOCK_SIM = 32,     /* no real descriptor behind it */
	SOCK_SHARED = 64,  /* a thread may have a duplicate: close(2) does not take it out of the epoll set */
	SOCK_BROKEN = 128, /* reset, or closed in both directions */
};

/* A descriptor of a backend's own (an eventfd, a ring): ready() on the loop at each edge of readability. */
struct io_watch {
	void (*ready)(struct io_watch *);
	uint32_t slot; /* the engine's; 0: not watched */
};

struct io_calls {
	void (*start)(struct io *, struct io_op *);
	bool (*try)(struct io *, struct io_op *);    /* true: op->res is there; false: moved on or parked */
	void (*park)(struct io *, struct io_op *);   /* until its socket is ready; then try() again */
	void (*unpark)(struct io *, struct io_op *);
	void (*ignore)(struct io *, struct io_sock *);         /* io_sock_ignore(); NULL: sim */
	void (*close_file)(struct io *, int fd, uint64_t dev);
	int (*watch)(struct io *, int fd, struct io_watch *); /* NULL: sim */
	void (*unwatch)(struct io *, struct io_watch *);      /* before *watch is freed; nothing if it is not watched */
	void (*run)(struct io *);
	void (*wake)(struct io *);
	void (*free)(struct io *);
};

/* Deadlines: a wheel of lists, one per tick.  Arming is a list_add, which happens once per parked op;
 * nothing is sorted.  2^23 ns = 8.4 ms; 4096 ticks = 34 s, longer ones are looked at once per turn. */
#define WHEEL_SHIFT 23
#define WHEEL_SLOTS 4096u

struct io_wheel {
	uint64_t tick; /* the last one that was looked at */
	uint64_t bits[WHEEL_SLOTS / 64]; /* set: perhaps not empty */
	struct list slot[WHEEL_SLOTS];
};

#define IO_SPARE_WINDOWS 16u  /* of io->window bytes, kept for reuse per loop */
#define IO_SPARE_CHUNKS 256u  /* of IO_CHUNK bytes */
#define IO_HELD_MAX (32u << 20)   /* io->held beyond which a sender whose socket is full keeps none */
#define IO_HELD_CHUNK (128u << 10) /* and what is read at a time then: about what a socket takes */
#define IO_FOLLOWS 2 /* a head and a file */
#define IO_CROWD 128 /* events of a round that take a connection out of the processor's cache before its turn comes again */
#define IO_LONG_SEND (128u << 10) /* takes longer than a request for a small file */
#define IO_SEND_FILE_MAX (2 * IO_WINDOW) /* 512 KiB: a tenth of a millisecond of the loop at memory speed */

struct io_spare {
	struct io_spare *next;
};

struct io_port;

struct io {
	const struct io_calls *calls;
	const struct file_backend *backend;
	void *backend_state;
	const char *fallback_why; /* the backend asked for was not to be had */
	uint32_t chunk, window;   /* bytes read at a time; in a buffer of windows */
	struct io_pools *pools;
	struct io_port *port; /* where threads put finished jobs; NULL: sim */
	uint64_t now, wall;   /* ns */
	struct list ready;
	uint64_t inflight;
	char *lent;           /* to the callback that is running */
	uint8_t follows;      /* left in the turn of a connection that is running: see io_follow() */
	bool crowded;         /* the engine's: this round has IO_CROWD events or more */
	const struct io_op *following; /* comes back in the same turn, before all others */
	struct io_spare *windows, *chunks;
	unsigned nwindows, nchunks;
	uint64_t held;        /* bytes of windows that senders have */
	uint64_t moved;       /* bytes of long sends in this round */
	struct counters *counters, own_counters;
	struct io_wheel wheel;
};

/* For engines. */
void io_init(struct io *, const struct io_calls *, const struct io_conf *);
int io_backend_open(struct io *, const struct io_conf *); /* once watch() works; the backend's fallback if need be */
void io_fini(struct io *);
void io_tick(struct io *);                 /* reads the clocks */
void io_expire(struct io *);               /* ends ops whose deadline has come */
int io_timeout_ms(struct io *);            /* until the next deadline, -1: none */
void io_dispatch(struct io *, unsigned budget);

/* For engines and backends. */
void io_complete(struct io_op *, int64_t res);          /* from any state: done() is due */
void io_complete_next(struct io_op *, int64_t res);     /* the same for a send, by io_follow() */
void io_finish_early(struct io_op *, int64_t res);      /* deadline or cancel: lets go of all it waits for */
void io_flush(struct io *);                             /* before the loop waits: what the backend collected goes out */
void io_count_read(struct io *, bool async);            /* a window was brought in off the loop, or served on it */
void io_arm(struct io_op *);                            /* its deadline counts from now on; may be repeated */
char *io_window_get(struct io *);                       /* io->window bytes on a page boundary, or NULL */
void *io_chunk_get(struct io *, size_t size);           /* size is the same for all callers */
void io_chunk_put(struct io *, void *);

static inline void
io_ready(struct io *io, struct io_op *op, uint8_t state)
{
	op->state = state;
	list_add_tail(&io->ready, &op->link);
}

/* Before all others that are ready. */
static inline void
io_ready_first(struct io *io, struct io_op *op, uint8_t state)
{
	op->state = state;
	list_add_head(&io->ready, &op->link);
}

/* A send that succeeded while it was submitted is called back next: up to 512 other requests would otherwise take its connection
 * out of the processor's cache in between.  Only IO_FOLLOWS times until another connection has its turn, so that pipelined
 * requests do not keep the loop.  A head and its file stay apart while the cache holds all connections of a round: measured with
 * 100 connections, a range of 10 kB costs 5 % less so, 100 kB 3 % (sendfile(2) beside sendfile(2)). */
static inline void
io_follow(struct io *io, struct io_op *op)
{
	bool whole = op->kind == IO_SEND && !op->more;

	if (io->follows == 0 || !(io->crowded || whole)) {
		io_ready(io, op, OP_READY);
		return;
	}
	io->follows--;
	io->following = op;
	io_ready_first(io, op, OP_READY);
}

#endif
