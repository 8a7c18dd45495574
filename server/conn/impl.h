/* server/conn/impl.h -- between the conn*.c files; nobody else includes it.
 *
 *   conn.c        the states but those below, life and death
 *   head.c   collecting a request head; refusing it
 *   input.c  what the client sends, and the buffers it lies in
 *   body.c   request bodies that are dropped or collected
 *   client.c    who is at the other end
 *   drain.c  idle connections move to the next generation
 *   phase.c  how many wait for what, and who can make room
 */
#ifndef SERVER_CONN_IMPL_H
#define SERVER_CONN_IMPL_H

#include "server/conn/conn.h"
#include "server/handler/handler.h"
#include "server/worker.h"

#define BODY_RATE 1024u       /* bytes a second that a request body comes at, in the long run */
#define SKIP_MAX (1u << 20)   /* request body read and dropped to keep a connection */

struct conn_state {
	const char *name, *doc;
	enum phase phase;
	const struct conn_state *(*run)(struct conn *);
};

struct conn {
	struct io_sock sock;
	struct io_op op;       /* receive, close */
	struct worker *w;
	const struct conn_state *state;
	struct request *r;     /* NULL: idle */
	const struct handler *handler;
	struct list link;
	struct room_member room;
	struct client *counted; /* its address, in clients.h */
	const char *listener;
	struct text in;        /* not consumed yet: in the lent buffer or in own */
	struct buf own;
	uint64_t debt_ns;      /* how far this request's body is behind BODY_RATE */
	uint64_t head_ns;      /* first byte of the head that is being collected; of a goodbye: when it was said */
	void (*sent)(struct request *, int err);
	union io_addr peer;
	uint32_t id, nreq;
	uint32_t parsed;       /* bytes of an unfinished head that the parser has seen */
	uint32_t dropped;      /* bytes read only to be thrown away */
	uint32_t idle_s;       /* how long it may be idle, by the settings of its last request */
	int in_err;            /* how the last receive failed; 0: it did not */
	bool receiving, sending; /* ops in flight */
	bool watching;         /* op waits for a reset while the request is being looked up */
	bool closing;          /* IO_CLOSE is on its way, or will be when those have ended */
	bool leaving;          /* closing to make room: counted in worker.nleaving */
	bool close_after, cut;
	bool deferred;         /* the request is parsed, but replies before it go out first */
	bool continued;        /* 100 Continue was sent for this request */
	bool in_run;
	uint8_t phase;         /* enum phase, as counted in the worker's tally */
};

/* S(name, phase on status pages while it waits, "doc") */
#define CONN_STATES(S)                                                                          \
	S(read_head, head, "collecting a request head")                                         \
	S(route, handle, "finding who answers")                                                 \
	S(probe, handle, "looking whether the path exists, for $PHYSICAL conditions")           \
	S(skip_body, body, "reading and dropping a request body that nobody wants")             \
	S(upload, body, "collecting a request body for an application")                         \
	S(handle, handle, "waiting for the handler")                                            \
	S(send, write, "writing replies to the client")                                         \
	S(finish, write, "logging; then the next request, idle, or the end")                    \
	S(linger, close, "said goodbye, reading until the client does")                         \
	S(close, close, "closing the socket")

#define S(name, phase, doc) const struct conn_state *conn_##name(struct conn *);
CONN_STATES(S)
#undef S
#define S(n, p, d) extern const struct conn_state st_##n;
CONN_STATES(S)
#undef S
#define WAIT NULL /* a state has submitted something, or another owner has: its callback goes on */

void conn_run(struct conn *);
void conn_go(struct conn *, const struct conn_state *);
/* A connection from here on.  Takes fd and the place among the connections of its address. */
void conn_begin(struct worker *, int fd, const union io_addr *peer, const char *listener, struct client *, uint32_t nreq);
bool conn_moves(const struct worker *);  /* it drains, and another generation takes its idle connections */
bool conn_hand_over(struct conn *);      /* idle: the next generation goes on with it, and this end of it is to be closed */
bool conn_in_flight(const struct conn *);
bool conn_ended_while_waiting(struct conn *); /* stopped meanwhile: the end is under way, touch nothing */
const struct conn_state *conn_refuse(struct conn *, int status, const char *why);

void conn_phase_begin(struct conn *);
void conn_phase_show(struct conn *); /* it waits */
void conn_phase_end(struct conn *);

/* While a look-up or an application is awaited: a client that resets its connection gives up what it waits for. */
void conn_watch(struct conn *);
void conn_watch_end(struct conn *); /* op is free again before anything that is submitted after this call comes back */

/* The connection is about to wait: what it still needs of the lent buffer becomes its own. */
bool conn_settle(struct conn *);
const struct conn_state *conn_want_bytes(struct conn *, uint32_t deadline_ms); /* WAIT, or st_close */

#endif
