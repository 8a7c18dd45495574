/* io/io.h -- the one contract between those who wait and those who decide.
 *
 * op_submit() starts *op and returns.  op->done(op) then runs exactly once, later, from io_run():
 * after success, failure, deadline or cancel, and never from inside op_submit() or op_cancel().
 *
 *   Result   op->res: what the kind below says; -errno on failure, -ETIMEDOUT, -ECANCELED.
 *   Owner    between the two calls *op and all it points to belong to the engine.  Buffers of RECV and
 *            READ come from the engine and are lent until done() returns; io_keep() makes one yours,
 *            io_give_back() returns it.  After -ETIMEDOUT or -ECANCELED nothing of yours is touched
 *            any more, even if a thread is still stuck in the kernel.
 *   Units    deadline_ms milliseconds from submit, 0 for none; stamps are CLOCK_MONOTONIC ns.
 *   Thread   the thread that runs this loop; only io_wake() may be called from others.
 *   Zeroing  set kind, done and the fields of your kind; the rest is the engine's.  An op may be
 *            submitted again from inside its own done().
 *
 * How an engine keeps hot requests cheap (io/loop/epoll.c): sockets are edge-triggered and registered
 * when they first park, so a request that is already there costs one recv and no epoll_ctl; a RECV
 * on a socket known to be drained parks without asking the kernel again; a SEND is tried at once and
 * parks on EAGAIN; callbacks run after the whole batch of events was read.  Events carry a slot and a generation, so
 * one about a socket that was closed meanwhile finds nothing.
 *
 * Callbacks come in the order of their results, but a send that succeeded within op_submit() is called back next
 * (io_follow() in io/engine.h).  An op that was cancelled comes back before one that is submitted after op_cancel().
 */
#ifndef IO_IO_H
#define IO_IO_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include "base/list.h"
#include "base/text.h"

struct io;
struct io_op;
struct io_file;  /* io/file.h: an open regular file, counted */
struct io_pools; /* io/disk/pools.h: the "stat" and "read" pools of the process */
struct file_backend;

enum io_kind {
	IO_ACCEPT = 1, /* res: new fd, non-blocking; accept.peer filled. sock: the listening socket */
	IO_CONNECT,    /* res: 0; sock->fd is set from submit on, yours to IO_CLOSE even after failure.
	                * -EAGAIN: the backlog of a unix socket is full */
	IO_RECV,       /* res: bytes in recv.buf (> 0), 0 at end of stream */
	IO_HANGUP,     /* res: 0 when the connection is reset, or closed in both directions; reads nothing.  Takes the place of
	                * a RECV: no other of the two may be in flight */
	IO_WRITABLE,   /* res: 0 when the socket has room; sends nothing.  Takes the place of a SEND */
	IO_SEND,       /* res: bytes accepted (> 0), perhaps fewer than asked */
	IO_SEND_FILE,  /* res: bytes accepted (> 0, perhaps fewer), 0 when the file ends before the range does; with file.goes_on
	                * -ETXTBSY when it is another version than before */
	IO_OPEN,       /* res: new fd (regular file or directory; else -EACCES closed again), *open.stx filled as far as
	                * anything is known, stx_mode 0: nothing is */
	IO_STAT,       /* res: 0, *open.stx filled: openat2(O_PATH) and statx, nothing stays open */
	IO_READ,       /* res: bytes in op->buf (perhaps fewer than asked), 0 at end of file; len <= io_chunk() */
	IO_WARM,       /* res: bytes of the file that are in memory now (fewer at its end), 0 behind the end */
	IO_TEMP,       /* res: new fd, for reading and writing, of a file without a name below temp.root; the caller owns it */
	IO_WRITE,      /* res: bytes written (> 0, perhaps fewer).  The bytes are copied by op_submit() */
	IO_CLOSE,      /* res: 0; sock->fd is -1 then.  No other op of this sock may be in flight */
	IO_TIMER,      /* res: -ETIMEDOUT after deadline_ms (that is its success) */
};

