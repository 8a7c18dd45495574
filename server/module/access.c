/* server/module/access.c -- url.access-deny and url.access-allow: endings of paths that are refused
 * (403).
 */
#include "server/config/config.h"
#include "server/module/module.h"
#include "server/request/request.h"
#include "server/request/route.h"
#include "wire/urlpath.h"

static bool
is_denied(const struct conf *c, struct text path)
{
	return (conf_list_ends(&c->access_deny, path) ||
		conf_list_ends(&c->access_deny, urlpath_without_dots(path)));
}

static bool
is_used(const struct conf *c)
{
	return (c->access_deny.n != 0 || c->access_allow.n != 0);
}

static bool
is_refused(const struct conf *c, struct text path)
{
	if (c->access_allow.n != 0)
		return (!conf_list_ends(&c->access_allow, path));
	return (is_denied(c, path));
}

/* A servlet container serves "/a.inc" for "/a.inc;x". */
static const struct handler *
route_access(struct request *r)
{
	struct text path = request_path(r);
	bool refused = is_refused(r->conf, path);

	if (!refused && memchr(path.p, ';', path.n) != NULL) {
		path = route_without_params(r);
		refused = path.p == NULL || is_refused(r->conf, path);
	}
	return (refused ? module_refuses(r, 403, TEXT_NONE) : NULL);
}

/* The name of the file is not that of the URL: by alias.url, in lower case, or before PATH_INFO.
 * url.access-allow is about URLs only. */
static int
place_access(struct request *r)
{
	struct text path = r->place.path;

	if (is_denied(r->conf, path) && r->conf->access_allow.n == 0)
		return (403);
	if (r->script_len == 0 || r->script_len > path.n)
		return (0);
	path.n = r->script_len;
	return (is_denied(r->conf, path) ? 403 : 0);
}

const struct module module_access = {
	.name = "access",
	.is_used = is_used,
	.route = route_access,
	.place = place_access,
};
