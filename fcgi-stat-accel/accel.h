/* fcgi-stat-accel/accel.h -- from the names of a request to the path of a file (accel_path.c), and from what was found
 * to the head of a reply (accel.c).
 *
 * Pure but for the clock of Expires: no file is touched here and nothing is sent.  params is what libfcgi calls envp:
 * NAME=VALUE strings with a NULL at the end.  Errors are -errno; accel_reply() turns them into a status.
 */
#ifndef FCGI_STAT_ACCEL_ACCEL_H
#define FCGI_STAT_ACCEL_ACCEL_H

#include <glib.h>
#include <stdbool.h>

#include "fcgi-stat-accel/warm/warm.h"

enum accel_mode { MODE_SENDFILE, MODE_AUTH };

struct accel_map {			/* --map FROM=TO: the beginning of a path, and of the URI it has */
	const char *from, *to;
};

struct accel_conf {
	enum accel_mode mode;		/* the role AUTHORIZER is answered as in MODE_AUTH in any case */
	const char *header;		/* name of the "send this file" header */
	bool	    raw;		/* the name as it is; percent-encoded otherwise */
	bool	    utf8;		/* the server takes nothing else */
	bool	    status_307;		/* instead of 200, where the file is named */
	const struct accel_map *maps;	/* .from NULL at the end; the longest that fits counts; NULL: the path itself */
	const char *const *path_from;	/* variables in this order, see below; NULL: the usual one; NULL at the end */
	bool	    late_503;		/* an authorizer refuses what did not come in time */
	bool	    etag, last_modified;
	long	    expires;		/* seconds; -1: no header */
};

/* The file that is asked for: WARM_PATH, else SCRIPT_FILENAME, else DOCUMENT_ROOT + SCRIPT_NAME + PATH_INFO, which path_from
 * calls DOCUMENT; and in *want the bytes that will be sent.  -EPERM when there is none, when it is not absolute, or when the header
 * of this conf cannot hold it. */
int accel_path(const struct accel_conf *, char **params, GString *path, struct range_set *want);

/* Appends head and body for what was found, or for found->err of accel_path(); counts the answer. */
void accel_reply(const struct accel_conf *, char **params, const char *path, const struct warm_found *,
    struct stats *, GString *reply);

/* True: whether there is such a file is not told, "go on" is the answer. */
bool accel_is_auth(const struct accel_conf *, char **params);

/* All variables that are read, for the guard to pass on; NULL at the end.  Free the array only. */
const char **accel_variables(const struct accel_conf *);

/* The value of a variable; NULL when it is missing or empty. */
const char *accel_param(char **params, const char *name);

#endif
