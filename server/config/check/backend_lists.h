/* server/config/check/backend_lists.h -- the values of proxy-core.backends and
 * proxy-core.authorizer as lists of backends.  The helper's child has looked up the addresses of
 * the names (server/config/record.h).
 *
 * Errors   the directive whose value is wrong, with one sentence in err; NULL: none.
 * Owner    the caller: each member of lists is a struct backends, from g_malloc().
 */
#ifndef SERVER_CONFIG_BACKEND_LISTS_H
#define SERVER_CONFIG_BACKEND_LISTS_H

#include <glib.h>
#include "server/config/config.h"
#include "server/config/record.h"

/* Appends the lists that begin in this block; the index is the number.  Call it for each block,
 * outer blocks first. */
const char *backend_lists_add(GPtrArray *lists, struct sources *, const struct conf *, char *err,
    size_t errsize);
/* Looks up all names of the block, so that they get into the record. */
void backend_lists_fetch(struct sources *, const struct conf *);

#endif
