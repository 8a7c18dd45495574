/* server/config/check/targets.h -- backends by name: which block of proxy-core.backends has the
 * host and port of a URL.
 *
 * Nothing is resolved: the names are compared as they are written, a missing port is 80.
 *
 * Owner    the resources of a configuration.
 * Thread   made by one, then read by all workers.
 */
#ifndef SERVER_CONFIG_TARGETS_H
#define SERVER_CONFIG_TARGETS_H

#include "server/config/config.h"

struct targets;

struct targets *targets_new(const struct config *); /* NULL: no memory */
void targets_free(struct targets *);                /* NULL is allowed */
/* The block (struct conf, proxy_block) that lists "host:port"; the first one if several do.  -1:
 * none. */
int targets_block(const struct targets *, struct text authority);

#endif
