/* io/engine.h -- inside io/ only: shared by the loops, the file backends and the pools.
 *
 *   op_submit() --> calls->start() --> OP_READY   it has its result; done() is due
 *                                      OP_TRY     is tried when its turn comes (RECV, ACCEPT: one
 *                                                 lent buffer is enough for all sockets)
 *                                      OP_PARKED  waits for its socket
 *                                      OP_TIMER   waits for its deadline only
 *                                      OP_JOB     a thread or the kernel works on its job, and
 *                                                 never uses the op
 *
 * Every op ends through io_complete(), and io_dispatch() calls every callback.
 */
#ifndef IO_ENGINE_H
#define IO_ENGINE_H

#include "base/blocks.h"
#include "base/clock.h"
#include "base/must.h"
#include "io/counters.h"
#include "io/disk/health.h"
#include "io/file.h"
#include "io/io.h"

#define PAGE 4096ull

/* Kinds of io/sender.c only, after those of io/io.h.
 *
 * SEND_FILE   res: bytes accepted (> 0, perhaps fewer), 0 if the file ends before the range does;
 *             with file.goes_on -ETXTBSY if the file is not the one sent before
 * WRITABLE    res: 0 when the socket has room; sends nothing, replaces a SEND
 * PAUSE       res: -ETIMEDOUT after deadline_ms (this is its success); 0 when the connection is
 *             reset, or closed in both directions; replaces a SEND
 */
#define IO_SEND_FILE ((enum io_kind)(IO_TIMER + 1))
#define IO_WRITABLE  ((enum io_kind)(IO_TIMER + 2))
#define IO_PAUSE     ((enum io_kind)(IO_TIMER + 3))

enum { OP_IDLE, OP_READY, OP_TRY, OP_PARKED, OP_TIMER, OP_JOB };

/* io_sock.hints */
enum {
	SOCK_REGISTERED = 1,
	/* worth a recv: new, or an event came and the socket was not drained since */
	SOCK_READABLE = 2,
	SOCK_WRITABLE = 4,
	SOCK_HUNG = 8,     /* the peer closed: readable for ever */
	SOCK_LISTENS = 16, /* registered as a listener */
	SOCK_SIM = 32,     /* no real descriptor */
	/* A thread may have a duplicate: close(2) does not remove it from the epoll set. */
	SOCK_SHARED = 64,
	SOCK_READ = SOCK_SHARED, /* of a simulated one: the peer has read all */
	SOCK_BROKEN = 128,       /* reset, or closed in both directions */
};

/* A descriptor of a backend (an eventfd, a ring): ready() runs on the loop at each edge of
 * readability. */
struct io_watch {
	void (*ready)(struct io_watch *);
	uint32_t slot; /* of the engine; 0: not watched */
};

struct io_calls {
	void (*start)(struct io *, struct io_op *);
	/* true: op->res is set; false: moved on or parked */
	bool (*try)(struct io *, struct io_op *);
	/* until its socket is ready; then try() again */
	void (*park)(struct io *, struct io_op *);
	/* removes it from its socket; returns its result: res, unless the op has another one */
	int64_t (*unpark)(struct io *, struct io_op *, int64_t res);
	void (*ignore)(struct io *, struct io_sock *); /* io_sock_ignore(); NULL: sim */
	void (*close_file)(struct io *, int fd, uint64_t dev);
	int (*watch)(struct io *, int fd, struct io_watch *); /* NULL: sim */
	/* Before *watch is freed; no effect if it is not watched. */
	void (*unwatch)(struct io *, struct io_watch *);
	void (*run)(struct io *);
	void (*wake)(struct io *);
	void (*free)(struct io *);
};

/* Deadlines: a wheel of 4096 lists, one per tick of 8.4 ms (2^23 ns), 34 s in all.  A longer
 * deadline is looked at once per turn.  Arming is a list_add_tail(), once for each parked op;
 * nothing is sorted. */
#define WHEEL_SHIFT 23
#define WHEEL_SLOTS 4096u

struct io_wheel {
	uint64_t tick;                   /* the last one that was checked */
	uint64_t bits[WHEEL_SLOTS / 64]; /* bit set: perhaps not empty */
	struct list slot[WHEEL_SLOTS];
};

