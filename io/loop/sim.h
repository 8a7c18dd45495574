/* io/loop/sim.h -- a loop whose events a test decides: every order, short count, deadline and cancel.
 *
 * Ops stay in flight until the test finishes them; done() then runs inside sim_run() (or io_run()).
 * Time stands still until sim_advance_ms(), which ends ops whose deadline has come with -ETIMEDOUT.
 * No descriptor is real: IO_ACCEPT, IO_CONNECT and IO_OPEN give numbers the test chose; closes are recorded.
 * An IO_CLOSE is recorded when submitted and, like all others, stays in flight until finished; after
 * sim_auto_close() it finishes by itself.  IO_CONNECT gets a number at once; finishing it with another one
 * (> 0) sets that and gives res 0.
 */
#ifndef IO_LOOP_SIM_H
#define IO_LOOP_SIM_H

#include "io/io.h"

struct io *sim_new(void); /* freed with io_free(); must() fails there if ops are still in flight */
struct io *sim_new_reading(void); /* the same with a file backend that has no SEND_FILE: windows by IO_READ */
void sim_auto_close(struct io *, bool on);
void sim_hang_up(struct io_sock *); /* io_sock_alive() says no from now on */

struct io_op *sim_find(struct io *, enum io_kind, const struct io_sock *); /* oldest such op in flight; sock NULL: any */
unsigned sim_count(struct io *, enum io_kind);                             /* such ops in flight */
struct io_op *sim_nth(struct io *, unsigned n);                            /* n-th op in flight, oldest first; NULL */

void sim_finish(struct io *, struct io_op *, int64_t res);
void sim_recv(struct io *, struct io_op *, struct text bytes); /* finishes IO_RECV with these bytes (copied) */
void sim_read(struct io *, struct io_op *, struct text bytes); /* finishes IO_READ */
void sim_open(struct io *, struct io_op *, int fd, uint64_t size, int64_t mtime, mode_t mode);
/* Finishes IO_SEND taking at most max bytes of it, appended to the socket's record. */
size_t sim_send(struct io *, struct io_op *, size_t max);
struct text sim_sent(struct io *, const struct io_sock *);     /* all that was sent on it so far */
void sim_sent_clear(struct io *, const struct io_sock *);
unsigned sim_closed(struct io *, int fd);                      /* how often this fd was closed */

void sim_run(struct io *);                                     /* runs callbacks until none is due */
void sim_advance_ms(struct io *, uint64_t ms);                 /* lets time pass, then sim_run() */

#endif
