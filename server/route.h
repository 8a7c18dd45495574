/* server/route.h -- request + configuration -> the handler that answers. */
#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include "server/handler/handler.h"

int route_start(struct worker *); /* Sets w->view and w->global; 0 or -errno. */
void route_end(struct worker *);  /* call it after the last request */

/* Cleans the path, finds r->conf and r->site, and names the handler.  0, or the status of a refusal
 * and *why, a constant. */
int route(struct request *, const struct handler **, const char **why);
/* Routes again when the path below the document root is known to exist:
 * $PHYSICAL["existing-path"]. */
int route_existing(struct request *, const struct handler **, const char **why);

/* Counts, and logs at most once a second, a regular expression that reached a limit.  The request
 * is refused. */
void route_undecided(struct request *, const char *what, struct text where);

#endif
