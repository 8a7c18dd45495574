/* server/conn/clients.h -- the number of connections of each client address, in all workers.
 *
 *   accept: clients_take()  --> shard (by hash of the address) --> struct client {address, count}
 *   close:  clients_give()
 *
 * Every TCP connection is counted, even without a limit.  So a limit that comes with a reload also
 * counts the connections of older generations.  An address without connections has no record.
 *
 * Bounds   one record for each address that has a connection, so at most server.max-connections of
 *          each generation.
 * Thread   any: each shard has a lock, held for the walk of one chain.
 */
#ifndef SERVER_CONN_CLIENTS_H
#define SERVER_CONN_CLIENTS_H

#include "base/client_addr.h"

struct client;
struct clients;

struct clients *clients_new(void);   /* NULL: no memory */
void clients_free(struct clients *); /* NULL is allowed; no connection may be counted any more */

/* Counts one more connection of this address.  max 0: no limit.  0: *cp is set (to NULL for a unix
 * socket, which has no limit); -EUSERS: the address has max connections already; -ENOMEM. */
int clients_take(struct clients *, struct client_addr, unsigned max, struct client **cp);
void clients_give(struct clients *, struct client **); /* takes yours and sets it to NULL */

#endif
