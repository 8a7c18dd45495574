/* server/config/lighttpd/refused.c -- reports names that are not directives: settings of lighttpd
 * that accel-server does not have, misspelled names, and modules.
 */
#include "server/config/impl.h"

const struct refused refused_settings[] = {
#define F(kind, name, why, instead) { name, SETTING_##kind, why, instead },
#include "server/config/lighttpd/refused.def"
#undef F
	{ NULL, SETTING_IGNORED, NULL, NULL },
};

/* An empty list has nothing that could be missed. */
static bool
is_off(const struct cfg_value *v)
{
	return ((v->kind == CFG_LIST && v->n == 0) ||
		(v->kind == CFG_STR && text_eq(v->str, TEXT("disable"))));
}

/* ---------------------------------------------------------------- settings
 *
 * lighttpd warns of every unknown name.  Here a name stops the start if it may be a misspelled
 * setting that protects: it resembles a known setting, its family has settings that are honoured
 * or refused, or a word in it is about protection.  Any other name gets a warning.
 */

static bool
is_about_protection(const char *name)
{
	static const char *const words[] = { "auth", "access", "deny", "allow", "secret", "secur",
		"protect", "passw" };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(words); i++)
		if (strstr(name, words[i]) != NULL)
			return (true);
	return (false);
}

static bool
may_be_misspelled(struct text name, const char *near)
{
	return (known_family_matters(name) || is_about_protection(name.p) ||
		(near != NULL && known_family_matters(text_of(near))));
}

static void
unknown(struct config *cfg, const struct cfg_entry *e)
{
	const char *near = text_nearest(e->key.p, known_names());

	if (!may_be_misspelled(e->key, near))
		cfg_warn(cfg, e->pos, "unknown setting %s has no effect%s%s", e->key.p,
		    near != NULL ? "; the nearest name is " : "", near != NULL ? near : "");
	else if (near != NULL)
		cfg_error(cfg, e->pos, "unknown setting %s; did you mean %s?", e->key.p, near);
	else
		cfg_error(cfg, e->pos,
		    "unknown setting %s; remove it (--manual lists all settings)", e->key.p);
}

void
cfg_refused(struct config *cfg, const struct cfg_entry *e)
{
	struct known k = known_setting(e->key);

	if (k.kind == KIND_UNKNOWN)
		unknown(cfg, e);
	else if (k.kind == KIND_HARMLESS)
		cfg_warn(cfg, e->pos, "%s has no effect here. %s", e->key.p, k.refused->why);
	else if (is_off(e->value))
		cfg_warn(cfg, e->pos, "%s is not built in; only \"disable\" and ( ) are accepted",
		    e->key.p);
	else
		cfg_error(cfg, e->pos, "%s cannot be used here. %s %s", e->key.p, k.refused->why,
		    k.refused->instead);
}

/* ---------------------------------------------------------------- modules */

void
cfg_modules_add(struct config *cfg, enum cfg_token_kind op, const struct cfg_entry *e)
{
	if (op == TOK_FORCE)
		g_array_set_size(cfg->modules, 0);
	g_array_append_val(cfg->modules, *e);
}

/* True if the file has settings of the module, and all of them are off. */
static bool
is_switched_off(const struct config *cfg, struct text module)
{
	const struct cfg_entry *e;
	const struct cfg_block *b;
	bool found = false;
	guint i, j;

	for (i = 0; i < cfg->blocks->len; i++) {
		b = g_ptr_array_index(cfg->blocks, i);
		for (j = 0; j < b->entries->len; j++) {
			e = g_ptr_array_index(b->entries, j);
			if (!known_module_reads(module, e->key))
				continue;
			if (!is_off(e->value))
				return (false);
			found = true;
		}
	}
	return (found);
}

static void
unknown_module(struct config *cfg, struct cfg_pos pos, const char *module)
{
	const char *names[512], *near;
	const struct known_module *m;
	size_t n = 0;

	for (m = known_modules; m->name != NULL && n + 1 < G_N_ELEMENTS(names); m++)
		names[n++] = m->name;
	names[n] = NULL;
	near = text_nearest(module, names);
	if (near != NULL)
		cfg_error(cfg, pos, "server.modules: unknown module %s; did you mean %s?", module,
		    near);
	else
		cfg_warn(cfg, pos,
		    "server.modules: unknown module %s has no effect; remove it. Its settings stop "
		    "the start",
		    module);
}

static void
check_module(struct config *cfg, struct cfg_pos pos, struct text module)
{
	struct known k = known_module_kind(module);

	switch (k.kind) {
	case KIND_HONOURED: break;
	case KIND_HARMLESS:
		cfg_warn(cfg, pos, "server.modules: %s has no effect here. %s", module.p,
		    k.refused != NULL ? k.refused->why : k.directive->prose);
		break;
	case KIND_REFUSED:
		if (is_switched_off(cfg, module))
			cfg_warn(cfg, pos,
			    "server.modules: %s is not built in; its settings are \"disable\"",
			    module.p);
		else
			cfg_error(cfg, pos, "server.modules: %s is not built in. %s %s", module.p,
			    k.refused->why, k.refused->instead);
		break;
	case KIND_UNKNOWN: unknown_module(cfg, pos, module.p); break;
	}
}

void
cfg_modules_check(struct config *cfg)
{
	const struct cfg_entry *e;
	const struct cfg_value *v;
	guint i;
	uint32_t j;

	for (i = 0; i < cfg->modules->len; i++) {
		e = &g_array_index(cfg->modules, struct cfg_entry, i);
		for (j = 0; e->value->kind == CFG_LIST && j < e->value->n; j++) {
			v = e->value->items[j].value;
			if (v->kind == CFG_STR)
				check_module(cfg, e->value_pos, v->str);
		}
	}
}
