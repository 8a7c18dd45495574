/* fcgi-stat-accel/user.h -- users by name or number, and the user that root becomes (--user).
 *
 * Errors   -ENOENT: the user or group does not exist; otherwise the error of the system call.
 */
#ifndef FCGI_STAT_ACCEL_USER_H
#define FCGI_STAT_ACCEL_USER_H

#include <stdbool.h>
#include <sys/types.h>

struct user {
	const char *name; /* as given; NULL: none */
	uid_t uid;
	gid_t gid;
};

int user_number(const char *name, uid_t *);
/* "NAME" or "NAME:GROUP"; without a group the user's own */
int user_read(const char *text, struct user *);
bool user_is_root(void); /* this process */
/* The user that web servers have on this machine; its files are what they may read anyway. */
void user_of_web_servers(struct user *);
/* permanent; -EPERM: only root can become another user */
int user_become(const struct user *);

#endif
