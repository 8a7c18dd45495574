/* base/client_addr.c -- see client_addr.h */
#include "base/client_addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/load.h"
#include "base/must.h"
#include "base/text.h"

#define V4_MAPPED 0x0000ffff00000000ull

static struct client_addr
of_v4(uint32_t network_order)
{
	return ((struct client_addr){ 0, V4_MAPPED | ntohl(network_order) });
}

static struct client_addr
of_v6(const struct in6_addr *a)
{
	const char *bytes = (const char *)a->s6_addr;

	if (IN6_IS_ADDR_V4MAPPED(a))
		return (of_v4((uint32_t)load32(bytes + 12)));
	return ((struct client_addr){ be64toh(load64(bytes)), 1 });
}

struct client_addr
client_addr_of(const struct sockaddr *sa)
{
	const void *a = sa;

	if (sa->sa_family == AF_INET)
		return (of_v4(((const struct sockaddr_in *)a)->sin_addr.s_addr));
	if (sa->sa_family == AF_INET6)
		return (of_v6(&((const struct sockaddr_in6 *)a)->sin6_addr));
	return ((struct client_addr){ 0, 0 });
}

struct client_addr
client_addr_written(const char *s)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET, s, &v4) == 1)
		return (of_v4(v4.s_addr));
	if (inet_pton(AF_INET6, s, &v6) == 1)
		return (of_v6(&v6));
	return ((struct client_addr){ 0, 0 });
}

bool
client_addr_same(struct client_addr a, struct client_addr b)
{
	return (a.net == b.net && a.host == b.host);
}

uint64_t
client_addr_hash(struct client_addr a)
{
	return (text_hash((struct text){ (const char *)&a, sizeof(a) }));
}

uint32_t
client_addr_key(struct client_addr a)
{
	uint32_t key = (uint32_t)client_addr_hash(a);

	if (a.host == 0)
		return (0);
	return (key != 0 ? key : 1);
}

const char *
client_addr_name(struct client_addr a, char buf[CLIENT_ADDR_MAX])
{
	uint64_t v6[2] = { htobe64(a.net), 0 };
	uint32_t v4 = htonl((uint32_t)a.host);

	if (a.host == 0)
		return ("unix");
	if ((a.host & V4_MAPPED) != 0)
		return (inet_ntop(AF_INET, &v4, buf, CLIENT_ADDR_MAX));
	must(inet_ntop(AF_INET6, v6, buf, CLIENT_ADDR_MAX) != NULL);
	return (strcat(buf, "/64"));
}

/* inet_ntop(3) calls printf for it, 0.2 us of each proxied request. */
static const char *
v4_text(const unsigned char *byte, char *buf)
{
	size_t i, n = 0;

	for (i = 0; i < 4; i++) {
		n += text_put_u64(buf + n, byte[i]);
		buf[n++] = i < 3 ? '.' : '\0';
	}
	return (buf);
}

const char *
client_addr_text(const struct sockaddr *sa, char buf[CLIENT_ADDR_MAX])
{
	const void *a = sa;
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)a)->sin6_addr;

	if (sa->sa_family == AF_INET)
		a = &((const struct sockaddr_in *)a)->sin_addr;
	else if (sa->sa_family != AF_INET6)
		return ("unix");
	else if (IN6_IS_ADDR_V4MAPPED(v6))
		a = &v6->s6_addr[12];
	else
		return (inet_ntop(AF_INET6, v6, buf, CLIENT_ADDR_MAX));
	return (v4_text(a, buf));
}
