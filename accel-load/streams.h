/* accel-load/streams.h -- HTTP/2: the requests of one connection, each on a stream of its own.
 *
 *	free --> waiting --the connection is up--> asked --> answered, failed --> free
 *	            ^----- GOAWAY: not taken ---------'
 *
 * A struct stream is a place for a request: --streams of them, and --beside-streams more for the
 * URLs of --beside.  conn.c connects, sends, receives and closes as for HTTP/1.1; framing and HPACK
 * are those of libnghttp2, which never touches the socket.
 *
 * Owner    the connection; streams_free().
 * Thread   that of the connection.
 */
#ifndef ACCEL_LOAD_STREAMS_H
#define ACCEL_LOAD_STREAMS_H

#include "accel-load/conn.h"

struct streams;
struct asks;

/* What the requests of a thread have in common.  NULL: no memory.  Freed after its connections. */
struct asks *asks_new(const struct load_conf *, const struct target *);
void asks_free(struct asks *); /* NULL is allowed */

struct streams *streams_new(struct conn *); /* NULL: no memory */
void streams_free(struct streams *);        /* NULL is allowed */

/* Starts requests: one of the open loop, in a closed loop as many as there are places; and those of
 * --beside. */
void streams_ask(struct conn *, uint64_t at);
/* The connection is made: asks what waits.  False: no memory. */
bool streams_up(struct conn *);
void streams_down(struct conn *); /* it is closed */
/* Received bytes; the connection may be closing afterwards. */
void streams_received(struct conn *, const char *p, size_t n);
/* Appends the next bytes to c->out.  False: there are none, or the connection closes. */
bool streams_put(struct conn *);
/* Goes on after a pause; the connection is up. */
void streams_rested(struct conn *);
/* The connection ends with this error: counts its requests.  Those that wait for the next
 * connection stay. */
void streams_fail(struct conn *, enum load_error);

/* Ends requests that take too long.  Returns the time of the next one. */
uint64_t streams_expire(struct thread *);
/* The end of the run: counts the requests without an answer. */
void streams_count_rest(struct conn *);

#endif
