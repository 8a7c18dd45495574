/* proxy-core/exchange_impl.h -- between exchange.c and exchange_reply.c; nobody else includes it. */
#ifndef PROXY_CORE_EXCHANGE_IMPL_H
#define PROXY_CORE_EXCHANGE_IMPL_H

#include "proxy-core/upstream.h"

#define EXCHANGE_STATES(S)                                               \
	S(wait,  "for a socket")                                         \
	S(head,  "request is being sent; the reply has no head yet")     \
	S(body,  "passing the reply on")                                 \
	S(drain, "reading the rest for nobody, to keep the socket")      \
	S(ended, "about to tell the caller, in the next round")

enum exchange_state {
#define S(name, doc) x_##name,
	EXCHANGE_STATES(S)
#undef S
};

#define NOTE_MAX 1000 /* bytes of one stderr line */

struct exchange {
	struct upstream *u;
	const struct proxy_request *req; /* NULL when forgotten */
	struct exchange_sink sink;
	void *arg;
	enum exchange_state state;
	struct list link, soon;

	/* which socket */
	struct pool_wait wait;
	struct pool *pool;
	struct lease *lease;
	uint64_t tried;          /* bit for each pool */
	int failure;             /* status for the client if no other backend is left */
	bool refused, repeated;  /* each happens once */

	/* to the application */
	struct buf body;         /* taken from the caller, not yet framed */
	int64_t body_left;       /* the caller still owes */
	bool keep, body_moved, end_framed, send_failed, want_room;

	/* from the application */
	struct reply_head head;
	char *held;              /* what had come when the caller paused, and has not been parsed */
	struct text rest;        /* of it */
	bool paused, bodyless, surplus;
	int64_t reply_left;      /* -1: not told */
	size_t drained;
	uint64_t drain_until_ns;
	struct buf note;

	bool busy, forgotten;    /* on the stack; freed when it comes back */
	uint64_t progress_ns, asked_ns;
	int end_status;
	struct proxy_times times;
	_Alignas(16) char codec[];
};

/* exchange.c */
void exchange_part(struct exchange *x, bool fit); /* from its lease; fit: for another request */
void exchange_end(struct exchange *x, int status); /* tells the caller */
void exchange_fail(struct exchange *x, int status);
void exchange_broken(struct exchange *x, int status, int err, const char *why);
void exchange_refused(struct exchange *x, const char *why);
bool exchange_repeat(struct exchange *x); /* on a fresh socket, once, if that is safe */
/* Around everything that calls the caller, who may forget the exchange meanwhile: freed in the last leave. */
void exchange_enter(struct exchange *x);
void exchange_leave(struct exchange *x);

/* exchange_reply.c */
void note_flush(struct exchange *x); /* logs what there is of a stderr line */
void exchange_recv(void *arg, struct io_op *op);
void exchange_unhold(struct exchange *x);

#endif
