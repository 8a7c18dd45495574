/* server/handler/proxy_impl.h -- shared by the proxy*.c files; no other file includes it.
 *
 *   proxy.c          start and stop; the request body goes to the application
 *   proxy_request.c  the request for the application
 *   proxy_reply.c    the reply: streamed, kept for a slow client, or turned into a file
 */
#ifndef SERVER_HANDLER_PROXY_IMPL_H
#define SERVER_HANDLER_PROXY_IMPL_H

#include "server/handler/handler.h"
#include "server/reply.h"
#include "server/spool.h"
#include "server/worker.h"

struct relay {
	struct request *r;
	struct exchange *ex; /* NULL: it has ended */
	struct proxy_request req;
	struct reply_extra extra;
	bool has_head;
	bool chunked, sending, over;
	bool broken;   /* the reply broke off: cut the connection */
	bool unusable; /* a rewrite of the request failed */
	bool replied;  /* a file or an error page answers */
};

/* Fills rl->req from the request; false: no memory. */
bool proxy_fill(struct relay *);
extern const struct exchange_sink proxy_sink; /* arg: the relay */
/* The application can take more of the request body. */
void proxy_room(void *relay);
void proxy_answer_error(struct relay *, int status); /* Replaces the application's reply. */

#endif
