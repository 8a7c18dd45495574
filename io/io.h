/* io/io.h -- the contract of all waiting: submit an op, get one callback.
 *
 * op_submit() starts *op and returns.  op->done(op) then runs exactly once, later, from io_run():
 * after success, failure, deadline or cancel, and never from inside op_submit() or op_cancel().
 *
 *   Result   op->res: see the kinds below; -errno on failure, -ETIMEDOUT, -ECANCELED.
 *   Owner    between the two calls *op and everything it points to belong to the engine.  Buffers
 *            of RECV and READ come from the engine and are lent until done() returns; io_keep()
 *            makes one yours, io_give_back() returns it.  After -ETIMEDOUT or -ECANCELED the
 *            engine does not touch your memory any more, even if a thread is still stuck in the
 *            kernel.
 *   Units    deadline_ms milliseconds from submit, 0 for none; stamps are CLOCK_MONOTONIC ns.
 *   Thread   the thread that runs this loop; only io_wake() may be called from others.
 *   Zeroing  set kind, done and the fields of your kind; the rest is the engine's.  An op may be
 *            submitted again from inside its own done().
 *
 * How an engine keeps hot requests cheap (io/loop/epoll.c): sockets are edge-triggered and
 * registered when they first park, so a request that has arrived costs one recv and no epoll_ctl.
 * A RECV on a drained socket parks without a system call.  A SEND is tried at once and parks on
 * EAGAIN.  Callbacks run after the whole batch of events was read.  Events carry a slot and a
 * generation, so an event of a closed socket is ignored.
 *
 * Callbacks come in the order of their results, except that a send or a connect that succeeded in
 * op_submit() is called back next (io_follow() in io/engine.h).  A cancelled op comes back before
 * any op that is submitted after op_cancel().
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
struct io_file;      /* io/file.h: an open regular file, counted */
struct io_pools;     /* io/disk/pools.h: the "stat" and "read" pools of the process */
struct io_secure;    /* of io/tls/tls.h: certificate and settings of a listening socket */
struct tls_verifier; /* io/tls/verifier.h */
struct io_transport; /* io/transport.h */
struct file_backend;

/* Why a handshake failed with -EPROTO. */
enum io_handshake_fault {
	SHAKE_OTHER,
	SHAKE_HTTP,           /* plain HTTP */
	SHAKE_NOT_TLS,        /* neither */
	SHAKE_NOTHING_COMMON, /* no version, cipher, group or signature that both have */
	SHAKE_ALERT,          /* the peer ended it, mostly because of the certificate */
};

enum io_kind {
	/* res: new fd, non-blocking; accept.peer filled. sock: the listening socket.  A failure is
	 * one of this process or machine, such as -EMFILE; the failure of one client is skipped */
	IO_ACCEPT = 1,
	/* res: 0; sock->fd is set from submit on, and is yours to close even after a failure.
	 * -EAGAIN: the backlog of a unix socket is full */
	IO_CONNECT,
	/* res: bytes in op->buf (> 0), 0 at end of stream.  only_hangup: reads nothing; res 0 when
	 * the connection is reset, or closed in both directions; or_end: res 1 when the peer sends
	 * no more, even if bytes are left to read.  drops, only for TCP: the kernel drops up to
	 * recv.drop bytes instead of copying them; res: their number, op->buf NULL.  One RECV at a
	 * time
	 */
	IO_RECV,
	/* res: bytes accepted (> 0), perhaps fewer than requested */
	IO_SEND,
	/* res: new fd of a regular file or directory; -EACCES for other kinds.  *open.stx has the
	 * known facts; none are known if stx_mode is 0. only_stat: res 0, nothing stays open and
	 * the file need not be readable. open.path NULL: a new file without a name below
	 * open.root, for reading and writing. removes: a regular file, whose name is removed
	 * before the op ends; a deadline or cancel ends the op, not the removal
	 */
	IO_OPEN,
	/* res: bytes in op->buf (perhaps fewer than requested), 0 at end of file; len <=
	 * io_chunk(). only_warm: op->buf stays NULL; res: bytes of the file that are in memory
	 * now */
	IO_READ,
	/* res: bytes written (> 0, perhaps fewer).  op_submit() copies the bytes */
	IO_WRITE,
	/* res: 0; work.work->run() has run in a thread.  -EAGAIN: the queue refused it, and it
	 * has not run.  After -ETIMEDOUT or -ECANCELED it may still run */
	IO_WORK,
	/* res: 0; from now on the socket carries its bytes as handshake.with says.  -EPROTO: the
	 * peer does not agree, or does not speak this protocol; -EAGAIN: too many others wait for
	 * a thread.  handshake.why then says more.  deadline_ms is for all steps together.  Only
	 * once */
	IO_HANDSHAKE,
	IO_CLOSE, /* res: 0; sock->fd is -1 then.  No other op of this sock may be in flight */
	IO_TIMER, /* res: -ETIMEDOUT after deadline_ms (this is its success); 0: see op_soon() */
};

