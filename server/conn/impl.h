/* server/conn/impl.h -- shared by the files of server/conn/; no other file includes it.
 *
 *   accept.c  listening sockets; makes room in a full worker
 *   spread.c  gives connections to workers that have fewer
 *   begin.c   admission; the header of the PROXY protocol; the handshake
 *   conn.c    the states, life and death of a connection
 *   head.c    collects a request head, or refuses it
 *   probe.c   looks whether the path of a request exists
 *   input.c   input and its buffers; sees a client that leaves during a wait
 *   body.c    request bodies, dropped or collected
 *   stream.c  request bodies that the handler takes while they arrive, and tunnels
 *   banned.c  clients that are not served
 *   client.c  the peer of a connection and the client of a request
 *   running.c rows for the list of running requests
 *   drain.c   idle connections move to the next generation, or to another worker
 *   overdue.c ends a request that nobody else ends
 *   slow.c    connections whose clients are slow
 *   http2.c   connections with streams
 *   phase.c   counts connections by what they wait for; eviction
 */
#ifndef SERVER_CONN_IMPL_H
#define SERVER_CONN_IMPL_H

#include "base/rate.h"
#include "server/config/check/trust.h"
#include "server/conn/conn.h"
#include "server/conn/counters.h"
#include "server/conn/handover.h"
#include "server/conn/requests.h"
#include "server/handler/handler.h"
#include "server/request/client.h"
#include "server/worker/worker.h"

#define BODY_RATE 1024u /* bytes a second that a request body must have in the long run */
/* bytes of a request body that are read and dropped to keep a connection */
#define SKIP_MAX (1u << 20)

struct slowness { /* slow.c: the last look, and how far it was behind */
	uint64_t at_ns, seen, behind_ns;
};

/* What a handler decided about its request. */
enum outcome {
	OUTCOME_NONE,
	OUTCOME_REPLY, /* conn_replied() */
	OUTCOME_AGAIN, /* conn_route_again() */
	OUTCOME_CUT,   /* conn_cut() */
};

struct conn_state {
	const char *name, *doc;
	enum phase phase;
	const struct conn_state *(*run)(struct conn *);
};

struct conn {
	struct conn *parent; /* of a stream: see http2.c; NULL: the connection of a client */
	struct http2 *h2;    /* of a connection with streams */
	struct list streams;
	unsigned nstreams;
	struct pace_share pace; /* connection.kbytes-per-second of all streams */
	struct slowness slow;   /* ... and how slow their client is */
	uint64_t quiet_ns;      /* when the last stream ended, or the connection began */
	struct io_sock sock;
	struct io_op op; /* receive, close */
	struct worker *w;
	const struct conn_state *state;
	struct request *r; /* NULL: idle */
	const struct handler *handler;
	struct list link;
	struct eviction_member eviction;
	struct client *counted;  /* its address, in clients.h */
	struct client *tunneler; /* its client, once it asked to switch protocols */
	const char *listener;
	const struct trust *trust; /* of its listener */
	struct text in;            /* not consumed yet: in the lent buffer or in own */
	struct buf own;
	/* While it has no request: when the bytes sent so far have had their time. */
	uint64_t due_ns;
	/* overdue.c: the request moved last when its trace changed. */
	uint64_t trace, moved_ns;
	uint64_t debt_ns; /* how far the body of this request is behind BODY_RATE */
	/* Time of the first byte of the head; while lingering: its beginning. */
	uint64_t head_ns;
	void (*sent)(struct request *, int err);
	union io_addr peer; /* the other end, or what it said by the PROXY protocol */
	uint32_t id, nreq;
	uint32_t bans_seen;      /* version of the list that its peer is not in */
	uint32_t parsed;         /* bytes of an unfinished head that the parser has read */
	uint32_t dropped;        /* bytes read and dropped */
	uint32_t over_rate;      /* requests in a row that got 429 */
	uint32_t handshake_us;   /* until the first request takes it */
	uint32_t idle_s;         /* allowed idle time, by the settings of its last request */
	int in_err;              /* error of the last receive; 0: none */
	bool receiving, sending; /* ops in flight */
	bool watching;           /* op waits for a reset by the client during a look-up */
	bool ended;   /* its client sends no more: it waits for its replies, or is gone */
	bool closing; /* IO_CLOSE is on its way, or follows these ops */
	bool leaving; /* closing to make room: counted in worker.nleaving */
	bool close_after, cut;
	bool deferred;       /* the request is parsed, but earlier replies are sent first */
	bool continued;      /* 100 Continue was sent for this request */
	uint8_t outcome;     /* enum outcome: while conn_handle() runs, what its handler decided */
	uint8_t behind_send; /* the same, as soon as the 1xx on its way is sent */
	bool op_wanted;      /* conn_run() follows when op is free: see conn_input_ends() */
	bool client_gone;    /* cut, because the client does not take the reply */
	bool tunnel;         /* the bytes of the client are not HTTP any more */
	bool owes_body; /* lingering: the client is still sending the body of its last request */
	bool in_run;
	bool h2_lost;  /* the client of its streams has gone */
	bool proxied;  /* the header of the PROXY protocol was read */
	bool tls;      /* the client uses TLS, to this server or to the proxy */
	bool secure;   /* its socket spoke TLS when it was accepted: so does the client */
	bool trusted;  /* fields of the peer about its clients are believed */
	uint8_t phase; /* enum phase, as counted in the worker's counters */
};

