#include "fcgi-stat-accel/user.h"

#include <errno.h>
#include <glib.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "io/start/become.h"

/* The number that a table has for this name, else the name as a number. */
static int
number_of(const char *name, const id_t *known, id_t *id)
{
	guint64 n;

	if (known == NULL && !g_ascii_string_to_unsigned(name, 10, 0, (uid_t)-2, &n, NULL))
		return (-ENOENT);
	*id = known != NULL ? *known : (id_t)n;
	return (0);
}

int
user_number(const char *name, uid_t *uid)
{
	const struct passwd *pw = getpwnam(name);

	return (number_of(name, pw != NULL ? &pw->pw_uid : NULL, uid));
}

static int
group_number(const char *name, gid_t *gid)
{
	const struct group *gr = getgrnam(name);

	return (number_of(name, gr != NULL ? &gr->gr_gid : NULL, gid));
}

/* A number that is not in the user database has no group. */
static int
own_group(uid_t uid, gid_t *gid)
{
	const struct passwd *pw = getpwuid(uid);

	if (pw == NULL)
		return (-ENOENT);
	*gid = pw->pw_gid;
	return (0);
}

int
user_read(const char *text, struct user *u)
{
	char **part = g_strsplit(text, ":", 2);
	int err = user_number(part[0] != NULL ? part[0] : "", &u->uid);

	if (err == 0)
		err = part[1] != NULL ? group_number(part[1], &u->gid) : own_group(u->uid, &u->gid);
	g_strfreev(part);
	u->name = text;
	return (err);
}

bool
user_is_root(void)
{
	return (geteuid() == 0);
}

/* As Debian, nginx.org, Arch, Red Hat, Fedora and SUSE name them.  A container may have no list of
 * users; 65534 is nobody's number. */
void
user_of_web_servers(struct user *u)
{
	static const char *const names[] = { "www-data", "nginx", "http", "apache", "lighttpd",
		"wwwrun", "nobody" };

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
		if (user_read(names[i], u) == 0)
			return;
	*u = (struct user){ "65534", 65534, 65534 };
}

int
user_become(const struct user *u)
{
	if (geteuid() != 0)
		return (geteuid() == u->uid ? 0 : -EPERM);
	if (u->uid == 0 && u->gid == getegid())
		return (0);
	return (become(NULL, u->uid, u->gid));
}
