/* server/http1_host.c -- is that a host, and a port? */
#include <arpa/inet.h>
#include "base/text.h"
#include "server/http1_host.h"
#include "server/http1_scan.h"

static bool
port_valid(struct text t)
{
	uint64_t port;

	return (t.n == 0 || (text_u64(t, &port) == 0 && port <= 65535));
}

static bool
escapes_valid(struct text t)
{
	uint64_t v;
	size_t i;

	for (i = 0; i < t.n; i++)
		if (t.p[i] == '%' && (t.n - i < 3 || text_hex64((struct text){t.p + i + 1, 2}, &v) != 0))
			return (false);
	return (true);
}

/* "[...]": text inside is an IPv6 address as the C library reads one; zones and IPvFuture are not. */
static bool
literal_valid(struct text t)
{
	char tmp[INET6_ADDRSTRLEN];
	struct in6_addr addr;

	if (t.n == 0 || t.n >= sizeof(tmp) || memchr(t.p, '\0', t.n) != NULL)
		return (false);
	memcpy(tmp, t.p, t.n);
	tmp[t.n] = '\0';
	return (inet_pton(AF_INET6, tmp, &addr) == 1);
}

bool
http1_authority_valid(struct text t)
{
	const char *end = t.p + t.n, *p;

	if (t.n > 0 && t.p[0] == '[') {
		p = memchr(t.p, ']', t.n);
		if (p == NULL || !literal_valid((struct text){t.p + 1, (size_t)(p - t.p) - 1}))
			return (false);
		p++;
	} else {
		p = skip(t.p, end, C_HOST);
		if (p == t.p || !escapes_valid((struct text){t.p, (size_t)(p - t.p)}))
			return (false);
	}
	if (p == end)
		return (true);
	return (*p == ':' && port_valid((struct text){p + 1, (size_t)(end - p) - 1}));
}