/* S(name, phase on status pages while it waits, "doc") */
#define CONN_STATES(S)                                                                \
	S(proxy_header, head, "collecting the header of the PROXY protocol")          \
	S(handshake, head, "agreeing on keys with the client")                        \
	S(read_head, head, "collecting a request head")                               \
	S(route, handle, "finding who answers")                                       \
	S(probe, handle, "looking whether the path exists, for $PHYSICAL conditions") \
	S(skip_body, body, "reading and dropping a request body that nobody wants")   \
	S(upload, body, "collecting a request body for an application")               \
	S(handle, handle, "waiting for the handler")                                  \
	S(send, write, "writing replies to the client")                               \
	S(finish, write, "logging; then the next request, idle, or the end")          \
	S(rest, body, "reply sent, dropping the rest of the request body")            \
	S(http2, handle, "carrying the streams of HTTP/2")                            \
	S(linger, close, "reply sent, reading until the client closes")               \
	S(close, close, "closing the socket")

#define S(name, phase, doc) const struct conn_state *conn_##name(struct conn *);
CONN_STATES(S)
#undef S
#define S(n, p, d) extern const struct conn_state st_##n;
CONN_STATES(S)
#undef S
/* A state or another object has submitted an op; its callback goes on. */
#define WAIT NULL

void conn_run(struct conn *);
void conn_tell_state(const struct conn *);   /* debug.log-state-handling */
void conn_tell_timeout(const struct conn *); /* debug.log-timeouts */
/* The state from now on; for callbacks. */
void conn_go(struct conn *, const struct conn_state *);
/* Sends the earlier replies first; the request is routed again. */
const struct conn_state *conn_defer(struct conn *);
/* The handler is known.  Decides what happens to the body first. */
const struct conn_state *conn_routed(struct conn *);
/* The connection begins here.  Takes fd and its place in the count of its address. */
void conn_begin(struct worker *, const struct moved *);
/* Time left for a head that began with the first byte in c->in; 0: it is over. */
uint32_t conn_head_ms(struct conn *);
/* True while the worker drains and another generation takes idle connections. */
bool conn_moves(const struct worker *);
/* Gives an idle connection to the next generation, or to the worker that has fewest; then this side
 * closes. */
bool conn_hand_over(struct conn *);
bool conn_in_flight(const struct conn *);
/* The receive or the watch of a request ends with it, so that its callback never sees the next one.
 * False: it is being cancelled, and conn_run() follows. */
bool conn_input_ends(struct conn *);
/* Something happened that cannot happen.  Logged; it costs this connection, not the server. */
void conn_bug(struct conn *, const char *what);
/* True if the connection was stopped meanwhile: it is closing, do not touch it. */
bool conn_ended_while_waiting(struct conn *);
const struct conn_state *conn_refuse(struct conn *, int status, const char *why);

/* banned.c: the address of a new connection, or of one whose peer just became known, is in
 * server.ban-file: counted and logged. */
bool conn_refuses_peer(struct worker *, const union io_addr *);
/* The peer and the client of this request; NULL: it goes on. */
const struct conn_state *conn_check_bans(struct conn *);

