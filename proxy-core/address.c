/* proxy-core/address.c -- see address.h */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/address.h"
#include "proxy-core/address.h"

#define DEFAULT_PORT 80

static void
fill_unix(struct text path, struct address *a)
{
	bool abstract = path.p[0] == '@';

	a->un.sun_family = AF_UNIX;
	memcpy(a->un.sun_path, path.p, path.n);
	a->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.n + !abstract);
	snprintf(a->name, sizeof(a->name), "unix:%s", a->un.sun_path);
	if (abstract)
		a->un.sun_path[0] = '\0'; /* the length ends the name, see unix(7) */
}

/* 0, or -errno with *fault; a missing port is 80. */
static int
read_backend(const char *spec, struct address_parts *a, const char **fault)
{
	int err = address_read(text_of(spec), a, fault);

	if (err == 0 && text_eq(a->path, TEXT("@")))
		*fault = "expected a name after unix:@";
	if (err != 0 || a->path.p != NULL)
		return (err != 0 || *fault == NULL ? err : -EINVAL);
	if (a->host.n == 0)
		*fault = "expected a host";
	else if (a->port.p != NULL && a->port_number == 0)
		*fault = "expected a port of 1 to 65535";
	else if (a->port.p == NULL)
		a->port_number = DEFAULT_PORT;
	return (*fault != NULL ? -EINVAL : 0);
}

static void
name_inet(struct address *a)
{
	char ip[INET6_ADDRSTRLEN];

	if (a->sa.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a->in6.sin6_addr, ip, sizeof(ip));
		snprintf(a->name, sizeof(a->name), "[%s]:%u", ip, ntohs(a->in6.sin6_port));
		return;
	}
	inet_ntop(AF_INET, &a->in.sin_addr, ip, sizeof(ip));
	snprintf(a->name, sizeof(a->name), "%s:%u", ip, ntohs(a->in.sin_port));
}

static int
parse_inet(struct text host, uint16_t port, struct address *a)
{
	char ip[INET6_ADDRSTRLEN + 1];

	if (host.n >= sizeof(ip))
		return (-ENOENT);
	memcpy(ip, host.p, host.n);
	ip[host.n] = '\0';
	if (inet_pton(AF_INET, ip, &a->in.sin_addr) == 1) {
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons(port);
		a->len = sizeof(a->in);
	} else if (inet_pton(AF_INET6, ip, &a->in6.sin6_addr) == 1) {
		a->in6.sin6_family = AF_INET6;
		a->in6.sin6_port = htons(port);
		a->len = sizeof(a->in6);
	} else {
		return (-ENOENT);
	}
	name_inet(a);
	return (0);
}

static int
parse(const char *spec, struct address_parts *parts, struct address *a, const char **fault)
{
	int err = read_backend(spec, parts, fault);

	memset(a, 0, sizeof(*a));
	if (err != 0)
		return (err);
	if (parts->path.p == NULL)
		return (parse_inet(address_bare(parts->host), parts->port_number, a));
	fill_unix(parts->path, a);
	return (0);
}

int
address_parse(const char *spec, struct address *a)
{
	struct address_parts parts;
	const char *fault;

	return (parse(spec, &parts, a, &fault));
}

const char *
address_fault(const char *spec)
{
	struct address_parts parts;
	struct address a;
	const char *fault = NULL;

	(void)parse(spec, &parts, &a, &fault);
	return (fault);
}

static bool
is_inet(const struct address *a)
{
	if (memchr(a->name, '\0', sizeof(a->name)) == NULL)
		return (false);
	return ((a->len == sizeof(a->in) && a->sa.sa_family == AF_INET) ||
		(a->len == sizeof(a->in6) && a->sa.sa_family == AF_INET6));
}

bool
address_are_inet(const struct address *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!is_inet(&v[i]))
			return (false);
	return (n > 0 && n <= ADDRESS_MAX);
}

/* Copies addresses of the resolver, with a port and a name for logs; returns their number. */
static size_t
addresses_of(const struct addrinfo *ai, uint16_t port, struct address v[ADDRESS_MAX])
{
	struct address *a;
	size_t n;

	for (n = 0; ai != NULL && n < ADDRESS_MAX; ai = ai->ai_next) {
		if (ai->ai_addrlen > sizeof(a->in6))
			continue;
		a = &v[n++];
		memset(a, 0, sizeof(*a));
		memcpy(&a->sa, ai->ai_addr, ai->ai_addrlen);
		a->len = ai->ai_addrlen;
		if (a->sa.sa_family == AF_INET6)
			a->in6.sin6_port = htons(port);
		else
			a->in.sin_port = htons(port);
		name_inet(a);
	}
	return (n);
}

static int
lookup_name(const struct address_parts *parts, struct address v[ADDRESS_MAX])
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *ai;
	struct text host = address_bare(parts->host);
	char *name = strndup(host.p, host.n);
	size_t n;
	int rc;

	if (name == NULL)
		return (EAI_MEMORY);
	rc = getaddrinfo(name, NULL, &hints, &ai);
	free(name);
	if (rc != 0)
		return (rc);
	n = addresses_of(ai, parts->port_number, v);
	freeaddrinfo(ai);
	return (n > 0 ? (int)n : EAI_NONAME);
}

int
address_lookup(const char *spec, struct address v[ADDRESS_MAX], char *err, size_t errsize)
{
	struct address_parts parts;
	const char *fault;
	int n;

	n = parse(spec, &parts, &v[0], &fault);
	if (fault != NULL)
		snprintf(err, errsize,
		    "\"%s\": %s; an address is unix:/path, host:port, a.b.c.d:port or [v6]:port",
		    spec, fault);
	if (n != -ENOENT)
		return (n == 0 ? 1 : n);
	n = lookup_name(&parts, v);
	if (n > 0)
		return (n);
	snprintf(err, errsize, "\"%s\": %s; the address in numbers needs no look-up", spec,
	    gai_strerror(n));
	return (-EHOSTUNREACH);
}
