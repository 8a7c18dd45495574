/* server/conn/client.c -- the peer of a connection, for logs, conditions and applications. */
#include <stdio.h>

#include "server/conn/impl.h"

const char *
conn_id(const struct request *r)
{
	static __thread char id[32];

	snprintf(id, sizeof(id), "c%u.%u", r->conn->id, r->conn->nreq);
	return (id);
}

struct text
conn_remote(const struct request *r, char buf[64])
{
	return (text_of(client_addr_text(&r->conn->peer.sa, buf)));
}

uint16_t
conn_remote_port(const struct request *r)
{
	const union io_addr *a = &r->conn->peer;

	return (a->family == AF_INET    ? ntohs(a->in.sin_port)
		: a->family == AF_INET6 ? ntohs(a->in6.sin6_port)
					: 0);
}

struct text
conn_listener(const struct request *r)
{
	return (text_of(r->conn->listener));
}
