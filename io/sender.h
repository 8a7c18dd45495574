/* io/sender.h -- sends a body to a socket through the loop's file backend; the only such loop.
 *
 *   memory at the front       one IO_SEND up to the next file (MSG_MORE if a file follows)
 *   file that is held         ... and with it windows that the server has in its own memory
 *   file, backend has .send   IO_SEND_FILE of up to 512 KiB; the socket is corked between several
 *   file, backend has none    IO_READ of a window; the next window is read while this one is sent
 *
 * Result   done(s, 0) when the socket has accepted every byte; otherwise -errno: -ENODATA if a file
 *          became shorter than promised, -ETXTBSY if it was written to between two pieces (cut the
 *          connection: nothing is padded, and two versions do not look like one), -ETIMEDOUT after
 *          idle_ms without progress or when the receiver is idle_ms behind its rate, -ECANCELED.
 *          Exactly once per sender_start(), never from inside it.
 * Owner    the sender and the body belong to the engine until done().
 */
#ifndef IO_SENDER_H
#define IO_SENDER_H

#include "io/body.h"
#include "io/proof.h"
#include "io/io.h"

struct sender_times {              /* sums over all pieces, ns */
	uint64_t write_start_wall; /* wall clock, ns; 0 unless exact */
	uint64_t read_queue, read, handover, write;
	bool hot; /* no thread was needed */
};

struct held;       /* io/hotset.h */
struct pace_share; /* base/rate.h */

#define SENDER_HELD  4u
#define SENDER_TURNS 3u
struct sender_turn {           /* the turn of a sender at a rate that many senders share */
	struct pace_share *of; /* NULL: none */
	uint64_t left, at_ns;  /* bytes of the turn that was taken, and its time */
};

struct sender {
	void (*done)(struct sender *, int res);
	struct io *io;
	struct io_sock *sock;
	struct body *body;
	uint32_t idle_ms;
	/* Bytes a second that a client must take in the long run; 0: any progress is enough. */
	uint32_t rate;
	/* How far the client is behind that rate; the owner sets it to 0 for a new client. */
	uint64_t debt_ns;
	/* Bytes a second that are sent at most; 0: no limit.  The owner sets it to 0 for a new
	 * request. */
	uint32_t limit;
	/* When the bytes sent so far have had their time; the owner sets it for a new client. */
	uint64_t due_ns;
	/* The rates of many senders; the owner sets left to 0 for a new client. */
	struct sender_turn turns[SENDER_TURNS];
	uint64_t asked_ns;          /* when the op in flight was submitted */
	uint32_t client;            /* see io_op */
	uint64_t sent;              /* bytes since sender_start() */
	struct sender_times *times; /* NULL: not needed */
	/* Reads the clock even while everything is hot; otherwise io_now() is used until a
	 * thread is needed. */
	bool exact;
	/* The stream ends as soon as the body is sent: the last bytes in memory wait for FIN. */
	bool ends;
	const struct io_file *begun;   /* file whose bytes were sent last */
	bool was_read;                 /* some of its bytes were read from the file itself */
	struct io_proof proof;         /* what of it was sent */
	const struct io_file *follows; /* file of the windows in the op in flight */
	struct iovec iov[24];
	struct held *held[SENDER_HELD]; /* windows that the op in flight sends from */
	unsigned nheld;
	struct io_op op;   /* send or send-file */
	struct io_op read; /* read of this window or the next one */
	/* Windows read for a backend without .send. */
	char *window, *ahead;
	uint32_t window_len, window_pos, ahead_len;
	uint64_t ahead_off;
	uint64_t send_start, idle_since, ahead_end; /* for *times */
	int res;
	uint8_t flags;
};

void sender_init(struct sender *, struct io *, struct io_sock *);
void sender_start(struct sender *, struct body *, uint32_t idle_ms,
    void (*done)(struct sender *, int));
void sender_cancel(struct sender *);         /* a wish: done() still comes */
bool sender_is_paced(const struct sender *); /* a rate in bytes a second is set */
/* In done() with -ETIMEDOUT: the bytes of the file did not come; false: the receiver was slow. */
bool sender_waited_for_disk(const struct sender *);

#endif
