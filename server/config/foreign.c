/* server/config/foreign.c -- names that are no directives: settings of lighttpd that are not built, and misspelled ones. */
#include "server/config/impl.h"

const struct foreign foreigns[] = {
#define F(kind, name, why, instead) {name, FOREIGN_##kind, why, instead},
#include "server/config/refused.def"
#undef F
	{NULL, FOREIGN_IGNORED, NULL, NULL},
};

static bool
means(const struct foreign *f, struct text name)
{
	struct text t = text_of(f->name);
	char last = t.p[t.n - 1];

	return (last == '.' || last == '-' ? text_starts(name, t) : text_eq(name, t));
}

/* The longest row wins. */
static const struct foreign *
find(struct text name)
{
	const struct foreign *f, *best = NULL;

	for (f = foreigns; f->name != NULL; f++)
		if (means(f, name) && (best == NULL || strlen(f->name) > strlen(best->name)))
			best = f;
	return (best);
}

static bool
is_off(const struct cfg_value *v)
{
	return (v->kind == CFG_STR && text_eq(v->str, TEXT("disable")));
}

/* It may be one that protects, misspelled. */
static void
refuse_unknown(struct config *cfg, const struct cfg_entry *e, const char *const *names)
{
	const char *near = text_nearest(e->key.p, names);

	if (near != NULL)
		cfg_error(cfg, e->pos, "unknown setting %s; did you mean %s?", e->key.p, near);
	else
		cfg_error(cfg, e->pos, "unknown setting %s; remove it (--manual lists all settings)", e->key.p);
}

void
cfg_foreign(struct config *cfg, const struct cfg_entry *e, const char *const *names)
{
	const struct foreign *f = find(e->key);

	if (f == NULL)
		refuse_unknown(cfg, e, names);
	else if (f->kind == FOREIGN_IGNORED)
		cfg_warn(cfg, e->pos, "%s has no effect here. %s", e->key.p, f->why);
	else if (is_off(e->value))
		cfg_warn(cfg, e->pos, "%s is not built; \"disable\" is all it can be", e->key.p);
	else
		cfg_error(cfg, e->pos, "%s cannot be used here. %s %s", e->key.p, f->why, f->instead);
}
