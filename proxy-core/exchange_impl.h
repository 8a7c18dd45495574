/* proxy-core/exchange_impl.h -- shared by the exchange*.c files and check.c; no other file includes
 * it.
 *
 *   exchange.c           start, pause, the end
 *   exchange_next.c      which backend, repeats, the next backend after a failure
 *   exchange_send.c      the request and its body go to the application
 *   exchange_reply.c     bytes of the application become callbacks, or log lines
 *   exchange_tunnel.c    bytes in both directions after status 101
 *   exchange_deadline.c  the deadlines
 *   exchange_yield.c     gives its socket back for a client that has none
 *   exchange_hedge.c     a second try at another backend, when the first is slow
 *   exchange_log.c       one line for each try that failed
 */
#ifndef PROXY_CORE_EXCHANGE_IMPL_H
#define PROXY_CORE_EXCHANGE_IMPL_H

#include "proxy-core/counters.h"
#include "proxy-core/own_5xx.h"
#include "proxy-core/upstream.h"
#include "proxy-core/yield.h"

enum exchange_state {
	x_wait,   /* for a socket */
	x_head,   /* request is being sent; the reply has no head yet */
	x_body,   /* passing the reply on */
	x_tunnel, /* the application switched protocols: bytes pass unchanged */
	x_drain,  /* reads and drops the rest, to keep the socket */
	x_ended   /* on_end comes in the next round */
};

#define NOTE_MAX   1000        /* bytes of one stderr line */
#define BODY_ROOM  (64u << 10) /* of the request's body, waiting for the socket */
#define ANSWER_MAX 4096        /* bytes of answers that wait for the socket */

struct exchange {
	struct upstream *u;
	const struct proxy_request *req; /* NULL when forgotten */
	struct exchange_conf conf;
	struct exchange_sink sink;
	void *arg;
	enum exchange_state state;
	struct list link, soon;

	/* which socket */
	struct pool_wait wait;
	uint64_t until_ns; /* x_wait, x_drain: its deadline */
	struct pool *pool;
	struct lease *lease;
	uint64_t tried;         /* bit for each pool */
	unsigned tries;         /* backends and sockets that were asked */
	unsigned faults;        /* backends that failed after they had the request */
	enum own_5xx cause;     /* of its last failure */
	int failure;            /* status for the client if no other backend is left */
	bool refused, repeated; /* each happens once */
	bool hedged, unhedged;  /* had a second try; did not, only because of hedge_percent */
	struct exchange *rival; /* its second try; NULL: none */
	/* the exchange whose second try this is; NULL: it is not a second try */
	struct exchange *first;

	/* to the application */
	struct buf body;   /* taken from the caller, not yet framed */
	struct buf again;  /* framed, and kept for the next backend */
	struct buf answer; /* of the codec, while the reply comes in */
	int64_t body_left; /* the caller still owes; INT64_MAX until exchange_body_end() */
	bool unsized;      /* the length is not known before the end */
	bool keep, body_moved, end_framed, send_failed, want_room;

	/* from the application */
	struct reply_head head;
	struct io_op *input;  /* in its callback: whose buffer is parsed */
	struct io_lent *lent; /* that buffer, if the caller kept it */
	char *held;           /* received and not parsed, because the caller paused */
	struct text rest;     /* of it */
	bool paused, has_body, surplus;
	bool eof; /* tunnel: the application sends no more */
	unsigned interims;
	size_t interim_bytes;
	int64_t reply_left; /* -1: unknown */
	size_t drained;
	struct buf note;

	bool busy, forgotten;   /* in a callback; to be freed after it */
	struct yield_debt debt; /* at_ns 0: it has no socket */
	uint64_t first_ns;      /* got its first socket */
	uint64_t progress_ns, asked_ns;
	int end_status;
	struct proxy_times times;
	_Alignas(16) char codec[];
};

/* exchange.c */
void exchange_release(struct exchange *x, bool fit); /* from its lease; fit: for another request */
void exchange_end(struct exchange *x, int status);   /* calls on_end */
void exchange_fail(struct exchange *x, int status);
void exchange_broken(struct exchange *x, int status, int err, const char *why);
struct exchange_failure;
void exchange_refuse(struct exchange *x, int status, const struct exchange_failure *);
/* As exchange_start(), but at this pool alone, even if the pool is paused. */
int exchange_check(struct upstream *, struct pool *, const struct proxy_request *,
    const struct exchange_conf *, const struct exchange_sink *, void *arg, struct exchange **);
/* exchange_start() in two steps, the second one at this pool alone. */
struct exchange *exchange_new(struct upstream *, const struct proxy_request *,
    const struct exchange_conf *, const struct exchange_sink *, void *arg);
void exchange_start_at(struct exchange *, struct pool *);
void exchange_destroy(struct exchange *); /* it has no lease and does not wait */
/* Around each callback, which may forget the exchange: leave frees it then. */
void exchange_enter(struct exchange *x);
void exchange_leave(struct exchange *x);

/* exchange_next.c */
/* f: why the last backend does not serve it; NULL: none was asked. */
void exchange_next(struct exchange *x, const struct exchange_failure *f);
void exchange_get(struct exchange *x); /* waits for a socket of its pool */
void exchange_refused(struct exchange *x, const char *why);
bool exchange_repeat(struct exchange *x, int err); /* on a fresh socket, once, if that is safe */
/* True if the next backend has the request now.  status is that of the reply without a next
 * backend. */
bool exchange_go_on(struct exchange *x, struct backend_why, int status,
    const struct exchange_failure *);
bool exchange_status_goes_on(struct exchange *x); /* the same; its head has a status */

/* exchange_send.c */
void exchange_ask(struct exchange *x);              /* sends the request on its new lease */
bool exchange_holds_body(const struct exchange *x); /* the framed bytes can be sent again */
void exchange_rewind(struct exchange *x);           /* it will be */
void exchange_push(struct exchange *x); /* sends what waits, unless a send is under way */

/* exchange_tunnel.c */
void tunnel_begin(struct exchange *x); /* the head with 101 is complete */
void tunnel_bytes(struct exchange *x, struct text *in);
void tunnel_lost(struct exchange *x, int err); /* 0: the application sends no more */
void tunnel_sent(struct exchange *x);          /* nothing waits for the socket */
void tunnel_tick(struct exchange *x, uint64_t now);

/* exchange_yield.c */
void yield_tick(struct exchange *, uint64_t now_ns);

/* exchange_hedge.c */
void hedge_earn(struct upstream *, const struct exchange_conf *); /* a request began */
void hedge_tick(struct exchange *, uint64_t now_ns);
void hedge_cancel(struct exchange *);   /* forgets the second try, if there is one */
void hedge_end_left(struct exchange *); /* it failed; its caller waits for the second try */
bool hedge_inherits(struct exchange *); /* it failed; true: the caller gets the second try */

/* exchange_log.c */
struct exchange_failure {
	const char *stage, *why;
	int err; /* -errno */
};
/* Taken before a reset of the exchange, which forgets the stage. */
struct exchange_failure exchange_failure(const struct exchange *x, int err, const char *why);
void exchange_log_next(const struct exchange *x, const struct exchange_failure *);
void exchange_log_repeat(const struct exchange *x, const struct exchange_failure *);
void exchange_log_reply(const struct exchange *x, const struct exchange_failure *, int status);
void exchange_log_cut(const struct exchange *x, const struct exchange_failure *);

/* exchange_reply.c */
void note_flush(struct exchange *x); /* logs the bytes of a stderr line so far */
void exchange_recv(void *arg, struct io_op *op);
void exchange_unhold(struct exchange *x);

#endif