#define IO_SPARE_WINDOWS 16u           /* of io->window bytes, kept for reuse per loop */
#define IO_IDLE_WINDOWS  2u            /* of these, by a loop without requests */
#define IO_SPARE_CHUNKS  256u          /* of IO_CHUNK bytes */
#define IO_HELD_MAX      (32ull << 20) /* see io->held_max */
#define IO_HELD_PART     32u           /* ... or at most this part of the memory of the machine */
#define IO_HELD_CHUNK    (128u << 10)  /* bytes read at a time then: as much as a socket takes */
#define IO_FOLLOWS       2             /* a head and a file */
/* Events of a round that push a connection out of the processor's cache before its next turn. */
#define IO_CROWD     128
#define IO_LONG_SEND (128u << 10) /* takes longer than a request for a small file */
#define IO_CALLBACK  4096         /* one callback costs as much as sending this many bytes */
#define IO_RECEIVED  4            /* and a received byte, which a parser reads, as this many */
#define IO_EVENT     512          /* and a message in a received buffer: see io_events() */
/* A loop with jobs in threads that hold results looks for them by itself; twice as long as they
 * should be held (HELD_NS), so only if the next job of a thread is long. */
#define IO_LOOK_MS 4
/* 512 KiB: a tenth of a millisecond of the loop at memory speed */
#define IO_SEND_FILE_MAX (2 * IO_WINDOW)

struct io_spare {
	struct io_spare *next;
};

struct io_async; /* io/disk/async.h */
struct io_port;

struct io {
	const struct io_calls *calls;
	const struct file_backend *backend;
	void *backend_state;
	/* Of the backend: the kernel looks names up and reads windows; NULL: a thread does. */
	struct io_async *looks, *reads;
	const char *fallback_why; /* why the requested backend is not used */
	uint32_t chunk, window;   /* bytes read at a time; in a buffer of windows */
	struct io_pools *pools;
	struct io_port *port; /* where threads put finished jobs; NULL: sim */
	uint64_t now, wall;   /* ns */
	uint64_t wake_at;     /* ns, of io_wake_at(); 0: none */
	unsigned held_jobs;   /* in threads that may wake the loop later: see IO_LOOK_MS */
	struct io_health health;
	struct list ready;
	struct list *early; /* the last of those that go before all others; NULL: none yet */
	uint64_t inflight;
	char *lent; /* lent to the current callback */
	/* left in the turn of the current connection: see io_follow() */
	uint8_t follows;
	bool crowded;                  /* of the engine: this round has IO_CROWD events or more */
	const struct io_op *following; /* called back in the same turn, before all others */
	struct io_spare *windows, *chunks;
	unsigned nwindows, nchunks;
	struct blocks streams; /* of io/http2/ */
	uint64_t held;         /* bytes of windows that senders hold */
	/* above this, a sender whose socket is full keeps no window */
	uint64_t held_max;
	/* Bytes that the loop may send in this round, before it checks events again; a
	 * callback counts as IO_CALLBACK, and what it has received as IO_RECEIVED a byte, if
	 * that is more.  Otherwise many readers of 100 kB files could have 2048 windows sent
	 * while a small request waits, and one application that writes as fast as the loop
	 * reads has 2048 buffers parsed: 1.4 s with messages of 8 bytes.  Long sends have a
	 * part of it: see put_off() in io/loop/epoll_ops.c. */
	int64_t budget, long_budget;
	struct io_counters *counters, own_counters;
	struct io_wheel wheel;
};

/* For engines. */
void io_init(struct io *, const struct io_calls *, const struct io_conf *);
/* After watch() works; opens the backend's fallback if necessary. */
int io_backend_open(struct io *, const struct io_conf *);
void io_fini(struct io *);
void io_tick(struct io *);      /* reads the clocks */
void io_expire(struct io *);    /* ends ops whose deadline has passed */
int io_timeout_ms(struct io *); /* until the next deadline, -1: none */
/* runs callbacks; see struct io */
void io_dispatch(struct io *, int64_t budget);

/* For engines and backends. */
void io_complete(struct io_op *, int64_t res); /* from any state: done() is due */
/* likewise for a send or a connect, through io_follow() */
void io_complete_next(struct io_op *, int64_t res);
/* likewise, before all others but those of the same callback: its request ends, and its memory is
 * in the processor's cache */
