/* server/config/check/trust.h -- the peers of one listening socket that may speak for other
 * clients.
 *
 * Owner    a worker, one for each listener.  Immutable.
 * Source   proxies: server.proxy-protocol, extforward.hap-PROXY; the others: extforward.*.
 */
#ifndef SERVER_CONFIG_TRUST_H
#define SERVER_CONFIG_TRUST_H

#include "base/ip.h"
#include "io/io.h"
#include "server/config/config.h"

struct trust {
	struct trust_list {
		size_t n;
		struct ip_net *nets;
		bool all, local; /* "all"; "unix": peers on a unix socket */
	} proxies,               /* send the header of the PROXY protocol */
	    forwarders,          /* send fields about their clients */
	    strangers;           /* "untrusted": never forwarders */
	struct conf_list fields; /* extforward.headers; memory of the config */
};

/* Values of the socket.  NULL: no memory. */
struct trust *trust_new(const struct config *, const char *socket);
void trust_free(struct trust *); /* NULL is allowed */

/* trust NULL: no peer */
bool trust_proxies(const struct trust *, const union io_addr *peer);
bool trust_forwards(const struct trust *, const union io_addr *peer);
/* True for an address behind the peer: "all" is about peers only, as in lighttpd 1.4. */
bool trust_hop(const void *trust, const struct ip *);

#endif
