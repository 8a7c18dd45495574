/* server/module/rate.h -- connection.kbytes-per-second and server.kbytes-per-second.
 *
 * The sender (io/sender.h) waits; here are its limits.
 */
#ifndef SERVER_MODULE_RATE_H
#define SERVER_MODULE_RATE_H

#include "server/request.h"

static inline bool
rate_is_set(const struct request *r)
{
	return (r->conf->connection_rate != 0 || r->conf->server_rate != 0);
}

/* Before the reply is sent. */
void rate_apply(struct request *);

#endif
