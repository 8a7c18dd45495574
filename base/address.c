/* base/address.c -- see address.h */
#include "base/address.h"

#include <arpa/inet.h>
#include <errno.h>

static struct text
before(struct text t, const char *end)
{
	return ((struct text){ t.p, (size_t)(end - t.p) });
}

static struct text
from(struct text t, const char *start)
{
	return ((struct text){ start, t.n - (size_t)(start - t.p) });
}

static bool
is_digits(struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		if (t.p[i] < '0' || t.p[i] > '9')
			return (false);
	return (true);
}

/* The text after the host; NULL if a bracket is not closed. */
static const char *
host_end(struct text t)
{
	const char *end = t.n > 0 ? memchr(t.p, t.p[0] == '[' ? ']' : ':', t.n) : NULL;

	if (t.n > 0 && t.p[0] == '[')
		return (end != NULL ? end + 1 : NULL);
	return (end != NULL ? end : t.p + t.n);
}

bool
address_cut(struct text t, struct text *host, struct text *port)
{
	const char *end = host_end(t);

	if (end == NULL)
		return (false);
	*host = before(t, end);
	*port = TEXT_NONE;
	if (host->n == t.n)
		return (true);
	*port = from(t, end + 1);
	return (*end == ':' && is_digits(*port));
}

struct text
address_path(struct text t)
{
	if (t.n > 0 && t.p[0] == '/')
		return (t);
	return (text_starts(t, TEXT("unix:")) ? from(t, t.p + 5) : TEXT_NONE);
}

struct text
address_bare(struct text host)
{
	if (host.n > 1 && host.p[0] == '[' && host.p[host.n - 1] == ']')
		return ((struct text){ host.p + 1, host.n - 2 });
	return (host);
}

bool
address_is_any(struct text host)
{
	return (host.n == 0 || text_eq(host, TEXT("*")) || text_eq(host, TEXT("0.0.0.0")));
}

bool
address_same(struct text a, struct text b)
{
	struct text path = address_path(a), host_a, port_a, host_b, port_b;

	if (path.p != NULL)
		return (text_eq(path, address_path(b)));
	if (!address_cut(a, &host_a, &port_a) || !address_cut(b, &host_b, &port_b) ||
	    !text_eq(port_a, port_b))
		return (false);
	return (text_ieq(host_a, host_b) || (address_is_any(host_a) && address_is_any(host_b)));
}

/* ---------------------------------------------------------------- address syntax */

/* A host in brackets; the resolver checks a zone ("fe80::1%eth0"). */
static bool
is_v6(struct text host)
{
	struct text bare = address_bare(host);
	const char *zone = bare.n > 0 ? memchr(bare.p, '%', bare.n) : NULL;
	char s[INET6_ADDRSTRLEN];
	struct in6_addr a;

	if (zone != NULL)
		bare = before(bare, zone);
	if (bare.n >= sizeof(s))
		return (false);
	memcpy(s, bare.p, bare.n);
	s[bare.n] = '\0';
	return (inet_pton(AF_INET6, s, &a) == 1);
}

static const char *
fault_of_host(struct text t, struct address_parts *a)
{
	uint64_t port = 0;

	if (t.n == 0)
		return ("expected an address");
	if (memchr(t.p, ' ', t.n) != NULL)
		return ("expected a host without spaces");
	if (!address_cut(t, &a->host, &a->port)) {
		if (host_end(t) == NULL)
			return ("expected \"]\" after an IPv6 address");
		if (t.p[0] != '[' && memchr(a->port.p, ':', a->port.n) != NULL)
			return ("expected an IPv6 address in brackets, as in [::1]:80");
		return ("expected a port of 0 to 65535 after the host");
	}
	if (a->port.p != NULL && (text_u64(a->port, &port) != 0 || port > UINT16_MAX))
		return ("expected a port of 0 to 65535 after the host");
	if (a->host.n > 0 && a->host.p[0] == '[' && !is_v6(a->host))
		return ("expected an IPv6 address between the brackets");
	a->port_number = (uint16_t)port;
	return (NULL);
}

int
address_read(struct text t, struct address_parts *a, const char **fault)
{
	*a = (struct address_parts){ .path = address_path(t) };
	*fault = NULL;
	if (text_has_control(t))
		*fault = "expected an address without control characters";
	else if (a->path.p == NULL)
		*fault = fault_of_host(t, a);
	else if (a->path.n == 0)
		*fault = "expected a path after unix:";
	else if (a->path.n > ADDRESS_PATH_MAX)
		*fault = "expected a path of at most 107 bytes, as unix sockets have";
	if (*fault == NULL)
		return (0);
	return (a->path.n > ADDRESS_PATH_MAX ? -ENAMETOOLONG : -EINVAL);
}

int
address_read_port(struct text t, struct address_parts *a, const char **fault)
{
	int err = address_read(t, a, fault);

	if (err != 0 || a->path.p != NULL || a->port.p != NULL)
		return (err);
	*fault = "expected a port after the host";
	return (-EINVAL);
}
