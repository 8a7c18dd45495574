/* fcgi-stat-accel/accel.h -- from the names of a request to the head of a reply.
 *
 * Pure: no file is touched here and nothing is sent.  params is what libfcgi calls envp: NAME=VALUE
 * strings with a NULL at the end.  Errors are -errno; accel_reply() turns them into a status.
 */
#ifndef FCGI_STAT_ACCEL_ACCEL_H
#define FCGI_STAT_ACCEL_ACCEL_H

#include <glib.h>
#include <stdbool.h>

struct accel_conf {
	const char *header;		/* name of the "send this file" header */
	bool	    raw;		/* path as it is; percent-encoded otherwise */
};

/* The file that is asked for: WARM_PATH, else SCRIPT_FILENAME, else DOCUMENT_ROOT + SCRIPT_NAME +
 * PATH_INFO.  -EPERM when there is none, when it is not absolute, or when it cannot stand in the
 * header; -EISDIR when it ends in a slash. */
int accel_path(const struct accel_conf *, char **params, GString *path);

/* Appends head and body for the result of touching path (0 or -errno). */
void accel_reply(const struct accel_conf *, char **params, const char *path, int result,
    GString *reply);

/* A header name that may be sent: a token of RFC 9110. */
bool accel_header_valid(const char *name);

#endif
