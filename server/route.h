/* server/route.h -- request + configuration -> who answers. */
#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include "server/handler/handler.h"

int route_start(struct worker *);   /* w->view and w->global; -errno */
void route_end(struct worker *);    /* after its last request */

/* Cleans the path, finds r->conf and r->site, names the handler.  0, or the status to refuse with and *why, a constant. */
int route(struct request *, const struct handler **, const char **why);
/* The same once more, when the path below the document root is known to exist: $PHYSICAL["existing-path"]. */
int route_existing(struct request *, const struct handler **, const char **why);

/* Counts and logs (at most once a second) that a regular expression reached a limit, so that the request is refused. */
void route_undecided(struct request *, const char *what, struct text where);

#endif
