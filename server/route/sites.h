/* server/route/sites.h -- makes a struct site from one merged struct conf: scopes, tables, pools.
 *
 * Nothing is opened or read here, because a request waits.  server/config/resources.h has done it.
 *
 * Thread   the worker's; made at start for the global values, on first use for the values of
 *          conditions.
 */
#ifndef SERVER_ROUTE_SITES_H
#define SERVER_ROUTE_SITES_H

struct conf;
struct site;
struct worker_base;

int site_new(struct worker_base *, const struct conf *,
    struct site **); /* logs the mistake; -errno */
void site_free(struct site *);

#endif
