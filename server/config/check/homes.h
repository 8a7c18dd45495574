/* server/config/check/homes.h -- the home directories of users, from the text of /etc/passwd.
 *
 * It is read once for each load of the configuration, because a request must not wait for it and
 * the confined server may not open it.  A new user is known after a reload.  Users who are not in
 * this file (LDAP) are not found.
 *
 * Owner    homes_new() copies what it needs.
 * Thread   any; read-only after homes_new().
 */
#ifndef SERVER_CONFIG_HOMES_H
#define SERVER_CONFIG_HOMES_H

#include "base/text.h"
#include "server/config/config.h"

#define HOMES_FILE "/etc/passwd"

struct homes;

struct homes *homes_new(struct text passwd); /* NULL: no memory; allowed below */
void homes_free(struct homes *);             /* NULL is allowed */
/* The directory of this user; NULL: no such user, or none that begins with a slash. */
const char *homes_find(const struct homes *, struct text user);
void homes_each(const struct homes *, void (*fn)(const char *user, const char *home, void *arg),
    void *arg);

/* The configuration lets /~user lead to the directory of this user. */
bool homes_allowed(const struct conf *, struct text user);
/* /~user leads to a directory of HOMES_FILE. */
bool homes_are_used(const struct conf *);

#endif
