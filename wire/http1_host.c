/* wire/http1_host.c -- is that a host, and a port; and how are they written? */
#include "wire/http1_host.h"

#include <arpa/inet.h>

#include "wire/http1_scan.h"

#define SCHEME_PORT 80

/* ":" port, or nothing.  *port 0: none to show. */
static bool
read_port(struct text t, uint64_t *port)
{
	*port = 0;
	if (t.n == 0 || (t.n == 1 && t.p[0] == ':'))
		return (true);
	if (t.p[0] != ':' || text_u64((struct text){t.p + 1, t.n - 1}, port) != 0 || *port == 0 || *port > 65535)
		return (false);
	if (*port == SCHEME_PORT)
		*port = 0;
	return (true);
}

/* "[...]": an IPv6 address as the C library reads one; zones and IPvFuture are not.  Its length in store, 0: malformed. */
static size_t
put_literal(struct text t, char *store)
{
	char tmp[INET6_ADDRSTRLEN];
	struct in6_addr addr;
	size_t n = t.n - 2;

	if (t.n < 3 || n >= sizeof(tmp) || memchr(t.p, '\0', t.n) != NULL)
		return (0);
	memcpy(tmp, t.p + 1, n);
	tmp[n] = '\0';
	if (inet_pton(AF_INET6, tmp, &addr) != 1 || inet_ntop(AF_INET6, &addr, store + 1, INET6_ADDRSTRLEN) == NULL)
		return (0);
	store[0] = '[';
	n = strlen(store);
	store[n] = ']';
	return (n + 1);
}

/* Length in store, 0: malformed. */
static size_t
put_name(struct text t, char *store)
{
	size_t i;

	if (t.n > 1 && t.p[t.n - 1] == '.')
		t.n--;
	for (i = 0; i < t.n; i++) {
		if (t.p[i] == '%' || (t.p[i] == '.' && (i == 0 || i + 1 == t.n || t.p[i - 1] == '.')))
			return (0);
		store[i] = t.p[i] >= 'A' && t.p[i] <= 'Z' ? (char)(t.p[i] | 0x20) : t.p[i];
	}
	return (t.n);
}

struct text
http1_host(struct text t, char store[HTTP_HOST_MAX])
{
	const char *end = t.p + t.n, *p;
	uint64_t port;
	size_t n;

	if (t.n == 0 || t.n > HTTP_HOST_MAX - 8)
		return (TEXT_NONE);
	if (t.p[0] == '[')
		p = memchr(t.p, ']', t.n) != NULL ? (const char *)memchr(t.p, ']', t.n) + 1 : t.p;
	else
		p = skip(t.p, end, C_HOST);
	if (p == t.p || !read_port((struct text){p, (size_t)(end - p)}, &port))
		return (TEXT_NONE);
	n = t.p[0] == '[' ? put_literal((struct text){t.p, (size_t)(p - t.p)}, store) :
	    put_name((struct text){t.p, (size_t)(p - t.p)}, store);
	if (n == 0)
		return (TEXT_NONE);
	if (port != 0) {
		store[n++] = ':';
		n += text_put_u64(store + n, port);
	}
	if (n == t.n && memcmp(store, t.p, n) == 0)
		return (t);
	return ((struct text){store, n});
}
