/* server/config/lighttpd/known.c -- settings and modules of lighttpd, and the kind of each; see
 * lighttpd.def.
 */
#include "server/config/impl.h"

const struct known_module known_modules[] = {
#define L(module, since, names) { module, since, names },
#include "server/config/lighttpd/lighttpd.def"
#undef L
	{ NULL, NULL, NULL },
};

static const struct directive *
directive_find(struct text name)
{
	const struct directive *d;

	for (d = directives; d->name != NULL; d++)
		if (text_eq(name, text_of(d->name)))
			return (d);
	return (NULL);
}

/* ALIAS is another name of a setting that has an effect. */
static enum setting_kind
kind_of_directive(const struct directive *d)
{
	bool none = strcmp(d->type, "NOP") == 0 || strcmp(d->type, "OLD") == 0;

	return (none ? KIND_HARMLESS : KIND_HONOURED);
}

static bool
means(const struct refused *f, struct text name)
{
	struct text t = text_of(f->name);
	char last = t.p[t.n - 1];

	return (last == '.' || last == '-' ? text_starts(name, t) : text_eq(name, t));
}

/* The longest matching row wins. */
static const struct refused *
refused_find(struct text name)
{
	const struct refused *f, *best = NULL;

	for (f = refused_settings; f->name != NULL; f++)
		if (means(f, name) && (best == NULL || strlen(f->name) > strlen(best->name)))
			best = f;
	return (best);
}

struct known
known_setting(struct text name)
{
	const struct directive *d = directive_find(name);
	const struct refused *f = d == NULL ? refused_find(name) : NULL;
	enum setting_kind kind = KIND_UNKNOWN;

	if (d != NULL)
		kind = kind_of_directive(d);
	else if (f != NULL)
		kind = f->kind == SETTING_REFUSED ? KIND_REFUSED : KIND_HARMLESS;
	return ((struct known){ kind, d, f });
}

/* ---- modules */

static const struct known_module *
module_find(struct text name)
{
	const struct known_module *m;

	for (m = known_modules; m->name != NULL; m++)
		if (text_eq(name, text_of(m->name)))
			return (m);
	return (NULL);
}

struct known
known_module_kind(struct text name)
{
	const struct known_module *m;
	struct known one, best = { KIND_UNKNOWN, NULL, NULL };
	struct text names, word;

	for (m = module_find(name); m != NULL && m->name != NULL; m++) {
		names = text_of(m->names);
		while (text_eq(name, text_of(m->name)) && text_next(&names, ' ', &word)) {
			one = known_setting(word);
			if (one.kind < best.kind)
				best = one;
		}
	}
	return (best);
}

bool
known_module_reads(struct text module, struct text setting)
{
	const struct known_module *m;
	struct text names, word;

	for (m = known_modules; m->name != NULL; m++) {
		names = text_of(m->names);
		while (text_eq(module, text_of(m->name)) && text_next(&names, ' ', &word))
			if (text_eq(word, setting))
				return (true);
	}
	return (false);
}

/* ---- names that are in no table */

/* The part before the first dot, with the dot. */
static struct text
family_of(struct text name)
{
	const char *dot = memchr(name.p, '.', name.n);

	return ((struct text){ name.p, dot != NULL ? (size_t)(dot - name.p) + 1 : name.n });
}

bool
known_family_matters(struct text name)
{
	struct text family = family_of(name), names, word;
	const struct known_module *m;
	const struct directive *d;
	enum setting_kind kind;

	for (d = directives; d->name != NULL; d++)
		if (text_starts(text_of(d->name), family) && kind_of_directive(d) == KIND_HONOURED)
			return (true);
	for (m = known_modules; m->name != NULL; m++) {
		names = text_of(m->names);
		while (text_next(&names, ' ', &word)) {
			if (!text_starts(word, family))
				continue;
			kind = known_setting(word).kind;
			if (kind == KIND_HONOURED || kind == KIND_REFUSED)
				return (true);
		}
	}
	return (false);
}

const char *const *
known_names(void)
{
	static GPtrArray *all; /* of the process; made once */
	const struct known_module *m;
	const struct directive *d;
	char **words;
	guint i;

	if (all != NULL)
		return ((const char *const *)all->pdata);
	all = g_ptr_array_new();
	for (d = directives; d->name != NULL; d++)
		g_ptr_array_add(all, (gpointer)d->name);
	for (m = known_modules; m->name != NULL; m++) {
		words = g_strsplit(m->names, " ", -1);
		for (i = 0; words[i] != NULL; i++)
			g_ptr_array_add(all, words[i]);
		g_free(words); /* the array keeps the words */
	}
	g_ptr_array_add(all, NULL);
	return ((const char *const *)all->pdata);
}
