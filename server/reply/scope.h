/* server/reply/scope.h -- the directories of one worker below which files are looked up, shared by
 * all sites that answer alike.
 *
 *   site a --.                    .--> entry /x
 *   site b ---+--> reply_scope --<---> entry /y
 *   site c --'   (root, style)
 *
 * The cache prepares the head of a reply with the entry.  So a scope is a directory together with
 * everything that such a head depends on.  Sites that differ in other things (a log, a handler)
 * find the same entries, and a file is opened and kept once.
 *
 * Owner    its sites and the entries made in it count a scope; the last one frees it.  It needs
 *          neither a site nor the cache.
 * Bounds   one for each combination of directory, links and style in use, not one for each set of
 *          conditions.
 * Thread   the worker's.
 */
#ifndef SERVER_REPLY_SCOPE_H
#define SERVER_REPLY_SCOPE_H

#include "files/hold/hold.h"
#include "server/reply/style.h"

struct reply_scope {
	struct file_scope scope;
	struct reply_style style;
	struct list link;
	struct io *io;
};

struct reply_scopes { /* the scopes of a worker; list_init(&list) first */
	struct list list;
	uint32_t ids;
};

/* Returns the scope with these properties, made if necessary and counted for the caller.  Release
 * it with file_scope_put().  NULL: no memory. */
struct file_scope *reply_scope_get(struct reply_scopes *, struct io *, int root, uint64_t resolve,
    const struct reply_style *);

#endif
