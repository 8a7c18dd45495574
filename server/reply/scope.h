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

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"

struct file_scope;
struct io;
struct reply_style;
struct root;
struct site;

struct reply_scopes { /* the scopes of a worker; list_init(&list) first */
	struct list list;
	uint32_t ids;
};

/* The scope of an open directory, for the replies of this site; lives as long as the site.  NULL:
 * no memory. */
struct file_scope *reply_scope(struct site *, const struct root *);
/* As reply_scope(), counted for the caller: file_scope_put() it. beneath: an application may name a
 * path with "..", which stays below the directory. -ENOENT: no directory. -ENOMEM. */
int reply_scope_make(struct site *, const struct root *, bool beneath, struct file_scope **);
/* What the prepared heads of its files depend on, and the loop whose clock they take. */
const struct reply_style *reply_scope_style(const struct file_scope *);
struct io *reply_scope_io(const struct file_scope *);

#endif
