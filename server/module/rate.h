/* server/module/rate.h -- connection.kbytes-per-second, server.kbytes-per-second and
 * server.kbytes-per-second-per-address.
 *
 * The sender (io/sender.h) waits; here are its limits.
 */
#ifndef SERVER_MODULE_RATE_H
#define SERVER_MODULE_RATE_H

#include <stdbool.h>
#include "server/config/config.h"
#include "server/request/request.h"

struct request;

static inline bool
rate_is_set(const struct request *r)
{
	const struct conf *c = r->conf;

	return ((c->connection_rate | c->server_rate | c->address_rate) != 0);
}

/* Before the reply is sent. */
void rate_apply(struct request *);

#endif
