/* server/route.h -- request + configuration -> who answers. */
#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include "server/handler/handler.h"

/* Cleans the path, finds r->conf and r->site, names the handler.  0, or the status to refuse with. */
int route(struct request *, const struct handler **);
/* The same once more, when the path below the document root is known to exist: $PHYSICAL["existing-path"]. */
int route_existing(struct request *, const struct handler **);

#endif
