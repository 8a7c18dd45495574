/* server/module/access.c -- url.access-deny and url.access-allow: endings of paths that are refused
 * (403).
 */
#include "server/module/module.h"

static bool
ends_with_one(struct text path, const struct conf_list *ends)
{
	size_t i;

	for (i = 0; i < ends->n; i++)
		if (path.n >= ends->v[i].n &&
		    text_ieq((struct text){ path.p + path.n - ends->v[i].n, ends->v[i].n },
			ends->v[i]))
			return (true);
	return (false);
}

static bool
is_used(const struct conf *c)
{
	return (c->access_deny.n != 0 || c->access_allow.n != 0);
}

static const struct handler *
route_access(struct request *r)
{
	const struct conf *c = r->conf;
	struct text path = request_path(r);

	if (c->access_allow.n != 0 && ends_with_one(path, &c->access_allow))
		return (NULL);
	if (c->access_allow.n == 0 && !ends_with_one(path, &c->access_deny))
		return (NULL);
	return (module_refuses(r, 403, TEXT_NONE));
}

const struct module module_access = {
	.name = "access",
	.is_used = is_used,
	.route = route_access,
};
