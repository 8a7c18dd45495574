/* server/route/choose.h -- request + configuration -> the handler that answers.
 *
 * Thread   the worker's.
 */
#ifndef SERVER_ROUTE_CHOOSE_H
#define SERVER_ROUTE_CHOOSE_H

struct handler;
struct request;
struct worker_base;

int route_start(struct worker_base *); /* Sets w->view and w->global; 0 or -errno. */
void route_end(struct worker_base *);  /* call it after the last request */

/* Cleans the path (a route_change has a clean one), finds r->conf and r->site, and names the
 * handler.  0, or the status of a refusal and *why, a constant. */
int route(struct request *, const struct handler **, const char **why);
/* Routes again when the path below the document root is known to exist, or r->script_len bytes of
 * it: $PHYSICAL["existing-path"]. */
int route_existing(struct request *, const struct handler **, const char **why);

#endif