void io_complete_first(struct io_op *, int64_t res);
/* deadline or cancel: removes the op from everything it waits for */
void io_finish_early(struct io_op *, int64_t res);
/* Before the loop waits: submits what the backend has collected. */
void io_flush(struct io *);
/* counts a window that was read off the loop, or served on it */
void io_count_read(struct io *, bool async);
/* its deadline runs from now on; may be called again */
void io_arm(struct io_op *);
void io_arm_again(struct io_op *); /* ... all of it: some of a parked op was done */
/* io->window bytes on a page boundary, or NULL */
char *io_window_get(struct io *);
void *io_chunk_get(struct io *, size_t size); /* all callers use the same size */
void io_chunk_put(struct io *, void *);
void io_drop_spares(struct io *); /* frees buffers that are kept for reuse, except a few */

/* A look by statx(2), with its flags: 0, -ETXTBSY or -ENODATA. */
int io_version_look(const struct io_version *then, int fd, int flags, struct io_version *now);
/* io_file_look(); *now is set for a watched file. */
int io_file_look_now(struct io_file *, struct io_version *now);

/* The hints that make a RECV or a HANDSHAKE worth a try. */
static inline uint8_t
recv_wants(const struct io_op *op)
{
	if (op->kind == IO_HANDSHAKE)
		return (op->handshake.writes ? SOCK_WRITABLE : SOCK_READABLE);
	if (!op->only_hangup)
		return (SOCK_READABLE);
	return (op->or_end ? SOCK_HUNG | SOCK_BROKEN : SOCK_BROKEN);
}

/* The hints that make another op of a connected socket worth a try. */
static inline uint8_t
send_wants(const struct io_op *op)
{
	return (op->kind == IO_PAUSE ? SOCK_BROKEN : SOCK_WRITABLE);
}

static inline void
io_ready(struct io *io, struct io_op *op, uint8_t state)
{
	op->state = state;
	list_add_tail(&io->ready, &op->link);
}

/* Calls the op back before all other ready ops. */
static inline void
io_ready_first(struct io *io, struct io_op *op, uint8_t state)
{
	op->state = state;
	list_add_head(&io->ready, &op->link);
}

static inline size_t
iov_total(const struct iovec *iov, int n)
{
	size_t total = 0;
	int i;

	for (i = 0; i < n; i++)
		total += iov[i].iov_len;
	return (total);
}

/* The loop has sent n of len bytes. */
static inline void
io_moved(struct io *io, uint64_t len, uint64_t n)
{
	io->budget -= (int64_t)n;
	if (len > IO_LONG_SEND)
		io->long_budget -= (int64_t)n;
}

/* A receive into buf, a window or NULL, has ended with n: bytes, 0 or -errno.  With bytes the op
 * takes the buffer, and they count for the budget; otherwise the buffer goes back. */
static inline void
io_received(struct io *io, struct io_op *op, char *buf, int64_t n)
{
	if (n <= 0) {
		io_give_back(io, buf);
		return;
	}
	op->buf = buf;
	if (buf != NULL && n > IO_CALLBACK / IO_RECEIVED) /* the callback counts for the others */
		io->budget -= n * IO_RECEIVED - IO_CALLBACK;
}

/* A send or connect that succeeded in op_submit() is called back next; otherwise up to 512 other
 * requests would push its connection out of the processor's cache.  Only IO_FOLLOWS times until
 * another connection has its turn, so that pipelined requests do not occupy the loop.  A head
 * with more to follow is called back next only in a crowded round (IO_CROWD).  With 100
 * connections the cache holds all, and heads first, then files, cost 5 % less for 10 kB, 3 %
 * less for 100 kB. */
static inline void
io_follow(struct io *io, struct io_op *op)
{
	bool whole = (op->kind == IO_SEND && !op->more) || op->kind == IO_CONNECT;

	if (io->follows == 0 || !(io->crowded || whole)) {
		io_ready(io, op, OP_READY);
		return;
	}
	io->follows--;
	io->following = op;
	io_ready_first(io, op, OP_READY);
}

#endif