/* The client of the next request is the peer, until its head is read. */
void conn_client_reset(struct conn *);
/* The client of this request, as a trusted peer wrote it down. */
void conn_client_find(struct conn *);
void conn_addr_set(union io_addr *, const struct ip *, uint16_t port);

/* http2.c: the first bytes of a connection are those of HTTP/2, or TLS has agreed on it. */
bool conn_speaks_http2(const struct conn *);
void conn_stream_left(struct conn *); /* a stream has closed; before it is freed */
void conn_stop_streams(struct conn *);
void conn_cut_streams(struct conn *);  /* also those that still say that their client has gone */
void conn_http2_routed(struct conn *); /* a stream has its settings */
void conn_http2_look(struct conn *);   /* whether it goes on */
void conn_http2_leave(struct conn *);  /* no stream begins any more */

void conn_phase_begin(struct conn *, struct client_addr from);
void conn_phase_end(struct conn *);

/* body.c: milliseconds that the client may take for the next bytes of its body. */
uint32_t conn_body_ms(const struct conn *);
uint64_t conn_stream_max(const struct request *); /* bytes; 0: any number */
/* stream.c */
void conn_stream(struct conn *);    /* gives what has come, then receives more */
void conn_stream_on(struct conn *); /* continues when op is free again */
/* False: op is still in flight, and conn_run() follows. */
bool conn_stream_ends(struct conn *);
bool conn_streams(const struct conn *); /* the handler wants to take this body as it arrives */

/* During a look-up or an exchange: a client that resets its connection cancels it. */
void conn_watch(struct conn *);
void conn_watch_on(struct conn *); /* ... while an application thinks about the rest of a reply */
/* op is free again before the callback of any later op. */
void conn_watch_end(struct conn *);

/* The connection is about to wait: copies the needed bytes from the lent buffer to its own. */
bool conn_settle(struct conn *);
/* The received bytes, or the failure, become input. */
void conn_take_bytes(struct conn *, struct io_op *);
/* False: no memory, and nothing was submitted. */
bool conn_receive(struct conn *, uint32_t deadline_ms, void (*done)(struct io_op *));
/* WAIT, or st_close */
const struct conn_state *conn_want_bytes(struct conn *, uint32_t deadline_ms);

/* The table of server/request/client.h. */
void conn_request_replied(struct request *);
void conn_request_route_again(struct request *);
void conn_request_cut(struct request *);
void conn_request_close_after(struct request *);
void conn_request_leaves(struct request *);
bool conn_request_keeps_alive(const struct request *);
const char *conn_request_id(const struct request *);
const char *conn_request_number(const struct request *);
struct text conn_request_remote(const struct request *, char buf[64]);
struct log_field conn_request_client(const struct request *);
void conn_request_tell_refused(const struct request *, int status, const char *why);
uint16_t conn_request_remote_port(const struct request *);
struct text conn_request_peer(const struct request *, char buf[64]);
bool conn_request_named_client(const struct request *, struct client_addr *);
unsigned conn_request_over_rate(struct request *, bool over);
bool conn_request_metered_client(const struct request *, struct client_addr *);
struct pace_share *conn_request_share(const struct request *);
bool conn_request_takes_tunnel(const struct request *, unsigned max);
uint64_t conn_request_passed(const struct request *);
bool conn_request_client_ended(const struct request *);
bool conn_request_claims(const struct request *, const struct text **, size_t *n);
bool conn_request_trusted(const struct request *);
struct text conn_request_scheme(const struct request *);
const struct tls_facts *conn_request_facts(const struct request *);
struct text conn_request_local(const struct request *, char buf[64]);
uint16_t conn_request_local_port(const struct request *);
uint32_t conn_request_requests(const struct request *);
struct text conn_request_listener(const struct request *);
/* Counts the connection under what it does now; otherwise it is counted when it waits. */
void conn_phase_show(struct conn *);
bool conn_request_body_room(struct request *);
void conn_request_early_reply(struct request *);
void conn_request_tunnel(struct request *);
void conn_request_tunnel_half(struct request *);
bool conn_request_trailers(struct request *, struct text lines);
bool conn_request_upload_too_long(const struct request *);
void conn_request_send_body(struct request *, void (*sent)(struct request *, int err));

#endif
