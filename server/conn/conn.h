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

#include "base/text.h"

union io_addr;
struct client_addr;
struct conn;
struct list;
struct log_field;
struct request;
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
bool conn_is_slow(const struct eviction_member *); /* over a time; of a list of busy ones */
/* Moves the slow ones to the front of the list; returns the first; NULL: none is slow. */
struct eviction_member *conn_seek_slow(struct list *busy);
struct conn *conn_of_link(struct list *); /* member of worker.conns */
/* The requests that this worker works on: see running_fill in server/status/running.h. */
size_t conn_running(struct worker *, struct running_row *, size_t max);

/* For handlers. */
/* Each of the three ends the work of the handler; call one of them, once, and touch nothing of the
 * request after it: another handler, or the next request, may start before it returns.  They may be
 * called while start() runs; its result HANDLED_LATER is not looked at then. */
void conn_replied(struct request *);     /* r->body is the whole reply, or the rest of it */
void conn_route_again(struct request *); /* after route_again(): another handler starts */
/* The reply broke off.  What was sent stays, and the client sees that it is not complete. */
void conn_cut(struct request *);
void conn_close_after(struct request *); /* no keep-alive after this reply */
bool conn_keeps_alive(const struct request *);
/* For log lines: "c17.3/" and its id.  Valid until the next call of either in this thread. */
const char *conn_id(const struct request *);
const char *conn_number(const struct request *); /* "c17.3": connection, and request of it */
struct text conn_remote(const struct request *, char buf[64]);
struct log_field conn_client(const struct request *); /* client=ADDRESS, until the next call */
/* Logs request.refused, at most 10 a second from all places together. */
void conn_tell_refused(const struct request *, int status, const char *why);
uint16_t conn_remote_port(const struct request *);
/* The other end of the connection, which may be a proxy; conn_remote() is its client. */
struct text conn_peer(const struct request *, char buf[64]);
/* The client that limits of a client count.  False: nobody: a unix socket, or a listed proxy that
 * did not say whose request it is. */
bool conn_named_client(const struct request *, struct client_addr *);
/* Requests in a row, with this one, that were over the rate; 0: this one is not. */
unsigned conn_over_rate(struct request *, bool over);
bool conn_metered_client(const struct request *, struct client_addr *); /* if meters exist */
/* Counts the connection for its client, until a reply without a switch is sent, or it closes.
 * False: the client has max of them. */
bool conn_takes_tunnel(const struct request *, unsigned max);
uint64_t conn_passed(const struct request *); /* bytes to the client, and of the body */
/* The client sends no more: it waits for its reply, or is gone. */
bool conn_client_ended(const struct request *);
/* Says whether the peer is believed about its client, and in which fields. */
bool conn_claims(const struct request *, const struct text **, size_t *n);
bool conn_trusted(const struct request *);       /* the peer is in extforward.forwarder */
struct text conn_scheme(const struct request *); /* "https" behind a TLS terminator */
/* The address at which the connection arrived; .p NULL: a unix socket. */
struct text conn_local(const struct request *, char buf[64]);
uint16_t conn_local_port(const struct request *);  /* 0: a unix socket */
uint32_t conn_requests(const struct request *);    /* of its connection so far, from 1 */
struct text conn_listener(const struct request *); /* "127.0.0.1:8080" */
/* Counts the connection under what it does now; otherwise it is counted when it waits. */
void conn_phase_show(struct conn *);

/* Bodies that go to the handler while they arrive (r->in.streams), and tunnels. */
/* The handler can take more.  False: the connection is closing. */
bool conn_body_room(struct request *);
/* Before the head of a reply: a body that is too long to be dropped ends the connection. */
void conn_early_reply(struct request *);
/* From now on all bytes of the client go to the handler, and the connection closes after them. */
void conn_tunnel(struct request *);
/* Tunnel: nothing more is sent to the client, which may still send. */
void conn_tunnel_half(struct request *);

/* True if Content-Length is above the limit; no byte of the body has been read then. */
bool conn_upload_too_long(const struct request *);
/* Sends r->body; sent(r, err) comes later. */
void conn_send_body(struct request *, void (*sent)(struct request *, int err));

#endif
