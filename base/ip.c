/* base/ip.c -- see ip.h */
#include <arpa/inet.h>

#include "base/address.h"
#include "base/ip.h"

static const uint8_t v4_prefix[12] = { [10] = 0xff, [11] = 0xff };

struct ip
ip_of_v4(const void *four_bytes)
{
	struct ip ip;

	memcpy(ip.b, v4_prefix, sizeof(v4_prefix));
	memcpy(ip.b + sizeof(v4_prefix), four_bytes, 4);
	return (ip);
}

struct ip
ip_of_v6(const void *sixteen_bytes)
{
	struct ip ip;

	memcpy(ip.b, sixteen_bytes, sizeof(ip.b));
	return (ip);
}

bool
ip_is_v4(const struct ip *ip)
{
	return (memcmp(ip->b, v4_prefix, sizeof(v4_prefix)) == 0);
}

bool
ip_of_sockaddr(const struct sockaddr *sa, struct ip *ip)
{
	const void *a = sa;

	if (sa->sa_family == AF_INET)
		*ip = ip_of_v4(&((const struct sockaddr_in *)a)->sin_addr);
	else if (sa->sa_family == AF_INET6)
		*ip = ip_of_v6(&((const struct sockaddr_in6 *)a)->sin6_addr);
	else
		return (false);
	return (true);
}

bool
ip_read(struct text t, struct ip *ip)
{
	char s[INET6_ADDRSTRLEN];
	struct in6_addr v6;
	struct in_addr v4;

	if (t.n == 0 || t.n >= sizeof(s) || memchr(t.p, '\0', t.n) != NULL)
		return (false);
	memcpy(s, t.p, t.n);
	s[t.n] = '\0';
	if (inet_pton(AF_INET, s, &v4) == 1)
		*ip = ip_of_v4(&v4);
	else if (inet_pton(AF_INET6, s, &v6) == 1)
		*ip = ip_of_v6(&v6);
	else
		return (false);
	return (true);
}

struct text
ip_without_zone(struct text t)
{
	const char *zone = t.n > 0 ? memchr(t.p, '%', t.n) : NULL;

	return (zone != NULL ? (struct text){ t.p, (size_t)(zone - t.p) } : t);
}

bool
ip_net_read(struct text t, struct ip_net *net)
{
	const char *slash = t.n > 0 ? memchr(t.p, '/', t.n) : NULL;
	struct text addr = { t.p, slash != NULL ? (size_t)(slash - t.p) : t.n };
	uint64_t bits;
	bool v4;

	addr = ip_without_zone(address_bare(addr));
	if (!ip_read(addr, &net->ip))
		return (false);
	net->bits = 128;
	if (slash == NULL)
		return (true);
	v4 = memchr(addr.p, ':', addr.n) == NULL;
	if (text_u64((struct text){ slash + 1, t.n - (size_t)(slash + 1 - t.p) }, &bits) != 0 ||
	    bits > (v4 ? 32 : 128))
		return (false);
	net->bits = (uint8_t)(v4 ? bits + 96 : bits);
	return (true);
}

bool
ip_net_has(const struct ip_net *net, const struct ip *ip)
{
	unsigned whole = net->bits / 8, rest = net->bits % 8;

	if (memcmp(net->ip.b, ip->b, whole) != 0)
		return (false);
	return (rest == 0 || ((net->ip.b[whole] ^ ip->b[whole]) & (0xff00u >> rest) & 0xff) == 0);
}
