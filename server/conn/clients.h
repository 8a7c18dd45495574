/* server/conn/clients.h -- how many connections each client address has, in all workers of the process.
 *
 *   accept: clients_take()  --> shard (by hash of the address) --> struct client {address, connections}
 *   close:  clients_give()
 *
 * Every connection over TCP is counted, also while no limit is set, so a limit that comes with a reload counts the
 * connections of older generations too.  An address without connections has no record.
 *
 * Bounds   one record for each address that has a connection, so at most server.max-connections of each generation.
 * Thread   any: a shard has a lock of its own, held for the walk of one chain.
 */
#ifndef SERVER_CONN_CLIENTS_H
#define SERVER_CONN_CLIENTS_H

#include "base/client_addr.h"

struct client;
struct clients;

struct clients *clients_new(void); /* NULL: no memory */
void clients_free(struct clients *); /* NULL is fine; every connection was given back */

/* One more connection of that address.  max 0: no limit.  0 with *cp set (NULL for a unix socket, which has no limit);
 * -EUSERS: the address has max already; -ENOMEM. */
int clients_take(struct clients *, struct client_addr, unsigned max, struct client **cp);
void clients_give(struct clients *, struct client **); /* yours is NULL now */
unsigned clients_count(struct clients *, struct client_addr);

#endif
