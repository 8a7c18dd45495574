/* fcgi-stat-accel/user.h -- users by name or number, and the one that root becomes (--user).
 *
 * Errors   -ENOENT: there is no such user or group; else what the system refused.
 */
#ifndef FCGI_STAT_ACCEL_USER_H
#define FCGI_STAT_ACCEL_USER_H

#include <stdbool.h>
#include <sys/types.h>

struct user {
	const char *name;	/* as it was given; NULL: none was */
	uid_t	    uid;
	gid_t	    gid;
};

int  user_number(const char *name, uid_t *);
int  user_read(const char *text, struct user *);	/* "NAME" or "NAME:GROUP"; without a group it is the user's own */
int  user_become(const struct user *);			/* for good; -EPERM: only root can become another user */

#endif
