/* proxy-core/address.h -- where an application listens.
 *
 * Written as in base/address.h; a missing port is 80.  "unix:@name" is an abstract socket.
 *
 * Thread   any.  address_lookup() may block: start-up and reload only.
 */
#ifndef PROXY_CORE_ADDRESS_H
#define PROXY_CORE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ADDRESS_NAME_MAX 128
#define ADDRESS_MAX      64 /* addresses of one name */

struct address {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	};
	socklen_t len;
	char name[ADDRESS_NAME_MAX]; /* for logs: "unix:/run/app.sock", "[::1]:80" */
};

/* Needs no resolver: 0, -EINVAL (malformed), -ENAMETOOLONG (unix path), -ENOENT (a host name). */
int address_parse(const char *spec, struct address *);

/* What is wrong with the address, in words; NULL: the address is well-formed, but a host name may
 * be unknown. */
const char *address_fault(const char *spec);

/* How many addresses it has, or -errno with *err: what is wrong and what to do.  Asks the resolver
 * for a name. */
int address_lookup(const char *spec, struct address v[ADDRESS_MAX], char *err, size_t errsize);

/* True if address_lookup() can have found these addresses; they come from another process. */
bool address_are_inet(const struct address *v, size_t n);

#endif
