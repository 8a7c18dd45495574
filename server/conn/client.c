/* server/conn/client.c -- who is at the other end of a connection, for logs, conditions and applications. */
#include <arpa/inet.h>
#include <stdio.h>

#include "base/client_addr.h"
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
	const union io_addr *a = &r->conn->peer;
	const char *s = NULL;

	if (a->family == AF_INET)
		s = inet_ntop(AF_INET, &a->in.sin_addr, buf, 64);
	else if (a->family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr))
		s = inet_ntop(AF_INET, &a->in6.sin6_addr.s6_addr[12], buf, 64);
	else if (a->family == AF_INET6)
		s = inet_ntop(AF_INET6, &a->in6.sin6_addr, buf, 64);
	return (s != NULL ? text_of(s) : TEXT("unix"));
}

/* By address, so that many connections of one client share its turn; behind a proxy, or on a unix socket, all of them do,
 * and those who wait are served in the order they came. */
uint32_t
conn_client(const struct request *r)
{
	return (client_addr_key(client_addr_of(&r->conn->peer.sa)));
}

uint16_t
conn_remote_port(const struct request *r)
{
	const union io_addr *a = &r->conn->peer;

	return (a->family == AF_INET ? ntohs(a->in.sin_port) : a->family == AF_INET6 ? ntohs(a->in6.sin6_port) : 0);
}

struct text
conn_listener(const struct request *r)
{
	return (text_of(r->conn->listener));
}
