/* base/ip.h -- IPv4 and IPv6 addresses and networks as users write them.  No look-up, no socket.
 *
 * An IPv4 address and the IPv6 address that stands for it (::ffff:192.0.2.1) are equal.
 * Any thread.
 */
#ifndef BASE_IP_H
#define BASE_IP_H

#include <stdbool.h>
#include <stdint.h>
#include "base/text.h"

struct sockaddr;

struct ip {
	uint8_t b[16]; /* IPv4 as ::ffff:a.b.c.d */
};

struct ip_net {
	struct ip ip;
	uint8_t bits; /* 0..128 */
};

/* "192.0.2.1", "2001:db8::7"; no brackets, port or zone.  False: it is something else. */
bool ip_read(struct text, struct ip *);
struct text ip_without_zone(struct text); /* "fe80::1" of "fe80::1%eth0" */
struct ip ip_of_v4(const void *four_bytes);
struct ip ip_of_v6(const void *sixteen_bytes);
bool ip_is_v4(const struct ip *);
/* False: neither IPv4 nor IPv6. */
bool ip_of_sockaddr(const struct sockaddr *, struct ip *);

/* "10.0.0.0/8", "2001:db8::/32", "10.1.2.3".  Brackets around an address are ignored, and so is its
 * zone (fe80::1%eth0). */
bool ip_net_read(struct text, struct ip_net *);
bool ip_net_has(const struct ip_net *, const struct ip *);

#endif
