/* server/config/refused.c -- names that are not directives: settings of lighttpd that accel-server
 * does not have, and misspelled names.
 */
#include "server/config/impl.h"

const struct refused refused_settings[] = {
#define F(kind, name, why, instead) { name, SETTING_##kind, why, instead },
#include "server/config/refused.def"
#undef F
	{ NULL, SETTING_IGNORED, NULL, NULL },
};

static bool
means(const struct refused *f, struct text name)
{
	struct text t = text_of(f->name);
	char last = t.p[t.n - 1];

	return (last == '.' || last == '-' ? text_starts(name, t) : text_eq(name, t));
}

/* The longest matching row wins. */
static const struct refused *
find(struct text name)
{
	const struct refused *f, *best = NULL;

	for (f = refused_settings; f->name != NULL; f++)
		if (means(f, name) && (best == NULL || strlen(f->name) > strlen(best->name)))
			best = f;
	return (best);
}

static bool
is_off(const struct cfg_value *v)
{
	return (v->kind == CFG_STR && text_eq(v->str, TEXT("disable")));
}

/* The name may be a misspelled setting that protects. */
static void
refuse_unknown(struct config *cfg, const struct cfg_entry *e, const char *const *names)
{
	const char *near = text_nearest(e->key.p, names);

	if (near != NULL)
		cfg_error(cfg, e->pos, "unknown setting %s; did you mean %s?", e->key.p, near);
	else
		cfg_error(cfg, e->pos,
		    "unknown setting %s; remove it (--manual lists all settings)", e->key.p);
}

void
cfg_refused(struct config *cfg, const struct cfg_entry *e, const char *const *names)
{
	const struct refused *f = find(e->key);

	if (f == NULL)
		refuse_unknown(cfg, e, names);
	else if (f->kind == SETTING_IGNORED)
		cfg_warn(cfg, e->pos, "%s has no effect here. %s", e->key.p, f->why);
	else if (is_off(e->value))
		cfg_warn(cfg, e->pos, "%s is not built in; only \"disable\" is accepted", e->key.p);
	else
		cfg_error(cfg, e->pos, "%s cannot be used here. %s %s", e->key.p, f->why,
		    f->instead);
}
