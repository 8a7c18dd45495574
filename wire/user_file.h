/* wire/user_file.h -- files of users and groups, line by line.
 *
 *   plain      user:password
 *   htpasswd   user:hash                 a field after the hash does not count
 *   htdigest   user:realm:hash           32 digits for MD5, 64 for SHA-256
 *   groups     group: user user, user
 *
 * Empty lines and lines that begin with # do not count; of two lines for one user the first counts.
 * Pure.  The results are slices of the bytes.
 */
#ifndef WIRE_USER_FILE_H
#define WIRE_USER_FILE_H

#include "base/text.h"

enum user_format { USERS_PLAIN, USERS_HTPASSWD, USERS_HTDIGEST };

struct user_query {
	enum user_format format;
	struct text user;
	struct text realm; /* htdigest */
	size_t digits;     /* htdigest: of the hash */
};

/* The secret of a user; .p NULL: there is no such user. */
struct text user_file_find(struct text bytes, const struct user_query *);
/* The secret of some user, for equal work where the user does not exist; .p NULL: no user. */
struct text user_file_any(struct text bytes, const struct user_query *);
bool group_file_has(struct text bytes, struct text group, struct text user);

#endif
