/* server/conn/overdue.h -- no request waits for ever.
 *
 * Each wait of a request has a deadline: its look-up, its application, its client.  This is the net
 * below them, for a wait that nobody ends.  A request that has not moved for longer than all
 * deadlines of its state together is logged with that state, and its connection is closed.
 *
 * Cost     one look at each connection every OVERDUE_LOOK_MS, while there are connections.
 * Thread   the worker's.
 */
#ifndef SERVER_CONN_OVERDUE_H
#define SERVER_CONN_OVERDUE_H

#include <stdbool.h>

struct worker;

#define OVERDUE_LOOK_MS 5000u

void overdue_init(struct worker *);
void overdue_begin(struct worker *); /* there are connections */
void overdue_end(struct worker *);   /* there are none */

#endif
