/* server/module/alias.c -- alias.url: a path of URLs lies elsewhere in the file system.
 *
 *   "/doc/" => "/usr/share/doc/"       /doc/a/b --> /usr/share/doc + /a/b
 *   "/icon" => "/srv/site.ico"         /icon    --> /srv + /site.ico       (a file)
 *
 * The first prefix that matches counts.  It matches whole names only: "/doc" matches "/doc" and
 * "/doc/a", not "/docs" and not "/doc../a".  lighttpd joins the strings, and so leaves the target
 * with the second.  Paths are clean here, and a look-up stays below the target.
 */
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/log.h"
#include "files/root.h"
#include "io/io.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "server/reply/scope.h"
#include "server/request/request.h"

struct alias {
	struct text prefix; /* without a slash at its end */
	bool below;         /* it had one: only what is below it */
	bool exists;        /* root is open */
	struct root root;   /* the target, or the directory of a file */
	char *file;         /* "/name" below root; NULL: the target is a directory */
};

struct aliases {
	size_t n;
	struct alias v[];
};

/* ---- the table */

/* The target is a file: opens its directory. */
static int
open_around(struct alias *a, const char *target)
{
	char *dir = g_path_get_dirname(target), *name = g_path_get_basename(target);
	int err = root_open(dir, &a->root);

	if (err == 0) {
		a->file = g_strconcat("/", name, NULL);
		a->exists = true;
	}
	g_free(dir);
	g_free(name);
	return (err);
}

/* A target that does not exist yet is not a mistake: packages are installed later. */
static int
open_target(struct alias *a, const char *target)
{
	int err = root_open(target, &a->root);

	if (err == -ENOTDIR && target[strlen(target) - 1] != '/')
		return (open_around(a, target));
	a->exists = err == 0;
	if (err == -ENOENT)
		log_event(LOG_WARN, NULL, "alias.missing", LF_STR("target", target),
		    LF_STR("then", "its URLs get 404 until a reload finds it"));
	return (err == -ENOENT ? 0 : err);
}

static bool
matches(const struct alias *a, struct text path, bool any_case)
{
	if (!(any_case ? text_istarts(path, a->prefix) : text_starts(path, a->prefix)))
		return (false);
	return (path.n == a->prefix.n ? !a->below : path.p[a->prefix.n] == '/');
}

/* NULL, or what is wrong with this row of alias.url. */
static const char *
fault_of(const struct aliases *t, struct text key, struct text target)
{
	size_t i;

	if (key.n == 0 || key.p[0] != '/')
		return ("expected a path of URLs, which begins with a slash");
	if (target.n == 0 || target.p[0] != '/')
		return ("expected an absolute path after =>");
	if (key.p[key.n - 1] == '/' && target.p[target.n - 1] != '/')
		return ("the prefix ends with a slash, so the target needs one, too");
	for (i = 0; i < t->n; i++)
		if (matches(&t->v[i], key, false))
			return ("it is never used, because an earlier prefix matches all its URLs; "
				"write it in front of that one");
	return (NULL);
}

static const char *
add(struct aliases *t, const struct conf_pair *pair)
{
	struct alias *a = &t->v[t->n];
	const char *why = fault_of(t, pair->key, pair->value);
	int err;

	if (why != NULL)
		return (why);
	a->prefix = pair->key;
	a->below = pair->key.p[pair->key.n - 1] == '/';
	if (a->below)
		a->prefix.n--;
	err = open_target(a, pair->value.p);
	t->n++;
	return (err == 0 ? NULL : io_root_error(err));
}

static void
aliases_free(void *made)
{
	struct aliases *t = made;
	size_t i;

	for (i = 0; i < t->n; i++) {
		if (t->v[i].exists)
			root_close(&t->v[i].root);
		g_free(t->v[i].file);
	}
	free(t);
}

static void *
aliases_make(const struct conf *c, char *err, size_t errsize)
{
	const struct conf_map *map = &c->alias_url;
	struct aliases *t = calloc(1, sizeof(*t) + map->n * sizeof(t->v[0]));
	const char *why = NULL;
	size_t i;

	if (t == NULL)
		return (rules_no_memory(err, errsize));
	for (i = 0; why == NULL && i < map->n; i++)
		why = add(t, &map->v[i]);
	if (why == NULL)
		return (t);
	snprintf(err, errsize, "\"%s\" => \"%s\": %s", map->v[i - 1].key.p, map->v[i - 1].value.p,
	    why);
	aliases_free(t);
	return (NULL);
}

static const void *
aliases_key(const struct conf *c)
{
	return (c->alias_url.n != 0 ? c->alias_url.v : NULL);
}

const struct rules_kind rules_alias = {
	.directive = "alias.url",
	.key = aliases_key,
	.make = aliases_make,
	.free = aliases_free,
};

/* ---- requests */

static bool
is_used(const struct conf *c)
{
	return (c->alias_url.n != 0);
}

/* The path below the root; .p NULL: no memory. */
static struct text
path_below(struct request *r, const struct alias *a, struct text rest)
{
	if (a->file == NULL || a->file[0] == '\0')
		return (rest.n != 0 ? rest : TEXT("/"));
	return (arena_join(&r->arena, text_of(a->file), rest));
}

static int
place_alias(struct request *r)
{
	const struct aliases *t = r->site->rules[RULES_alias];
	struct text path = request_path(r);
	const struct alias *a;
	size_t i = 0;

	while (i < t->n && !matches(&t->v[i], path, r->conf->force_lowercase))
		i++;
	if (i == t->n)
		return (0);
	a = &t->v[i];
	if (!a->exists)
		return (404);
	text_take(&path, a->prefix.n);
	r->place = (struct place){ reply_scope(r->site, &a->root), TEXT_NONE, a->root.name,
		path_below(r, a, path) };
	return (r->place.scope != NULL && r->place.path.p != NULL ? 0 : 500);
}

const struct module module_alias = {
	.name = "alias",
	.is_used = is_used,
	.place = place_alias,
};
