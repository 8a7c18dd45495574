/* fcgi-stat-accel/accel.h -- from the variables of a request to the path of a file (accel_path.c),
 * and from the facts about the file to the head of a reply (accel.c).
 *
 * Pure except for the clock of Expires: nothing here touches a file or sends.  params is libfcgi's
 * envp: NAME=VALUE strings with a NULL at the end.  Errors are -errno; accel_reply() turns them
 * into a status.
 */
#ifndef FCGI_STAT_ACCEL_ACCEL_H
#define FCGI_STAT_ACCEL_ACCEL_H

#include <glib.h>
#include <stdbool.h>

#include "base/counter.h"
#include "base/histogram.h"
#include "fcgi-stat-accel/nginx_cache.h"
#include "files/warm/warm.h"

enum accel_mode { MODE_SENDFILE, MODE_AUTH };

/* --map FROM=TO: the beginning of a path, and its URI */
struct accel_map {
	const char *from, *to;
};

struct accel_conf {
	/* requests with the role AUTHORIZER are always answered as in MODE_AUTH */
	enum accel_mode mode;
	const char *header; /* name of the "send this file" header */
	bool raw;           /* sends the name unchanged; false: percent-encoded */
	bool utf8;          /* the server takes only UTF-8 */
	bool status_307;    /* replaces 200 if the answer names a file */
	/* .from NULL at the end; the longest match wins; NULL: the path itself */
	const struct accel_map *maps;
	/* Variables in this order, see below; NULL at the end; NULL: the default. */
	const char *const *path_from;
	/* WARM_CACHE_KEY names a file of one of these; .path NULL at the end; NULL: none */
	const struct nginx_cache *caches;
	/* An authorizer refuses at the deadline, as with the variable WARM_LATE=503. */
	bool late_503;
	/* An answer is true for less than a second, so a web server must not keep it. */
	bool no_store;
	bool etag, last_modified;
	int expires; /* seconds; -1: no header */
};

/* counters.def has a row for each. */
struct accel_events {
	uint64_t accepted, refused, crowded_out, malformed, too_slow; /* connections */
	uint64_t requests, aborted;
	/* answers */
	uint64_t files, redirects, go_on, forbidden, not_found, too_long, unavailable, failed;
	uint64_t given, opens_failed; /* of the questions for a descriptor */
};

/* For the status page and the log.  Written and read by the loop's thread only. */
struct accel_counters {
	struct accel_events events;
	unsigned conns, conns_max; /* open connections, and their limit */
	unsigned fds;              /* opened for clients that do not have them yet */
	uint64_t answered_ns;      /* when a file was last answered; 0: never */
	struct warm_stages warm;
	/* Nanoseconds from request to answer.  The loop's clock stands still for a round, so a
	 * hot request counts as 0. */
	struct histogram total;
};

/* The requested file: the file of WARM_CACHE_KEY if there are caches, else WARM_PATH, else
 * SCRIPT_FILENAME, else DOCUMENT_ROOT + SCRIPT_NAME + PATH_INFO (DOCUMENT in path_from), else
 * DOCUMENT_ROOT + the path of REQUEST_URI.  In MODE_AUTH a name that ends in "/stat-accel" is that
 * of nginx's subrequest and counts as missing.
 *
 * *want    the bytes that will be sent.
 * -EPERM   there is no path, it is not absolute, or the header of this conf cannot contain it.
 * -ENODEV  no cache has the name in WARM_CACHE. */
int accel_path(const struct accel_conf *, char **params, GString *path, struct range_set *want);

/* True: the request is for the whole file.  False: HEAD, or a part of the file. */
bool accel_wants_all(char **params);

/* True: the request asks for a file of nginx's cache. */
bool accel_is_cached(const struct accel_conf *, char **params);

/* Appends head and body for the facts, or for found->err of accel_path(); counts the answer. */
void accel_reply(const struct accel_conf *, char **params, const char *path,
    const struct warm_found *, struct accel_counters *, GString *reply);

/* True: the answer is "go on", and does not tell whether the file exists. */
bool accel_is_auth(const struct accel_conf *, char **params);

/* True: the client asks for the descriptor of the file, too (WARM_OPEN=1). */
bool accel_wants_fd(char **params);
/* True: open(2) fails alike for each process with the same rights. */
bool accel_is_of_file(int err);
/* Adds the header line Warm-Errno to an answer. */
void accel_add_errno(GString *reply, int err);

/* All variables that are read, which the guard passes on; NULL at the end.  Free the array only. */
const char **accel_variables(const struct accel_conf *);

/* The value of a variable; NULL if it is missing or empty. */
const char *accel_param(char **params, const char *name);

#endif
