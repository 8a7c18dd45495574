/* server/request/client.h -- what a request asks of its connection: a table, because the connection
 * is above the rooms that answer.
 *
 *   conn --route(), handler->start()--> handler, module, reply --conn_replied()--> conn
 *
 * worker_new() sets the table, server/conn/conn.c has it.  A caller includes the request and
 * server/worker/base.h.
 */
#ifndef SERVER_REQUEST_CLIENT_H
#define SERVER_REQUEST_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/text.h"
#include "server/worker/base.h"

struct client_addr;
struct pace_share; /* base/rate.h */
struct log_field;  /* base/log.h */
struct request;
struct tls_facts;

struct conn_verbs {
	/* Each of the three ends the work of the handler; call one of them, once, and touch nothing
	 * of the request after it: another handler, or the next request, may start before it
	 * returns. They may be called while start() runs; the result HANDLED_LATER of that start()
	 * is then ignored. */
	void (*replied)(struct request *);     /* r->body is the whole reply, or the rest of it */
	void (*route_again)(struct request *); /* after route_again(): another handler starts */
	/* The reply broke off.  What was sent stays; the client sees that it is not complete. */
	void (*cut)(struct request *);
	void (*close_after)(struct request *); /* no keep-alive after this reply */
	void (*leaves)(struct request *);      /* ... and no further one of its connection */
	bool (*keeps_alive)(const struct request *);
	/* For log lines: "c17.3/" and its id.  Valid until the next call of either. */
	const char *(*id)(const struct request *);
	const char *(*number)(const struct request *); /* "c17.3": connection, and request of it */
	struct text (*remote)(const struct request *, char buf[64]);
	struct log_field (*client)(
	    const struct request *); /* client=ADDRESS, until the next call */
	/* Logs request.refused, at most 10 a second from all places together. */
	void (*tell_refused)(const struct request *, int status, const char *why);
	uint16_t (*remote_port)(const struct request *);
	/* The other end of the connection, which may be a proxy; conn_remote() is its client. */
	struct text (*peer)(const struct request *, char buf[64]);
	/* The client that limits of a client count.  False: no client: a unix socket, or a listed
	 * proxy that did not say whose request it is. */
	bool (*named_client)(const struct request *, struct client_addr *);
	/* Requests in a row, with this one, that were over the rate; 0: this one is not. */
	unsigned (*over_rate)(struct request *, bool over);
	bool (*metered_client)(const struct request *, struct client_addr *); /* if meters exist */
	/* The rate that all replies of this connection share; NULL: it sends one at a time. */
	struct pace_share *(*share)(const struct request *);
	/* Counts the connection for its client, until a reply without a switch is sent, or it
	 * closes. False: the client has max of them. */
	bool (*takes_tunnel)(const struct request *, unsigned max);
	uint64_t (*passed)(const struct request *); /* bytes to the client, and of the body */
	/* The client sends no more: it waits for its reply, or is gone. */
	bool (*client_ended)(const struct request *);
	/* Says whether the peer is believed about its client, and in which fields. */
	bool (*claims)(const struct request *, const struct text **, size_t *n);
	bool (*trusted)(const struct request *); /* the peer is in extforward.forwarder */
	/* "https": by TLS, to this server or to a proxy in front. */
	struct text (*scheme)(const struct request *);
	/* What is known of the client's TLS (io/tls/facts.h); NULL: it speaks plain text to us. */
	const struct tls_facts *(*facts)(const struct request *);
	/* The address at which the connection arrived; .p NULL: a unix socket. */
	struct text (*local)(const struct request *, char buf[64]);
	uint16_t (*local_port)(const struct request *); /* 0: a unix socket */
	/* requests of its connection so far, from 1 */
	uint32_t (*requests)(const struct request *);
	struct text (*listener)(const struct request *); /* "127.0.0.1:8080" */
	/* Counts the connection under what it does now; otherwise it is counted when it waits. */
	void (*show)(struct request *);

	/* Closes the connection now, in any state. */
	void (*stop)(struct request *);

	/* Bodies that go to the handler while they arrive (r->in.streams), and tunnels. */
	/* The handler can take more.  False: the connection is closing. */
	bool (*body_room)(struct request *);
	/* Before the head of a reply: a body that is too long to be dropped ends the connection. */
	void (*early_reply)(struct request *);
	/* From now on all bytes of the client go to the handler, and the connection closes after
	 * them. */
	void (*tunnel)(struct request *);
	/* Tunnel: nothing more is sent to the client, which may still send. */
	void (*tunnel_half)(struct request *);

	/* Fields that follow the reply: lines of HTTP/1, copied.  Only for HTTP/2.  False: no
	 * memory. */
	bool (*trailers)(struct request *, struct text lines);

	/* True if Content-Length is above the limit; no byte of the body has been read then. */
	bool (*upload_too_long)(const struct request *);
	/* Sends r->body; sent(r, err) comes later. */
	void (*send_body)(struct request *, void (*sent)(struct request *, int err));
};

#define CONN(r)                    (r)->worker->verbs
#define conn_replied(r)            CONN(r)->replied(r)
#define conn_route_again(r)        CONN(r)->route_again(r)
#define conn_cut(r)                CONN(r)->cut(r)
#define conn_close_after(r)        CONN(r)->close_after(r)
#define conn_keeps_alive(r)        CONN(r)->keeps_alive(r)
#define conn_id(r)                 CONN(r)->id(r)
#define conn_number(r)             CONN(r)->number(r)
#define conn_remote(r, a)          CONN(r)->remote(r, a)
#define conn_client(r)             CONN(r)->client(r)
#define conn_tell_refused(r, a, b) CONN(r)->tell_refused(r, a, b)
#define conn_remote_port(r)        CONN(r)->remote_port(r)
#define conn_peer(r, a)            CONN(r)->peer(r, a)
#define conn_named_client(r, a)    CONN(r)->named_client(r, a)
#define conn_over_rate(r, a)       CONN(r)->over_rate(r, a)
#define conn_leaves(r)             CONN(r)->leaves(r)
#define conn_share(r)              CONN(r)->share(r)
#define conn_metered_client(r, a)  CONN(r)->metered_client(r, a)
#define conn_takes_tunnel(r, a)    CONN(r)->takes_tunnel(r, a)
#define conn_passed(r)             CONN(r)->passed(r)
#define conn_client_ended(r)       CONN(r)->client_ended(r)
#define conn_claims(r, a, b)       CONN(r)->claims(r, a, b)
#define conn_trusted(r)            CONN(r)->trusted(r)
#define conn_scheme(r)             CONN(r)->scheme(r)
#define conn_facts(r)              CONN(r)->facts(r)
#define conn_local(r, a)           CONN(r)->local(r, a)
#define conn_local_port(r)         CONN(r)->local_port(r)
#define conn_requests(r)           CONN(r)->requests(r)
#define conn_listener(r)           CONN(r)->listener(r)
#define conn_show(r)               CONN(r)->show(r)
#define conn_end(r)                CONN(r)->stop(r)
#define conn_body_room(r)          CONN(r)->body_room(r)
#define conn_early_reply(r)        CONN(r)->early_reply(r)
#define conn_tunnel(r)             CONN(r)->tunnel(r)
#define conn_tunnel_half(r)        CONN(r)->tunnel_half(r)
#define conn_trailers(r, a)        CONN(r)->trailers(r, a)
#define conn_upload_too_long(r)    CONN(r)->upload_too_long(r)
#define conn_send_body(r, a)       CONN(r)->send_body(r, a)

#endif
