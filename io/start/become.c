#include "io/start/become.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

static const char *
name_of(uid_t uid)
{
	const struct passwd *pw = uid != BECOME_SAME_USER ? getpwuid(uid) : NULL;

	return (pw != NULL ? pw->pw_name : NULL);
}

int
become(const char *name, uid_t uid, gid_t gid)
{
	if (name == NULL)
		name = name_of(uid);
	if ((name != NULL ? initgroups(name, gid) : setgroups(1, &gid)) != 0 ||
	    setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
		return (-errno);
	/* the service manager may leave CAP_SETUID to every user */
	return (uid != BECOME_SAME_USER && uid != 0 && setuid(0) == 0 ? -ENOTRECOVERABLE : 0);
}
