/* server/conn/conn.h -- a client connection: the only owner of its socket.
 *
 *            +------------------------- keep-alive -------------------------+
 *            v                                                              |
 *   read_head --> route --> (skip_body) --> handler --> send --> finish ----+--> linger --> close
 *      ^   |         ^                         |
 *      |   |         +---- route_again() ------+
 *      +---+ hot small replies of pipelined requests collect in one body, sent together
 *
 * Bounds   an idle connection holds no buffer and no struct request; one that has sent a part of a
 *          head holds that part.
 * Thread   the worker's.
 */
#ifndef SERVER_CONN_CONN_H
#define SERVER_CONN_CONN_H

#include <stddef.h>
#include <stdbool.h>

union io_addr;
struct conn;
struct conn_verbs;
struct list;
struct moved;
struct running_row;
struct eviction_member;
struct worker;

/* Takes fd, a connected socket.  Resets it if memory is short or if its address has too many
 * connections. */
void conn_new(struct worker *, int fd, const union io_addr *peer, const char *listener);
/* Takes over an idle connection of another worker, with its descriptor. */
void conn_adopt(struct worker *, struct moved *);
void conn_stop(struct conn *); /* closes it now, in any state */
void conn_stop_all(struct worker *);
/* An idle connection moves to the next generation, or closes if there is none.  A busy one does so
 * after its reply.  May be called again. */
void conn_drain(struct conn *);
/* An idle connection moves to another worker if this one has more than its share. */
void conn_spread(struct conn *);
/* closes it now and logs why: another connection needs its place; a member of worker.eviction */
void conn_make_room(struct eviction_member *, const char *why);
/* An idle connection whose next request, or end, has come and is not read yet. */
bool conn_is_waking(const struct eviction_member *);
bool conn_is_slow(const struct eviction_member *); /* over a time; of a list of busy ones */
/* Moves the slow ones to the front of the list; returns the first; NULL: none is slow. */
struct eviction_member *conn_seek_slow(struct list *busy);
struct conn *conn_of_link(struct list *); /* member of worker.conns */
/* The requests that this worker works on: see running_fill in server/status/running.h. */
size_t conn_running(struct worker *, struct running_row *, size_t max);

extern const struct conn_verbs conn_verbs; /* server/request/client.h */

#endif
