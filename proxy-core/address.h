/* proxy-core/address.h -- where an application listens.
 *
 * Written as in base/address.h; a missing port is 80.
 *
 * address_lookup() may ask the resolver and so blocks: start-up only.  It remembers what it found,
 * and workers take that from address_list().
 * Thread   any.
 */
#ifndef PROXY_CORE_ADDRESS_H
#define PROXY_CORE_ADDRESS_H

#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ADDRESS_NAME_MAX 128
#define ADDRESS_MAX 64 /* addresses of one block */

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

/* 0 or -errno with *err saying what is wrong and what to do. */
int address_lookup(const char *spec, char *err, size_t errsize);

/* The same with an answer that another process got from the resolver.  0, -EINVAL (none, too many, or one that the resolver
 * cannot have given) or -ENOMEM. */
int address_learn(const char *spec, const struct address *v, size_t n);

/* The addresses of spec, at most max of them: how many, or -errno.  Never blocks: a name must have
 * been looked up. */
int address_list(const char *spec, struct address *v, size_t max);

#endif
