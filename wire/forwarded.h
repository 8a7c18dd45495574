/* wire/forwarded.h -- the client of a request that came through proxies, as they wrote it down.
 *
 *   X-Forwarded-For: CLIENT, PROXY     lines are joined in their order
 *   Forwarded: for="[2001:db8::1]:4711";proto=https, for=192.0.2.43     (RFC 7239)
 *
 *   walk   from the last member to the first.  Each member was written by the hop right of it; the
 *          last one by the peer, which the caller trusts.  A member is believed while its writer is
 *          trusted: the first address that is not trusted is the client, and what it wrote itself
 *          is not read.
 *
 * A member without an address (malformed, unknown, _hidden) ends the walk at its writer; so do
 * FORWARDED_HOPS members.  If all addresses are trusted, the first one is the client.
 *
 * Pure.  Members are split from the right, so what a client wrote (an open quote) cannot change how
 * the members of the proxies are read.  The work is linear in the bytes of the members walked.
 * wire/codec/client_fields.h writes such fields; this file reads them.
 */
#ifndef WIRE_FORWARDED_H
#define WIRE_FORWARDED_H

#include "base/ip.h"

#define FORWARDED_HOPS 32u

struct forwarded {
	bool has_addr; /* false: the peer is the client */
	struct ip addr;
	uint16_t port; /* 0: unknown */
	enum forwarded_scheme { SCHEME_UNKNOWN, SCHEME_HTTP, SCHEME_HTTPS } scheme;
};

struct forwarded_walk {
	struct forwarded found;
	bool (*trusts)(const void *arg, const struct ip *);
	const void *arg;
	unsigned hops;
	bool over;
};

/* Each takes one line of the field, the last line of the head first; found is valid after any of
 * them.  Lines after the end of the walk are not read. */
void forwarded_addresses(struct forwarded_walk *, struct text line); /* X-Forwarded-For */
void forwarded_elements(struct forwarded_walk *, struct text line);  /* Forwarded */
/* The last word of X-Forwarded-Proto: the one that the peer wrote. */
enum forwarded_scheme forwarded_proto(struct text line);

#endif
