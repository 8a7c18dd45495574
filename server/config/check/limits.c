/* server/config/check/limits.c -- see limits.h */
#include "proxy-core/address.h"
#include "server/config/control_name.h"
#include "server/config/impl.h"
#include "server/config/check/limits.h"
#include "server/config/check/log_names.h"
#include "server/config/check/spawn.h"

/* Different names of one kind. */
struct kind {
	unsigned max;
	const char *what, *do_; /* "more than MAX WHAT; DO" */
	GHashTable *seen;       /* the names, which it owns */
};

enum { LOGS, APPLICATIONS, HOSTS, PROGRAMS, KINDS };

struct limits {
	struct config *cfg;
	const struct conf *c; /* the values that are looked at now */
	bool programs;        /* a block has cgi.assign */
	struct kind kind[KINDS];
};

static struct cfg_pos
place(const struct limits *l, const char *directive)
{
	const struct cfg_entry *e = cfg_entry_of(l->cfg, l->c, directive);
	const struct cfg_block *b = g_ptr_array_index(l->cfg->blocks, l->c->values_of);

	return (e != NULL ? e->value_pos : b->pos);
}

static bool
short_enough(struct limits *l, const char *directive, const char *name)
{
	if (name == NULL || strlen(name) < CFG_NAME_MAX)
		return (true);
	return (cfg_error(l->cfg, place(l, directive),
	    "%.*s: \"%.40s...\" is longer than %u bytes; write a shorter name",
	    (int)strcspn(directive, " "), directive, name, CFG_NAME_MAX - 1));
}

static bool
add(struct limits *l, unsigned nr, const char *directive, const char *name)
{
	struct kind *k = &l->kind[nr];

	if (name == NULL || name[0] == '\0' || g_hash_table_contains(k->seen, name))
		return (true);
	if (!short_enough(l, directive, name))
		return (false);
	if (g_hash_table_size(k->seen) == k->max)
		return (cfg_error(l->cfg, place(l, directive), "%.*s: more than %u %s; %s",
		    (int)strcspn(directive, " "), directive, k->max, k->what, k->do_));
	return (g_hash_table_add(k->seen, g_strdup(name)));
}

static bool
add_hosts(struct limits *l, const char *directive, const struct conf_list *specs)
{
	struct address a;
	bool ok = true;
	size_t i;

	for (i = 0; ok && i < specs->n; i++)
		if (address_parse(specs->v[i].p, &a) == -ENOENT)
			ok = add(l, HOSTS, directive, specs->v[i].p);
	return (ok);
}

static bool
add_applications(struct limits *l)
{
	const struct conf_map *m = &l->c->proxy_spawn;
	char line[SPAWN_LINE_MAX];
	bool ok = true;
	size_t i;

	for (i = 0; ok && i < m->n; i++)
		if (spawn_line(&m->v[i], line) == NULL)
			ok = add(l, APPLICATIONS, "proxy-core.spawn", line);
	return (ok);
}

static bool
add_keys(struct limits *l, const char *directive, const struct conf_map *m)
{
	bool ok = true;
	size_t i;

	for (i = 0; ok && i < m->n; i++)
		ok = add(l, PROGRAMS, directive, m->v[i].key.p);
	return (ok);
}

/* Counts the names that server/helper/cgi_names.c makes of these settings.  Two that differ only
 * there count as one. */
static bool
add_programs(struct limits *l)
{
	const struct conf *c = l->c;
	bool ok = add(l, PROGRAMS, "server.document-root", c->document_root) &&
		  add(l, PROGRAMS, "simple-vhost.server-root", c->vhost_root) &&
		  add_keys(l, "setenv.add-environment", &c->setenv_add_environment) &&
		  add_keys(l, "setenv.set-environment", &c->setenv_set_environment);
	size_t i;

	for (i = 0; ok && i < c->alias_url.n; i++)
		ok = add(l, PROGRAMS, "alias.url", c->alias_url.v[i].value.p);
	for (i = 0; ok && i < c->cgi_assign.n; i++)
		ok = add(l, PROGRAMS, "cgi.assign", c->cgi_assign.v[i].value.p);
	return (ok);
}

static bool
each(const struct conf *c, void *limits)
{
	struct limits *l = limits;

	l->c = c;
	return (add(l, LOGS, "accesslog.filename", log_name_access(c)) &&
		add_hosts(l, "proxy-core.backends", &c->proxy_backends) &&
		add_hosts(l, "proxy-core.authorizer", &c->authorizer) && add_applications(l) &&
		(!l->programs || add_programs(l)));
}

static bool
runs_programs(const struct conf *c, void *limits)
{
	((struct limits *)limits)->programs |= c->cgi_assign.n != 0;
	return (true);
}

bool
cfg_limits_check(struct config *cfg)
{
	struct limits l = { .cfg = cfg,
		.c = &cfg->global,
		.kind = {
		    [LOGS] = { CFG_LOGS_MAX, "different access logs",
			"let blocks share one: %v in accesslog.format tells hosts apart" },
		    [APPLICATIONS] = { CFG_APPLICATIONS_MAX, "applications to start",
			"start some of them by the service manager" },
		    [HOSTS] = { CFG_HOSTS_MAX, "different hosts of applications",
			"write addresses, which need no look-up" },
		    [PROGRAMS] = { CFG_PROGRAMS_MAX,
			"different directories, interpreters and variables beside cgi.assign",
			"run the programs in another server, which counts as one host" },
		} };
	bool ok;
	size_t i;

	for (i = 0; i < KINDS; i++)
		l.kind[i].seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	(void)config_each(cfg, runs_programs, &l);
	l.c = &cfg->global;
	ok = short_enough(&l, "server.errorlog", log_name_error(l.c)) &&
	     short_enough(&l, "server.pid-file", l.c->pid_file) &&
	     short_enough(&l, "server.control-socket", control_name(l.c)) &&
	     config_each(cfg, each, &l);
	for (i = 0; i < KINDS; i++)
		g_hash_table_destroy(l.kind[i].seen);
	return (ok);
}
