/* server/module/lowercase.c -- server.force-lowercase-filenames: /A.TXT is the file a.txt.
 *
 *   /Dir/A.TXT --> conditions, redirects, access, passwords --> routed again as /dir/a.txt
 *                  `-- a refusal under this name stays --'      `-- the name of all that follows
 *
 * So a rule for one spelling of a path cannot be escaped by another one.  The last route hook.
 */
#include "base/arena.h"
#include "server/config/config.h"
#include "server/module/module.h"
#include "server/request/request.h"
#include "server/request/route.h"

static bool
is_used(const struct conf *c)
{
	return (c->force_lowercase);
}

/* The part after secdownload.uri-prefix is signed as it is, with a MAC in both cases. */
static bool
is_signed(const struct request *r)
{
	const struct conf *c = r->conf;

	return (c->secdownload_root != NULL && c->secdownload_prefix != NULL &&
		text_starts(request_path(r), text_of(c->secdownload_prefix)));
}

static bool
has_upper(struct text t)
{
	size_t i = 0;

	while (i < t.n && byte_lower(t.p[i]) == t.p[i])
		i++;
	return (i < t.n);
}

/* The name of an index file is as the configuration writes it. */
static const struct handler *
route_lowercase(struct request *r)
{
	struct route_change to = { .path = request_path(r) };
	char *p;
	size_t i;

	if (r->by_index || !has_upper(to.path) || is_signed(r))
		return (NULL);
	p = arena_get(&r->arena, to.path.n + 1);
	if (p == NULL)
		return (module_refuses(r, 500, TEXT_NONE));
	for (i = 0; i < to.path.n; i++)
		p[i] = byte_lower(to.path.p[i]);
	p[to.path.n] = '\0';
	to.path.p = p;
	return (module_changed(r, &to));
}

const struct module module_lowercase = {
	.name = "lowercase",
	.is_used = is_used,
	.route = route_lowercase,
};
