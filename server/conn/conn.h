/* server/conn/conn.h -- a client connection: the only owner of its socket.
 *
 *            +------------------------- keep-alive -------------------------+
 *            v                                                              |
 *   read_head --> route --> (skip_body) --> handler --> send --> finish ----+--> linger --> close
 *      ^   |                                   |
 *      +---+ hot small replies of pipelined requests collect in one body, sent together
 *
 * Bounds   an idle connection holds no buffer and no struct request; one that has sent a part of a head holds that part.
 */
#ifndef SERVER_CONN_CONN_H
#define SERVER_CONN_CONN_H

#include "server/request.h"

struct moved;
struct room_member;
struct worker;

/* fd is a connected socket, taken; reset when memory is short, or its address has too many already. */
void conn_new(struct worker *, int fd, const union io_addr *peer, const char *listener);
void conn_adopt(struct worker *, struct moved *);  /* an idle connection of an older generation; its descriptor is taken */
void conn_stop(struct conn *);  /* ends now, whatever it does */
/* An idle connection moves to the next generation; without one it ends.  A busy one does so after its reply.  May be repeated. */
void conn_drain(struct conn *);
void conn_make_room(struct conn *, const char *why); /* ends now, logged: others need its place */
struct conn *conn_of_member(struct room_member *); /* of worker.room */
struct conn *conn_of_link(struct list *); /* member of worker.conns */

/* For handlers. */
void conn_replied(struct request *);         /* r->body is the whole reply: called once, later than the handler's start */
void conn_cut(struct request *);             /* a reply broke off: close without ending it properly */
void conn_close_after(struct request *);     /* no keep-alive behind this reply */
bool conn_keeps_alive(const struct request *);
const char *conn_id(const struct request *); /* "c17.3"; valid until the next call in this thread */
struct text conn_remote(const struct request *, char buf[64]);
uint16_t conn_remote_port(const struct request *);
uint32_t conn_client(const struct request *); /* whose turn it takes where requests wait: client_addr_key() of its peer */
struct text conn_listener(const struct request *); /* "127.0.0.1:8080" */
void conn_show(const struct request *); /* count it as what it is doing now; it counts itself only when it waits */

bool conn_upload_too_long(const struct request *); /* its Content-Length is above the limit: nothing of the body was read */
/* Sends what is in r->body; sent(r, err) comes later. */
void conn_send_body(struct request *, void (*sent)(struct request *, int err));

#endif
