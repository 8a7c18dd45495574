/* server/module/userdir.c -- userdir.*: /~user/ is a directory of that user.
 *
 *   /~joe/a  -->  HOME of joe  + userdir.path + /a     HOME: from /etc/passwd, read at load
 *                 basepath/joe + userdir.path + /a     with userdir.basepath
 *                 basepath/j/joe + ...                 with userdir.letterhomes
 *
 * Links stay below the directory of the user.  Without such a user or directory, the path stays
 * below the document root.
 */
#include <limits.h>

#include "server/config/check/homes.h"
#include "server/config/resources.h"
#include "server/module/module.h"
#include "server/module/vhost.h"
#include "server/request/request.h"
#include "server/worker/base.h"

static bool
is_used(const struct conf *c)
{
	return (c->userdir_active && c->userdir_path != NULL);
}

/* The user of /~user; .p NULL: none. */
static struct text
user_of(struct request *r)
{
	struct text path = request_path(r), user;
	size_t i;

	if (path.n < 3 || path.p[1] != '~')
		return (TEXT_NONE);
	text_take(&path, 2);
	(void)text_next(&path, '/', &user);
	if (user.n == 0 || user.n > NAME_MAX || user.p[0] == '.')
		return (TEXT_NONE);
	for (i = 0; i < user.n; i++)
		if (!byte_is_alnum(user.p[i]) && strchr("-_.", user.p[i]) == NULL)
			return (TEXT_NONE);
	return (user);
}

/* The directory of the user; .p NULL: none. */
static struct text
home_of(struct request *r, struct text user)
{
	const struct resources *res = r->worker->conf.resources;
	const struct text letter[] = { { user.p, 1 }, user };

	if (r->conf->userdir_basepath == NULL)
		return (text_of(resources_home(res, user)));
	return (r->conf->userdir_letterhomes ? vhost_join(r, letter, 2) : user);
}

static struct vhost_dir
dir_of(struct request *r)
{
	const struct conf *c = r->conf;
	struct text user = user_of(r), parts[2] = { TEXT_NONE, text_of(c->userdir_path) };
	struct vhost_dir d = { .root = resources_root(r->worker->conf.resources,
				   c->userdir_basepath != NULL ? c->userdir_basepath : "/") };

	if (user.p == NULL || !homes_allowed(c, user))
		return (d);
	parts[0] = home_of(r, user);
	while (parts[0].n != 0 && parts[0].p[0] == '/')
		text_take(&parts[0], 1);
	if (parts[0].n == 0)
		return (d);
	d.base = vhost_join(r, parts, 1).n;
	d.name = vhost_join(r, parts, 2);
	return (d);
}

static const struct handler *
route_userdir(struct request *r)
{
	const struct vhost_dir d = dir_of(r);

	return (d.name.p != NULL ? vhost_route(r, vhost_find(r, &d)) : NULL);
}

static int
place_userdir(struct request *r)
{
	const struct vhost_dir d = dir_of(r);
	struct text path = request_path(r);

	if (d.name.p == NULL || vhost_find(r, &d) != VHOST_YES)
		return (0);
	text_take(&path, 1);
	while (path.n != 0 && path.p[0] != '/')
		text_take(&path, 1);
	return (vhost_place(r, &d, path.n != 0 ? path : TEXT("/")));
}

const struct module module_userdir = {
	.name = "userdir",
	.is_used = is_used,
	.route = route_userdir,
	.place = place_userdir,
};
