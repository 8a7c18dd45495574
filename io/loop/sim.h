/* io/loop/sim.h -- a loop whose events are made by a test: every order, short count, deadline and
 * cancel.
 *
 * Ops stay in flight until the test finishes them; done() then runs inside sim_run() (or io_run()).
 * Time stands still until sim_advance_ms(), which ends ops whose deadline has passed with
 * -ETIMEDOUT.
 * No descriptor is real: IO_ACCEPT, IO_CONNECT and IO_OPEN return numbers that the test chooses;
 * closes are recorded.  An IO_CLOSE is recorded at submit and, like all others, stays in flight
 * until it is finished; after sim_auto_close() it finishes by itself.  IO_CONNECT gets a number at
 * once; finishing it with another one (> 0) sets that number and gives res 0.
 */
#ifndef IO_LOOP_SIM_H
#define IO_LOOP_SIM_H

#include "io/engine.h"

/* An op as a test names it: enum io_kind, the kinds of io/engine.h, or one of these. */
enum {
	SIM_STAT = 32, /* OPEN, only_stat */
	SIM_TEMP,      /* OPEN without a path */
	SIM_WARM,      /* READ, only_warm */
	SIM_HANGUP,    /* RECV, only_hangup */
};

int sim_kind(const struct io_op *);
struct io *sim_new(void); /* free it with io_free(), which fails in must() if ops are in flight */
/* As sim_new(), with a file backend without SEND_FILE: windows are read by IO_READ. */
struct io *sim_new_reading(void);
void sim_auto_close(struct io *, bool on);
void sim_hang_up(struct io_sock *);  /* io_sock_alive() returns false from now on */
void sim_was_read(struct io_sock *); /* io_sock_was_read() returns 1, not -1 */

/* the oldest such op in flight; sock NULL: any */
struct io_op *sim_find(struct io *, int kind, const struct io_sock *);
unsigned sim_count(struct io *, int kind); /* number of such ops in flight */
/* n-th op in flight, oldest first; NULL: none */
struct io_op *sim_nth(struct io *, unsigned n);

void sim_finish(struct io *, struct io_op *, int64_t res);
/* finishes IO_RECV with these bytes (copied) */
void sim_recv(struct io *, struct io_op *, struct text bytes);
void sim_read(struct io *, struct io_op *, struct text bytes); /* finishes IO_READ */
void sim_open(struct io *, struct io_op *, int fd, uint64_t size, int64_t mtime, mode_t mode);
/* Finishes IO_SEND with at most max of its bytes, appended to the socket's record. */
size_t sim_send(struct io *, struct io_op *, size_t max);
/* Finishes IO_SEND_FILE with these bytes of the file, appended likewise. */
void sim_send_file(struct io *, struct io_op *, struct text bytes);
struct text sim_sent(struct io *, const struct io_sock *); /* all bytes sent on it so far */
void sim_sent_clear(struct io *, const struct io_sock *);
unsigned sim_closed(struct io *, int fd); /* how often this fd was closed */

/* runs callbacks until none is due */
void sim_run(struct io *);
void sim_advance_ms(struct io *, uint64_t ms); /* lets time pass, then sim_run() */

#endif
