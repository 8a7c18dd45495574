/* server/request/told.h -- what one room says about a request, for its log lines, for
 * server/conn/overdue.c and for those that answer later.
 */
#ifndef SERVER_REQUEST_TOLD_H
#define SERVER_REQUEST_TOLD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/text.h"

struct request;
struct upstream;

struct request_told {
	uint64_t handshake_ns; /* of the first request of a connection with TLS; else 0 */
	/* times of the application, set when the exchange is gone */
	uint64_t queue_ns, ns;
	struct text backend; /* the last one that was asked; .p NULL: none; in the arena */
	/* Fields X-LIGHTTPD-* of an application, which are for the log only; likewise. */
	struct text log_fields;
	struct text reply_head; /* if its site wants_head; .p NULL: not kept; in the arena */
	const struct upstream *granted; /* the authorizer that let the request go on */
	bool over_rate;                 /* refused by server/module/limits.c */
	bool checks_password;           /* a thread does, or the delay after a failure runs */
};
struct request_told *request_told(const struct request *);
/* The authorizer of its site has not let it go on yet. */
bool request_awaits_authorizer(const struct request *);

#endif