/* A socket as its engine sees it; embedded in its owner, who gives it to io_sock_init() once. */
struct io_sock {
	int fd;
	uint8_t hints;         /* engine: registered, readable, writable, hung up */
	uint32_t slot;         /* engine: while registered, what events about it carry */
	struct io_op *rd, *wr; /* engine: ops parked on it */
	void *kept;            /* file backend: read for it, and so far sent in part; gone with IO_CLOSE */
};

/* Address of a peer, small enough to stay in an idle connection. */
union io_addr {
	sa_family_t family;
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct io_stamps {
	uint64_t submit, start, end; /* queued; a thread or the kernel (or the loop) took it; result was there */
	uint64_t opened;             /* OPEN that brought bytes along: when it was open; else 0 */
	uint64_t handed;             /* SEND_FILE whose bytes a thread had to read: when sending began */
};

/* What an OPEN of a regular file may bring along, since it will be wanted next: saves a second way to a thread and back. */
struct io_first {
	uint32_t keep; /* in: a file of at most so many bytes is read whole; not more than IO_WINDOW */
	bool warm;     /* in: of a longer one the first window is brought into memory */
	uint64_t shut; /* in: a directory, and a file of at most so many bytes that could be read as asked above, is closed again: res 0 */
	char *bytes;   /* out: from malloc, yours; NULL: there are none (yet: an engine need not do this) */
	uint32_t n;    /* out: of bytes; or of the file, from its beginning, known to be in memory */
	bool changing; /* out: it changed each time it was read, so there are no bytes */
	bool closed;   /* out: as asked by shut (an engine need not do this either) */
};

struct io_op {
	void (*done)(struct io_op *);
	enum io_kind kind : 8;
	uint8_t urgent : 1; /* OPEN, STAT: in the lane for re-checks, which cold look-ups cannot fill */
	uint8_t more : 1;   /* SEND, SEND_FILE: further bytes follow at once (MSG_MORE) */
	uint8_t spare : 1;  /* WARM: only by a thread that has nothing to do, else -EAGAIN */
	uint8_t threaded : 1; /* out: a thread was needed, or one of the kernel's */
	uint8_t state;      /* engine */
	uint32_t deadline_ms;
	uint32_t client;    /* who wants it: waiting jobs of different clients take turns (0 is one like any other) */
	int64_t res;
	struct io_sock *sock;
	union {
		struct { union io_addr *peer; } accept;                 /* NULL: not wanted */
		struct { const struct sockaddr *addr; socklen_t len; } connect;
		struct { char *buf; } recv;                             /* out */
		struct { const struct iovec *iov; int n; } send;
		struct { struct io_file *file; uint64_t off; uint32_t len; bool goes_on; /* bytes of it were sent before these */ } file;
		struct { int root; } temp;                              /* of io_root_open() */
		struct { struct io_file *file; uint64_t off; const char *p; uint32_t len; } write;
		struct { int root; const char *path; uint64_t resolve; struct statx *stx; struct io_first *first; } open;
	};
	char *buf;          /* READ: out, lent */
	/* the engine's */
	struct io *io;
	void *job;
	uint64_t expires_ns;
	struct list link, timer;
	struct io_stamps at;
};

#define IO_WINDOW (256u << 10) /* what is known to be in memory is known per window: what a wrong guess may cost */
#define IO_CHUNK_MIN 4096u
#define IO_CHUNK_MAX (1u << 20)

struct io_conf {
	struct io_pools *pools;       /* NULL: no files */
	const struct file_backend *backend;
	uint32_t chunk;               /* bytes of a file read at a time, .. IO_CHUNK_MAX, less than IO_CHUNK_MIN is that; 0: as the backend likes it */
	/* Backends that let the kernel work instead of threads: jobs of this loop it has at a time.  0: none */
	unsigned stat_jobs, read_jobs;
	unsigned per_device;          /* of each for one device; 0: all */
	unsigned max_queue, stuck_ms; /* as in io_pools_conf */
};

/* The loop of io/loop/epoll.c.  NULL: no descriptor or memory for it, and *err = -errno. */
struct io *io_new(const struct io_conf *, int *err);
void io_free(struct io *); /* nothing may be in flight but jobs whose ops have ended */

void op_submit(struct io *, struct io_op *);
void op_cancel(struct io *, struct io_op *); /* a wish: done() still comes */
void op_withdraw(struct io *, struct io_op *); /* cancels the op only if it is still queued */
/* One more client waits for the result: while it is queued, the op takes its turn with the one of the two that has fewer. */
void io_join(struct io *, struct io_op *, uint32_t client);
/* How far an op in flight is, for logs; takes a lock. */
enum io_phase { IO_WAITS, IO_RUNS, IO_READS }; /* for a thread; in one; that OPEN has the file and reads its first bytes */
enum io_phase io_phase(struct io *, const struct io_op *);
void io_run(struct io *);                    /* one round: wait, then callbacks */
/* The thread that ran the loop is about to end; files may fail with -EAGAIN from now on.  False: it must not, nor be joined: the
 * kernel works for it on a device that hangs, and would hold it until that answers.  It may sleep, and dies with the
 * process.  Blocks for a tenth of a second at most. */
bool io_leave(struct io *);
void io_wake(struct io *);                   /* any thread: makes io_run() return soon */
bool io_busy(const struct io *);             /* ops in flight */
uint64_t io_now(const struct io *);          /* CLOCK_MONOTONIC ns, read once a round */
uint64_t io_wall_s(const struct io *);       /* wall clock seconds, read once a round */
uint64_t io_wall_ns(const struct io *);      /* ... nanoseconds, of the clock that times files */

/* What the loop counts (file_reads, file_inline) goes to its owner's counters once they are named. */
struct counters;
struct counters *io_counters(struct io *);
void io_count_into(struct io *, struct counters *);

uint32_t io_chunk(const struct io *);        /* how much of a file is best read at a time */
char *io_keep(struct io_op *);               /* inside done() of RECV or READ */
void io_give_back(struct io *, char *buf);

void io_sock_init(struct io_sock *, int fd); /* fd -1: to be made by IO_CONNECT */
void io_sock_reset(int fd);                  /* closes a socket that no io_sock has, with RST: nothing of it stays in the kernel */
void io_sock_close(int fd);                  /* the same with FIN, unless another descriptor has the socket */
void io_sock_shutdown(struct io_sock *);     /* no more sending: FIN */
void io_sock_cork(struct io_sock *, bool on); /* TCP_CORK: partial segments wait (at most 200 ms) until off */
/* No accept of this listening socket may be in flight.  Connections then wake another loop that shares it, not this one; the next
 * IO_ACCEPT listens again. */
void io_sock_ignore(struct io *, struct io_sock *);
/* A second descriptor of the connection, for another loop: yours.  This one is to be closed.  -errno */
int io_sock_dup(struct io_sock *);
bool io_sock_alive(const struct io_sock *);  /* a cheap look (MSG_PEEK): false when the peer has closed or sent */

/* A directory that paths are opened beneath; at start-up, blocks.  Path "" is the root itself.
 * res of IO_OPEN beneath it: -EXDEV for a path (or link) that leaves it, -ELOOP for a refused link. */
int io_root_open(const char *dir, int *fdp);
void io_root_close(int fd);

#define IO_BENEATH 0x08ull          /* RESOLVE_BENEATH, with RESOLVE_NO_MAGICLINKS always added */
#define IO_NO_SYMLINKS 0x04ull      /* RESOLVE_NO_SYMLINKS */
#define IO_NOATIME (1ull << 63)     /* not a RESOLVE_ flag: O_NOATIME, and without it for files of other owners */

/* err is -errno of OPEN or STAT.  True if a retry would fail the same way. */
bool io_error_lasts(int err);

static inline void
op_init(struct io_op *op, enum io_kind kind, void (*done)(struct io_op *))
{
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->done = done;
	list_init(&op->link);
	list_init(&op->timer);
}

#endif
