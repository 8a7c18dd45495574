/* server/module/vhost.h -- directories of virtual hosts and users: which one exists?
 *
 *   route hook --> vhost_find() --> known, or in memory: VHOST_YES, VHOST_NO
 *       ^                     `--> VHOST_ASK: handler_vhost looks it up
 *       '------ routed again <--------'
 *
 * No hook waits.  The request remembers the answers, so it is routed again once for each
 * directory, whatever the cache keeps.
 *
 * Thread   the worker's.
 */
#ifndef SERVER_MODULE_VHOST_H
#define SERVER_MODULE_VHOST_H

#include <stddef.h>
#include "base/text.h"

struct request;

enum vhost_is { VHOST_NO, VHOST_YES, VHOST_ASK, VHOST_FAILED };

/* A directory below an open one.  base: this many bytes of name are the directory that links stay
 * below. */
struct vhost_dir {
	const struct root *root;
	struct text name; /* without slashes at its ends; in the arena; .p NULL: none */
	size_t base;
};

/* VHOST_FAILED: the file system has no answer; vhost_route() refuses the request. */
enum vhost_is vhost_find(struct request *, const struct vhost_dir *);
/* r->place becomes this directory, with the path.  0 or 500. */
int vhost_place(struct request *, const struct vhost_dir *, struct text path);
/* The value that a route hook returns: the handler that asks or refuses, or NULL. */
const struct handler *vhost_route(struct request *, enum vhost_is);

/* The host of the request as a name of one directory, in lower case and without port; .p NULL: it
 * has none that is safe. */
struct text vhost_host(const struct request *);
/* Joins the parts of a name with single slashes; .p NULL: no memory, or longer than a path. */
struct text vhost_join(struct request *, const struct text *part, size_t n);
/* The directory in front of the first placeholder of evhost.path-pattern, n bytes of it; free it
 * with g_free().  NULL: none. */
char *evhost_root(const char *pattern, size_t *n);

#endif
