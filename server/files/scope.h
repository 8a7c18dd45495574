/* server/files/scope.h -- the places of one worker below which files are looked up, shared by all sites that answer alike.
 *
 *   site a --.                    .--> entry /x
 *   site b ---+--> file_scope ---<---> entry /y
 *   site c --'   (root, style)
 *
 * The cache prepares the head of a reply with the entry, so a scope is a directory together with all that such a head depends on.
 * Sites that differ in other things (a log, a handler) find the same entries, and a file is opened and kept once.
 *
 * Owner    a scope is counted by its sites and by the entries made in it; the last one frees it.  It needs neither
 *          a site nor the cache.
 * Bounds   one for each combination of directory, links and style in use, not one for each set of conditions.
 * Thread   the worker's.
 */
#ifndef SERVER_FILES_SCOPE_H
#define SERVER_FILES_SCOPE_H

#include "server/config/mime.h"
#include "server/files/stat.h"

/* What the head of a reply depends on besides the file. */
struct file_style {
	const struct mime *mime; /* of the places */
	unsigned etag_parts;
	bool ranges;             /* Accept-Ranges is sent */
	bool watched;            /* as in struct stat_scope */
	struct text tag_line;    /* "Server: x\r\n" or empty; the owner's */
};

struct file_scope {
	struct stat_scope scope;
	struct file_style style;
	struct list link;
	struct io *io;
};

struct scopes { /* of a worker; list_init(&list) first */
	struct list list;
	uint32_t ids;
};

/* The scope with these properties, counted for the caller; made if there is none.  stat_scope_put() it. */
struct stat_scope *scope_get(struct scopes *, struct io *, int root, uint64_t resolve, const struct file_style *);

#endif
