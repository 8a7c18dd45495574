#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/address.h"
#include "proxy-core/address.h"

#define DEFAULT_PORT 80

/* What the resolver said, for all workers: they must not ask it themselves, since asking blocks. */
struct known {
	struct known *next;
	char *spec;
	size_t n;
	struct address v[ADDRESS_MAX];
};
static struct known *known;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static void
fill_unix(struct text path, struct address *a)
{
	a->un.sun_family = AF_UNIX;
	memcpy(a->un.sun_path, path.p, path.n);
	a->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.n + 1);
	snprintf(a->name, sizeof(a->name), "unix:%s", a->un.sun_path);
}

/* 0, or -errno with *fault; a missing port is 80. */
static int
read_backend(const char *spec, struct address_parts *a, const char **fault)
{
	int err = address_read(text_of(spec), a, fault);

	if (err != 0 || a->path.p != NULL)
		return (err);
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
parse(const char *spec, struct address *a, const char **fault)
{
	struct address_parts parts;
	int err = read_backend(spec, &parts, fault);

	memset(a, 0, sizeof(*a));
	if (err != 0)
		return (err);
	if (parts.path.p == NULL)
		return (parse_inet(address_bare(parts.host), parts.port_number, a));
	fill_unix(parts.path, a);
	return (0);
}

int
address_parse(const char *spec, struct address *a)
{
	const char *fault;

	return (parse(spec, a, &fault));
}

static struct known *
known_find(const char *spec)
{
	struct known *k;

	for (k = known; k != NULL; k = k->next)
		if (strcmp(k->spec, spec) == 0)
			return (k);
	return (NULL);
}

static struct known *
known_make(const char *spec)
{
	struct known *k = known_find(spec);

	if (k != NULL)
		return (k);
	k = calloc(1, sizeof(*k));
	if (k == NULL || (k->spec = strdup(spec)) == NULL) {
		free(k);
		return (NULL);
	}
	k->next = known;
	known = k;
	return (k);
}

static bool
is_inet(const struct address *a)
{
	if (memchr(a->name, '\0', sizeof(a->name)) == NULL)
		return (false);
	return ((a->len == sizeof(a->in) && a->sa.sa_family == AF_INET) || (a->len == sizeof(a->in6) && a->sa.sa_family == AF_INET6));
}

int
address_learn(const char *spec, const struct address *v, size_t n)
{
	struct known *k;
	size_t i;

	if (n == 0 || n > ADDRESS_MAX)
		return (-EINVAL);
	for (i = 0; i < n; i++)
		if (!is_inet(&v[i]))
			return (-EINVAL);
	pthread_mutex_lock(&known_lock);
	k = known_make(spec);
	if (k != NULL) {
		memcpy(k->v, v, n * sizeof(*v));
		k->n = n;
	}
	pthread_mutex_unlock(&known_lock);
	return (k != NULL ? 0 : -ENOMEM);
}

/* Addresses of the resolver, with a port and a name for logs; how many. */
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
lookup_name(const char *spec, char *err, size_t errsize)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *ai;
	struct address v[ADDRESS_MAX];
	struct address_parts parts;
	const char *fault;
	struct text host;
	char *name;
	size_t n;
	int rc;

	rc = read_backend(spec, &parts, &fault);
	if (rc < 0)
		return (rc);
	host = address_bare(parts.host);
	name = strndup(host.p, host.n);
	if (name == NULL)
		return (-ENOMEM);
	rc = getaddrinfo(name, NULL, &hints, &ai);
	free(name);
	if (rc != 0) {
		snprintf(err, errsize, "\"%s\": %s; the address in numbers needs no look-up", spec, gai_strerror(rc));
		return (-EHOSTUNREACH);
	}
	n = addresses_of(ai, parts.port_number, v);
	freeaddrinfo(ai);
	return (address_learn(spec, v, n));
}

int
address_lookup(const char *spec, char *err, size_t errsize)
{
	const char *fault;
	struct address a;
	int rc;

	rc = parse(spec, &a, &fault);
	if (fault != NULL)
		snprintf(err, errsize, "\"%s\": %s; an address is unix:/path, host:port, a.b.c.d:port or [v6]:port", spec, fault);
	return (rc == -ENOENT ? lookup_name(spec, err, errsize) : rc);
}

int
address_list(const char *spec, struct address *v, size_t max)
{
	const struct known *k;
	size_t n = 0;
	int rc;

	if (max == 0)
		return (-E2BIG);
	rc = address_parse(spec, &v[0]);
	if (rc != -ENOENT)
		return (rc < 0 ? rc : 1);
	pthread_mutex_lock(&known_lock);
	k = known_find(spec);
	if (k != NULL) {
		n = k->n < max ? k->n : max;
		memcpy(v, k->v, n * sizeof(*v));
	}
	pthread_mutex_unlock(&known_lock);
	return (n > 0 ? (int)n : -EHOSTUNREACH);
}
