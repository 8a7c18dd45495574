/* server/helper/cgi_names.c -- the child that reads the configuration says what CGI programs may
 * be: interpreters with their endings, the directories below which scripts lie, variables.
 */
#include "server/config/check/homes.h"
#include "server/helper/cgi.h"
#include "server/helper/impl.h"
#include "server/module/vhost.h"

struct names_telling {
	const struct config *config;
	const struct conf *conf;
	int names;
};

/* set_mode: the owner of the configuration lets links lead anywhere. */
static void
tell_directory(const struct names_telling *t, const char *dir)
{
	struct helper_name n = { .set_mode = strcmp(t->conf->follow_symlink, "enable") == 0 };

	if (dir != NULL && dir[0] != '\0')
		helper_tell(t->names, &n, HELPER_CGI_ROOT, dir);
}

static void
tell_home(const char *user, const char *home, void *arg)
{
	const struct names_telling *t = arg;
	char *dir = g_build_filename(home, t->conf->userdir_path, NULL);

	if (homes_allowed(t->conf, text_of(user)))
		tell_directory(t, dir);
	g_free(dir);
}

static void
tell_homes(struct names_telling *t)
{
	struct source passwd =
	    sources_get(config_sources(t->config), SOURCE_FILE, HOMES_FILE, NULL);
	struct homes *homes = homes_new(passwd.bytes);

	homes_each(homes, tell_home, t);
	homes_free(homes);
	source_free(&passwd);
}

/* The directories that a script may be in (server/module). */
static bool
tell_places(const struct conf *c, void *telling)
{
	struct names_telling *t = telling;
	char *evhost;
	size_t i;

	t->conf = c;
	tell_directory(t, c->document_root);
	for (i = 0; i < c->alias_url.n; i++)
		tell_directory(t, c->alias_url.v[i].value.p);
	tell_directory(t, c->vhost_root);
	if (c->evhost_pattern != NULL) {
		evhost = evhost_root(c->evhost_pattern, &i);
		tell_directory(t, evhost);
		g_free(evhost);
	}
	if (c->userdir_active && c->userdir_path != NULL)
		tell_directory(t, c->userdir_basepath);
	if (homes_are_used(c))
		tell_homes(t);
	return (true);
}

static bool
tell_interpreters(const struct conf *c, void *telling)
{
	const struct names_telling *t = telling;
	struct helper_name n = { 0 };
	char *rule;
	size_t i;

	for (i = 0; i < c->cgi_assign.n; i++) {
		rule = g_strdup_printf("%s%c%s", c->cgi_assign.v[i].value.p, CGI_RULE_MARK,
		    c->cgi_assign.v[i].key.p);
		helper_tell(t->names, &n, HELPER_CGI_PROGRAM, rule);
		g_free(rule);
	}
	return (true);
}

static void
tell_keys(const struct names_telling *t, const struct conf_map *map)
{
	struct helper_name n = { 0 };
	size_t i;

	for (i = 0; i < map->n; i++)
		if (map->v[i].key.n != 0)
			helper_tell(t->names, &n, HELPER_CGI_VARIABLE, map->v[i].key.p);
}

static bool
tell_variables(const struct conf *c, void *telling)
{
	tell_keys(telling, &c->setenv_add_environment);
	tell_keys(telling, &c->setenv_set_environment);
	return (true);
}

static bool
has_no_programs(const struct conf *c, void *arg)
{
	(void)arg;
	return (c->cgi_assign.n == 0);
}

void
cgi_names_tell(const struct config *config, int names)
{
	const struct conf *c = config_global(config);
	struct helper_name n = { .backlog = (int32_t)c->cgi_max_programs };
	struct names_telling t = { .config = config, .names = names };

	if (config_each(config, has_no_programs, NULL))
		return;
	(void)config_each(config, tell_interpreters, &t);
	(void)config_each(config, tell_places, &t);
	(void)config_each(config, tell_variables, &t);
	helper_owner_of(c, &n);
	helper_tell(names, &n, HELPER_CGI_USER, c->username != NULL ? c->username : "-");
}