/* A socket as its engine sees it; embedded in its owner, which calls io_sock_init() once. */
struct io_sock {
	int fd;
	uint8_t hints;         /* engine: registered, readable, writable, hung up */
	uint32_t slot;         /* engine: the data of its events, while it is registered */
	struct io_op *rd, *wr; /* engine: ops parked on it */
	/* file backend: bytes read for it and sent in part; freed by IO_CLOSE */
	void *kept;
	struct io_transport *transport; /* engine: see IO_HANDSHAKE; NULL: plain bytes */
};

/* Address of a peer, small enough to stay in an idle connection. */
union io_addr {
	sa_family_t family;
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct io_stamps {
	/* queued; taken by a thread, the kernel or the loop; result available */
	uint64_t submit, start, end;
	uint64_t opened; /* OPEN that also read bytes: when the file was open; else 0 */
	/* A send whose bytes a thread had to read: when sending began. */
	uint64_t handed;
	/* A thread has run it and never went to sleep: no disk made it wait.  Only with
	 * tells_awake of the pools. */
	bool awake;
};

/* No smaller file is dropped from memory: the check of what is in memory may itself bring a page
 * back. */
#define IO_FORGET_MIN (16u << 10)

/* What an OPEN of a regular file also does, because it is needed next: saves a second trip to a
 * thread. */
struct io_first {
	/* In: a file of at most this many bytes is read whole; at most IO_WINDOW. */
	uint32_t keep;
	bool warm; /* in: the first window of a longer file is read into memory */
	/* In: warm reads no byte of a file with more than this many; 0: of any file. */
	uint64_t warm_most;
	/* In: a directory, and a file of at most this many bytes that was read as requested above,
	 * is closed again: res 0. */
	uint64_t shut;
	/* Out: from malloc, yours; NULL: none (an engine may ignore the request). */
	char *bytes;
	/* Out: number of bytes; or bytes of the file, from its beginning, known to be in memory. */
	uint32_t n;
	/* In: a file of IO_FORGET_MIN to this many bytes is dropped from memory; 0: none is. */
	uint64_t forget;
	bool forgotten; /* out: the file is not in memory now */
	bool unmarked;  /* out: reading the file again writes no access time soon */
	bool changing;  /* out: the file changed during each read, so there are no bytes */
	bool closed;    /* out: closed because of shut (an engine may ignore that request) */
	/* Out, with IO_REAL_NAME: the path of a regular file that a symbolic link led to, without
	 * links; from malloc, yours.  NULL: there is no link in the name. */
	char *real;
};

struct io_op {
	void (*done)(struct io_op *);
	enum io_kind kind : 8;
	uint8_t only_hangup : 1; /* RECV */
	uint8_t or_end : 1;      /* RECV, only_hangup */
	uint8_t only_stat : 1;   /* OPEN */
	uint8_t removes : 1;     /* OPEN: follows no link, and stays on the root's file system */
	uint8_t only_warm : 1;   /* READ */
	/* OPEN: in the lane for re-checks, which cold look-ups cannot fill. */
	uint8_t urgent : 1;
	uint8_t more : 1;   /* SEND: more bytes follow at once (MSG_MORE) */
	uint8_t large : 1;  /* RECV: the socket brings many bytes; one call may take more */
	uint8_t little : 1; /* RECV: at most 4 KiB, because the rest may be dropped */
	uint8_t drops : 1;  /* RECV */
	uint8_t cuts : 1;   /* CLOSE: bytes are missing, and the peer must not take it for an end */
	uint8_t spare : 1;  /* only_warm: by an idle thread, else -EAGAIN */
	uint8_t pages : 1;  /* SEND: parts from send.first on are sent by reference */
	uint8_t gives : 1;  /* SEND: send.fd goes with the first byte */
	uint8_t threaded : 1; /* out: needed a thread, or a worker of the kernel */
	uint8_t state;        /* engine */
	uint32_t deadline_ms;
	/* The client of the op: waiting jobs of different clients take turns (0 is one client). */
	uint32_t client;
	int64_t res;
	struct io_sock *sock;
	union {
		struct {
			union io_addr *peer;
		} accept; /* NULL: not needed */
		struct {
			const struct sockaddr *addr;
			socklen_t len;
			const struct sockaddr *from; /* of this host, same family; NULL: any */
		} connect;
		struct {
			uint64_t drop;
		} recv;
		struct {
			const struct iovec *iov;
			int n;
			/* pages: res is -EAGAIN if the socket is full.  The memory of this part and
			 * of those after it does not change, even when the op is done, until its
			 * pages are given back to the system. */
			int first;
			/* gives: a descriptor (SCM_RIGHTS), for unix sockets and not with pages.
			 * The peer has a copy as soon as res > 0; this one stays yours.
			 * -ETOOMANYREFS: too many such copies are still to be received. */
			int fd;
		} send;
		struct {
			struct io_file *file;
			uint64_t off;
			uint32_t len;
			bool goes_on;           /* bytes of the file were sent before */
			struct io_proof *proof; /* SEND_FILE: what was sent; io/proof.h */
		} file;
		struct {
			struct io_file *file;
			uint64_t off;
			const char *p;
			uint32_t len;
		} write;
		struct {
			struct io_work *work;
			struct io_file *file; /* that it reads; NULL: none */
			/* The work asks a disk as a look-up beneath root does. */
			bool looks;
			int root;
		} work;
		struct {
			const struct io_secure *with;
			/* NULL, or what takes its place for a host that the client names; returns
			 * NULL: nothing. */
			const struct io_secure *(*choose)(struct io_op *, struct text host);
			/* Of certificates of clients; NULL: they need none.  choose() may change
			 * it. */
			struct tls_verifier *verifier;
			/* Directory of the certificates for "acme-tls/1"; NULL: none.  choose()
			 * may change it. */
			const char *challenges;
			/* Received on the socket before; copied by op_submit(). */
			struct text early;
			const char *why;  /* out: of a failure, a constant text, or NULL */
			bool resumed;     /* out: the session goes on from one before */
			bool challenge;   /* out: it was for "acme-tls/1", nothing follows */
			uint8_t fault;    /* out: enum io_handshake_fault */
			uint16_t version; /* out: 0x0303 is TLS 1.2, 0x0304 TLS 1.3 */
			/* The client may choose HTTP/2: see io_sock_is_http2(). */
			bool http2;
			bool writes; /* engine: waits until the socket is writable */
		} handshake;
		struct {
			int root; /* of io_root_open() */
			const char *path;
			uint64_t resolve;
			struct statx *stx;
			struct io_first *first;
		} open;
	};
	char *buf; /* RECV, READ: out, lent */
	/* the engine's */
	struct io *io;
	void *job;
	uint64_t expires_ns;
	struct list link, timer;
	struct io_stamps at;
};

/* Computation that is too long for the loop.  Made with refs 1; the engine counts a reference from
 * submit until run() has returned or will not be called.  Between these only run() uses it. */
struct io_work {
	void (*run)(struct io_work *);
	void (*free)(struct io_work *); /* of the last reference, in any thread */
	uint32_t refs;                  /* atomic */
	/* Set by run(): run() is called again, after the jobs of other clients, on device dev
	 * unless that is 0. */
	bool again;
	uint64_t dev;
};
void io_work_put(struct io_work *); /* NULL is allowed */

/* Files are read, held and sent in windows. */
#define IO_WINDOW    (256u << 10)
#define IO_CHUNK_MIN 4096u
#define IO_CHUNK_MAX (1u << 20)

struct io_conf {
	struct io_pools *pools; /* NULL: no files */
	const struct file_backend *backend;
	/* Bytes of a file read at a time, from IO_CHUNK_MIN to IO_CHUNK_MAX; 0: the backend's
	 * default. */
	uint32_t chunk;
	/* Backends that use the kernel instead of threads: jobs of this loop at a time.  0:
	 * none. */
	unsigned stat_jobs, read_jobs;
	unsigned per_device;          /* of each, for one device; 0: all */
	unsigned max_queue, stuck_ms; /* see io_pools_conf */
};

/* The loop of io/loop/epoll.c.  NULL: no descriptor or memory for it, and *err = -errno. */
struct io *io_new(const struct io_conf *, int *err);
void io_free(struct io *); /* only jobs whose ops have ended may be in flight */

void op_submit(struct io *, struct io_op *);
/* Calls back after the ops that are ready now: for results that must not come inside a call. */
void op_soon(struct io *, struct io_op *, void (*done)(struct io_op *));
/* A wish: done() still comes, and a cancelled ACCEPT may bring a connection. */
void op_cancel(struct io *, struct io_op *);
void op_withdraw(struct io *, struct io_op *); /* cancels the op only if it is still queued */
/* Another client waits for the same result: a queued op moves to the row of the client with
 * fewer jobs. */
void io_join(struct io *, struct io_op *, uint32_t client);
enum io_phase {
	IO_WAITS, /* for a thread */
	IO_RUNS,  /* in a thread */
	IO_READS, /* an OPEN has the file and reads its first bytes */
};
/* Progress of an op in flight, for logs; takes a lock. */
enum io_phase io_phase(struct io *, const struct io_op *);
void io_run(struct io *); /* one round: wait, then callbacks */
/* The thread that ran the loop is about to end; from now on file ops may fail with -EAGAIN.  False:
 * the thread must neither end nor be joined, because the kernel works for it on a hung device and
 * would hold it until that answers.  The thread may sleep, and ends with the process.  Blocks for
 * a tenth of a second at most. */
bool io_leave(struct io *);
void io_wake(struct io *); /* any thread: makes io_run() return soon */
/* The next io_run() waits at most until then, to the microsecond where the kernel can (Linux 5.11),
 * else to the millisecond.  For schedules that are finer than IO_TIMER. */
void io_wake_at(struct io *, uint64_t mono_ns);
/* In a callback: n of many small messages in its buffer were read, so the round ends sooner. */
void io_events(struct io *, unsigned n);
bool io_busy(const struct io *);        /* ops in flight */
uint64_t io_now(const struct io *);     /* CLOCK_MONOTONIC ns, read once a round */
uint64_t io_wall_s(const struct io *);  /* wall clock seconds, read once a round */
uint64_t io_wall_ns(const struct io *); /* ... nanoseconds, of the clock that times files */

/* Average load of the machine in the last minute, in hundredths; 0: unknown.  Never waits. */
unsigned io_machine_load(void);

/* The loop counts file_reads and file_inline in the counters of its owner, when they are set. */
struct io_counters;
void io_count_into(struct io *, struct io_counters *);

uint32_t io_chunk(const struct io *); /* the best number of bytes to read at a time */
char *io_keep(struct io_op *);        /* call it inside done() of RECV or READ */
void io_give_back(struct io *, char *buf);

/* Closes at once: a listener, a root, or a socket without io_sock (with FIN, unless the socket
 * has another descriptor). */
void io_close_fd(int fd);
/* Closes in a thread: a file or directory without io_file. */
void io_close_later(struct io *, int fd);
/* A second descriptor of an open file, without a question to its file system; -errno. */
int io_fd_dup(int fd);

void io_sock_init(struct io_sock *, int fd); /* fd -1: IO_CONNECT will make the socket */
/* Closes a socket without io_sock with RST: it leaves no state in the kernel. */
void io_sock_reset(int fd);
void io_sock_shutdown(struct io_sock *); /* no more sending: FIN */
/* The same when bytes are missing: a peer that shook hands can tell this from an end. */
void io_sock_cut(struct io_sock *);
/* The peer has chosen HTTP/2 in its handshake. */
bool io_sock_is_http2(const struct io_sock *);
/* The peer ends with bytes that are not its application's, so some may still come. */
bool io_sock_says_end(const struct io_sock *);
/* No accept of this listening socket may be in flight.  From now on connections wake another loop
 * that shares it, not this one; the next IO_ACCEPT listens again. */
void io_sock_ignore(struct io *, struct io_sock *);
/* A second descriptor of the connection, for another loop; it is yours, and this one must be
 * closed.  -errno; -EBUSY if bytes wait to be sent. */
int io_sock_dup(struct io_sock *);
/* What IO_HANDSHAKE made moves with the second descriptor: yours until plug or free.  NULL: plain
 * bytes. */
struct io_transport *io_sock_unplug(struct io_sock *);
void io_sock_plug(struct io_sock *, struct io_transport *); /* NULL is allowed */
void io_transport_free(struct io_transport *);              /* NULL is allowed */
/* The address of this side; never waits.  False: none. */
bool io_sock_local(const struct io_sock *, union io_addr *);
/* a cheap check (MSG_PEEK): false if the peer has closed or sent bytes */
bool io_sock_alive(const struct io_sock *);
/* The peer has read all that was sent: 1; it has not: 0; the socket cannot tell (TCP): -1. */
int io_sock_was_read(const struct io_sock *);

/* Opens a directory for paths beneath it; at start-up, may block.  Path "" is the root itself.  res
 * of IO_OPEN beneath it: -EXDEV for a path (or link) that leaves it, -ELOOP for a refused link. */
int io_root_open(const char *dir, int *fdp);
/* Why it failed; -ENOSYS: openat2(2) is missing, or a filter of a container refuses it. */
const char *io_root_error(int err);

#define IO_BENEATH     0x08ull /* RESOLVE_BENEATH, with RESOLVE_NO_MAGICLINKS always added */
#define IO_NO_SYMLINKS 0x04ull /* RESOLVE_NO_SYMLINKS */
/* Not a RESOLVE_ flag.  With IO_BENEATH, an absolute link whose target is beneath is followed, too,
 * and "DIR//REST" is a path REST beneath DIR, which is beneath the root.  A link that is refused is
 * logged with its target. */
#define IO_LINKS (1ull << 62)
/* Not a RESOLVE_ flag.  open.first->real is wanted.  A file whose path cannot be found out is
 * -EACCES. */
#define IO_REAL_NAME (1ull << 61)
/* Not a RESOLVE_ flag: O_NOATIME, left out for files of other owners, which are counted. */
#define IO_NOATIME (1ull << 63)
/* Not a RESOLVE_ flag: the root is on a local file system, see io_fd_is_local() in io/file.h.  What
 * the kernel has in memory beneath it is opened and read on the loop. */
#define IO_LOCAL (1ull << 60)
/* Not a RESOLVE_ flag: the descriptor is for another process; the kernel reads ahead as usual.
 * With IO_LOCAL without open.first. */
#define IO_GIVEN (1ull << 59)

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
