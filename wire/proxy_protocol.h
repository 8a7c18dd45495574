/* wire/proxy_protocol.h -- the PROXY protocol of HAProxy, versions 1 and 2: what a balancer sends
 * before the bytes of its client.
 *
 *   1   PROXY TCP4 192.0.2.7 192.0.2.1 40000 443 CR LF      PROXY UNKNOWN ... CR LF
 *   2   12 bytes, version and command, family, length, addresses, TLVs (PP2_TYPE_SSL)
 *
 * Source: doc/proxy-protocol.txt of HAProxy.
 * Pure; any split of the bytes gives one answer.  A header starts again from its first byte when
 * more bytes have come; that costs constant time until it is complete.
 */
#ifndef WIRE_PROXY_PROTOCOL_H
#define WIRE_PROXY_PROTOCOL_H

#include "base/ip.h"
#include "wire/http1/http1.h"

#define PROXY_LINE_MAX   107u  /* version 1, with its line end */
#define PROXY_HEADER_MAX 4096u /* version 2, with its TLVs */

struct proxy_header {
	/* False: LOCAL (a health check of the balancer), UNKNOWN, or a unix socket of the
	 * balancer's machine.  The addresses of the socket are the right ones. */
	bool has_addr;
	struct ip addr; /* of the client */
	uint16_t port;
	bool tls; /* version 2: the client spoke TLS */
};

/* PARSE_DONE: *used bytes belong to the header.  PARSE_BAD: *why, a constant. */
enum parse proxy_header_read(struct text in, struct proxy_header *, size_t *used, const char **why);

#endif
