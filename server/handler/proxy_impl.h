/* server/handler/proxy_impl.h -- between the proxy*.c files; nobody else includes it.
 *
 *   proxy.c          start and stop; the request body goes to the application
 *   proxy_request.c  the request as the application gets it
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
	struct exchange *ex;       /* NULL: over */
	struct proxy_request req;
	struct reply_extra extra;
	int64_t left;              /* reply bytes the head promised; -1: not told */
	bool has_head, no_body;    /* HEAD, 204, 304 */
	bool chunked, paused, sending, over;
	bool broken;               /* the reply broke off: cut */
	bool unusable;             /* a rewrite of the request failed */
	bool replied;              /* a file or an error page answers */
};

bool proxy_fill(struct relay *);           /* rl->req, from the request; false: no memory */
extern const struct exchange_sink proxy_sink; /* arg: the relay */
void proxy_room(void *relay);              /* the application takes more of the request body */
void proxy_answer_error(struct relay *, int status); /* instead of the application */

#endif
