/* server/conn/requests.h -- the requests of a worker: a connection has one while it works, and they
 * are recycled.
 *
 * Thread   the worker's.
 */
#ifndef SERVER_CONN_REQUESTS_H
#define SERVER_CONN_REQUESTS_H

struct request;
struct worker;

struct request *requests_take(struct worker *); /* NULL: no memory */
void requests_give(struct request *);
void requests_drop(struct worker *, unsigned keep); /* frees recycled ones */

#endif
