/* wire/http1/host.c -- checks a host with its port, and brings it into normal form. */
#include "wire/http1/host.h"

#include <arpa/inet.h>

#include "base/address.h"
#include "wire/http1/scan.h"

#define SCHEME_PORT 80

/* "[...]": an IPv6 address that the C library accepts; not zones and IPvFuture.  Returns its length
 * in store, 0: malformed. */
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
	if (inet_pton(AF_INET6, tmp, &addr) != 1 ||
	    inet_ntop(AF_INET6, &addr, store + 1, INET6_ADDRSTRLEN) == NULL)
		return (0);
	store[0] = '[';
	n = strlen(store);
	store[n] = ']';
	return (n + 1);
}

/* Returns the length in store, 0: malformed. */
static size_t
put_name(struct text t, char *store)
{
	size_t i;

	if (skip(t.p, t.p + t.n, C_HOST) != t.p + t.n)
		return (0);
	if (t.n > 1 && t.p[t.n - 1] == '.')
		t.n--;
	for (i = 0; i < t.n; i++) {
		if (t.p[i] == '%' ||
		    (t.p[i] == '.' && (i == 0 || i + 1 == t.n || t.p[i - 1] == '.')))
			return (0);
		store[i] = t.p[i] >= 'A' && t.p[i] <= 'Z' ? (char)(t.p[i] | 0x20) : t.p[i];
	}
	return (t.n);
}

struct text
http1_host(struct text t, char store[HTTP_HOST_MAX])
{
	struct text host, port;
	uint64_t number = 0;
	size_t n;

	if (t.n > HTTP_HOST_MAX - 8 || !address_cut(t, &host, &port) || host.n == 0)
		return (TEXT_NONE);
	if (port.n > 0 && (text_u64(port, &number) != 0 || number == 0 || number > UINT16_MAX))
		return (TEXT_NONE);
	n = host.p[0] == '[' ? put_literal(host, store) : put_name(host, store);
	if (n == 0)
		return (TEXT_NONE);
	if (number != 0 && number != SCHEME_PORT) {
		store[n++] = ':';
		n += text_put_u64(store + n, number);
	}
	if (n == t.n && memcmp(store, t.p, n) == 0)
		return (t);
	return ((struct text){ store, n });
}
