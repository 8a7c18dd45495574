/* proxy-core/exchange.h -- one request to one application, and its reply.
 *
 *   exchange_start -> [waiting for a socket] -> connect -> send -> on_head -> on_body... -> on_end
 *                                               [on_interim...]
 *
 * Tunnel   After on_head with status 101 the bytes pass unchanged in both directions.  It ends when
 *          both sides have said that they send no more (on_eof, exchange_body_end()), or when no
 *          byte passes for read_ms.
 * Result   on_end(arg, 0): the reply is complete.  Before on_head: on_end(arg, 431, 502, 503 or
 *          504), the status for the client (503 with retry_after_s).  After on_head:
 *          on_end(arg, -errno): the reply broke off, so cut the client's connection.  on_end comes
 *          once, as the last callback, unless exchange_forget() came first.
 * Owner    the request and all it points to belong to the caller and stay valid until on_end or
 *          exchange_forget().  Texts given to on_head and on_body are lent until the call returns.
 * Thread   the worker's loop.  Callbacks never come from inside exchange_start().
 */
#ifndef PROXY_CORE_EXCHANGE_H
#define PROXY_CORE_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/text.h"

struct proxy_times { /* CLOCK_MONOTONIC ns; 0: did not happen */
	uint64_t start, leased, head;
};

struct proxy_counters;
struct exchange_conf;
struct io;
struct io_lent;
struct proxy_conf;
struct proxy_reply;
struct proxy_request;
struct exchange;

/* on_body gets exactly the bytes that the head announced; none without has_body. */
struct exchange_sink {
	void (*on_head)(void *arg, const struct proxy_reply *);
	void (*on_body)(void *arg, struct text bytes);
	/* room again, after exchange_body() took only a part */
	void (*on_room)(void *arg);
	void (*on_end)(void *arg, int status, unsigned retry_after_s);
	/* a 1xx head, at most INTERIM_MAX of them; NULL: they are dropped */
	void (*on_interim)(void *arg, const struct proxy_reply *);
	/* fields that follow the body, before on_end; NULL: they are dropped */
	void (*on_trailers)(void *arg, const struct proxy_reply *);
	/* tunnel: the application sends no more, and may still read */
	void (*on_eof)(void *arg);
	/* all received bytes have been passed on; the rest comes later */
	void (*on_flush)(void *arg);
	/* a second try answers, before on_head: use this exchange from now on, not the one of
	 * exchange_start(), which is gone; NULL: there is no second try */
	void (*on_moved)(void *arg, struct exchange *);
	/* Bytes that have passed between the client and the caller since the request began: a slow
	 * one may give its socket to another client (yield.h); NULL: it never does. */
	uint64_t (*passed)(void *arg);
	/* True: the client sends no more, so it may be gone; NULL: it never ends. */
	bool (*ended)(void *arg);
};

/* Most 1xx heads before one reply, in any protocol.  More is a failure (502). */
#define INTERIM_MAX   16u
#define INTERIM_BYTES (16u << 10) /* of all together */

struct upstream; /* one block's backends, pools and waiters in one worker */

struct upstream *upstream_new(struct io *, struct proxy_counters *, const struct proxy_conf *);
/* no exchange may be running; closes idle sockets (io_run() until done) */
void upstream_free(struct upstream *);
bool upstream_takes_unsized(const struct upstream *); /* a body whose length is not known */
bool upstream_cuts_params(const struct upstream *);   /* see struct proto */
bool upstream_idle(const struct upstream *);          /* no exchange, no socket */
/* for proxy_request.secret */
struct text upstream_secret(const struct upstream *);
/* drain: idle sockets close, busy ones after their reply */
void upstream_close_idle(struct upstream *);

/* The bit of exchange_conf.next of a word of proxy-core.next-upstream; 0: "off". */
unsigned exchange_next_bit(struct text word);

/* 0 or -ENOMEM. */
int exchange_start(struct upstream *, const struct proxy_request *, const struct exchange_conf *,
    const struct exchange_sink *, void *arg, struct exchange **);
/* Copies bytes of the request body; returns how many (the others can follow after on_room). */
size_t exchange_body(struct exchange *, struct text bytes);
/* How many bytes it takes now, or drops because the rest is not needed; 0: on_room comes. */
size_t exchange_room(struct exchange *);
/* No more bytes follow: the end of an unsized body, or of one direction of a tunnel. */
void exchange_body_end(struct exchange *);
/* Inside on_body: keeps the bytes valid until io_lent_drop() of the result.  NULL: copy them. */
struct io_lent *exchange_keep(struct exchange *);
void exchange_pause(struct exchange *); /* no on_body until resume: the client is slow */
void exchange_resume(struct exchange *);
/* Ends all callbacks and sets the pointer to NULL.  drain: reads the rest of the reply (at most
 * 64 KiB in at most a second) to keep the socket; otherwise closes it. */
void exchange_forget(struct exchange **, bool drain);
const struct proxy_times *exchange_times(const struct exchange *);
/* When a byte last passed between the server and the application, or a try began; CLOCK_MONOTONIC
 * ns. */
uint64_t exchange_progress_ns(const struct exchange *);
const char *exchange_state(const struct exchange *);   /* "wait", "head", "body" ... */
const char *exchange_backend(const struct exchange *); /* name for logs; "" before one is chosen */

#endif
