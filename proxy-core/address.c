#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/text.h"
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

static int
parse_unix(struct text path, struct address *a)
{
	if (path.n == 0)
		return (-EINVAL);
	if (path.n >= sizeof(a->un.sun_path))
		return (-ENAMETOOLONG);
	a->un.sun_family = AF_UNIX;
	memcpy(a->un.sun_path, path.p, path.n);
	a->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.n + 1);
	snprintf(a->name, sizeof(a->name), "unix:%s", a->un.sun_path);
	return (0);
}

static int
parse_port(struct text t, uint16_t *port)
{
	uint64_t v;

	if (text_u64(t, &v) < 0 || v == 0 || v > UINT16_MAX)
		return (-EINVAL);
	*port = (uint16_t)v;
	return (0);
}

/* "host", "host:port", "[v6]" or "[v6]:port" into its two parts, brackets taken off. */
static int
split_port(struct text t, struct text *host, uint16_t *port)
{
	const char *colon, *close;

	*port = DEFAULT_PORT;
	if (t.n > 0 && t.p[0] == '[') {
		close = memchr(t.p, ']', t.n);
		if (close == NULL)
			return (-EINVAL);
		*host = (struct text){t.p + 1, (size_t)(close - t.p - 1)};
		t.n -= (size_t)(close + 1 - t.p);
		t.p = close + 1;
		if (t.n == 0)
			return (0);
		if (t.p[0] != ':')
			return (-EINVAL);
		return (parse_port((struct text){t.p + 1, t.n - 1}, port));
	}
	*host = t;
	colon = t.n > 0 ? memchr(t.p, ':', t.n) : NULL;
	if (colon == NULL)
		return (t.n > 0 ? 0 : -EINVAL);
	host->n = (size_t)(colon - t.p);
	if (host->n == 0)
		return (-EINVAL);
	/* A second colon is an IPv6 address without brackets: refused, as no port number. */
	return (parse_port((struct text){colon + 1, t.n - host->n - 1}, port));
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

int
address_parse(const char *spec, struct address *a)
{
	struct text t = text_of(spec), host;
	uint16_t port;
	int err;

	memset(a, 0, sizeof(*a));
	if (text_starts(t, TEXT("unix:")))
		return (parse_unix((struct text){t.p + 5, t.n - 5}, a));
	err = split_port(t, &host, &port);
	if (err < 0)
		return (err);
	err = parse_inet(host, port, a);
	if (err == -ENOENT && spec[0] == '[')
		return (-EINVAL); /* only addresses stand in brackets */
	return (err);
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
	struct text host;
	uint16_t port;
	char *name;
	size_t n;
	int rc;

	rc = split_port(text_of(spec), &host, &port);
	if (rc < 0)
		return (rc);
	name = strndup(host.p, host.n);
	if (name == NULL)
		return (-ENOMEM);
	rc = getaddrinfo(name, NULL, &hints, &ai);
	free(name);
	if (rc != 0) {
		snprintf(err, errsize,
		    "\"%s\": %s; write the address in numbers, or mend the look-up", spec,
		    gai_strerror(rc));
		return (-EHOSTUNREACH);
	}
	n = addresses_of(ai, port, v);
	freeaddrinfo(ai);
	return (address_learn(spec, v, n));
}

int
address_lookup(const char *spec, char *err, size_t errsize)
{
	struct address a;
	int rc;

	rc = address_parse(spec, &a);
	switch (rc) {
	case -EINVAL:
		snprintf(err, errsize,
		    "\"%s\" is no address; write unix:/path, host:port, a.b.c.d:port or [v6]:port",
		    spec);
		return (rc);
	case -ENAMETOOLONG:
		snprintf(err, errsize,
		    "\"%s\" is too long for a unix socket (%zu bytes at most); use a shorter path",
		    spec, sizeof(a.un.sun_path) - 1);
		return (rc);
	case -ENOENT:
		return (lookup_name(spec, err, errsize));
	}
	return (rc);
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
