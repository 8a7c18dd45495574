/* base/client_addr.h -- the client of an address: the unit of counts, limits and turns.
 *
 *   192.0.2.1, ::ffff:192.0.2.1    the address
 *   2001:db8:1:2::7                2001:db8:1:2::/64, the network of one customer
 *   unix sockets                   one client, without a key
 *
 * Pure; any thread.
 */
#ifndef BASE_CLIENT_ADDR_H
#define BASE_CLIENT_ADDR_H

#include <stdbool.h>
#include <stdint.h>

struct sockaddr;

struct client_addr {
	uint64_t net, host; /* host 0: a unix socket, or unknown */
};

struct client_addr client_addr_of(const struct sockaddr *);
/* "192.0.2.1", "2001:db8::7"; unknown if it is not an address */
struct client_addr client_addr_written(const char *);
bool client_addr_same(struct client_addr, struct client_addr);
uint64_t client_addr_hash(struct client_addr);
uint32_t client_addr_key(struct client_addr); /* for rows and shares; 0: unknown */
#define CLIENT_ADDR_MAX 64
/* As in logs: "192.0.2.1", "2001:db8::/64", "unix". */
const char *client_addr_name(struct client_addr, char buf[CLIENT_ADDR_MAX]);
/* The whole address: "192.0.2.1", "192.0.2.1" for ::ffff:192.0.2.1, too; "2001:db8::7"; "unix". */
const char *client_addr_text(const struct sockaddr *, char buf[CLIENT_ADDR_MAX]);

#endif
