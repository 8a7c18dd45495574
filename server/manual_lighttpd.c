/* server/manual_lighttpd.c -- doc/lighttpd.md: every setting of lighttpd and its kind, made of the
 * tables.
 */
#include <string.h>

#include "server/config/config.h"
#include "server/options.h"

static const char intro[] =
    "# Settings of lighttpd in accel-server\n"
    "\n"
    "Made by `accel-server --manual=lighttpd` from the tables that the parser reads.\n"
    "\n"
    "| kind | what happens |\n"
    "| --- | --- |\n"
    "| honoured | It has its effect. accel-server.conf(5) says more. |\n"
    "| harmless | Accepted. A warning says so, unless nobody can notice the difference. |\n"
    "| refused | The start, a reload and `-t` stop with file, line and what to write instead, "
    "unless its value is \"disable\". |\n"
    "| unknown | A name in no table. It stops the start if it resembles a setting that is "
    "honoured or refused, begins like one up to the first dot, or has a word such as auth or deny "
    "in it: a misspelled setting that protects must not be ignored. Any other name gets a warning "
    "with the nearest name. |\n"
    "\n"
    "A module in `server.modules` is built in if one of its settings is honoured. A module with "
    "refused settings is refused, unless the file sets all its settings to \"disable\".\n";

static const char *const kind_names[] = {
	[KIND_HONOURED] = "honoured",
	[KIND_REFUSED] = "refused",
	[KIND_HARMLESS] = "harmless",
	[KIND_UNKNOWN] = "unknown",
};

/* In a cell of a table. */
static void
cell(struct buf *out, const char *s)
{
	for (; *s != '\0'; s++) {
		if (*s == '|' || *s == '<' || *s == '*')
			buf_char(out, '\\');
		buf_char(out, *s);
	}
}

static void
directive(struct buf *out, const struct directive *d)
{
	if (strcmp(d->type, "ALIAS") == 0) {
		buf_printf(out, "Another name of `%s`.", d->def);
		return;
	}
	if (strcmp(d->type, "NOP") == 0 || strcmp(d->type, "OLD") == 0 ||
	    strcmp(d->type, "BLOCK") == 0) {
		cell(out, d->prose);
		return;
	}
	if (d->def[0] != '\0')
		buf_printf(out, "default `%s`", d->def);
	if (d->unit[0] != '\0')
		buf_printf(out, " %s", d->unit);
}

static void
row(struct buf *out, const char *name)
{
	struct known k = known_setting(text_of(name));

	buf_printf(out, "| `%s` | %s | ", name, kind_names[k.kind]);
	if (k.directive != NULL)
		directive(out, k.directive);
	if (k.refused != NULL) {
		cell(out, k.refused->why);
		if (k.refused->instead[0] != '\0')
			buf_char(out, ' ');
		cell(out, k.refused->instead);
	}
	buf_str(out, " |\n");
}

/* True if a module before m has the name, too. */
static bool
is_shown(const struct known_module *m, struct text name)
{
	const struct known_module *before;

	for (before = known_modules; before != m; before++)
		if (known_module_reads(text_of(before->name), name))
			return (true);
	return (false);
}

static void
rows(struct buf *out, const struct known_module *m)
{
	struct text names = text_of(m->names), word;
	char name[128];

	while (text_next(&names, ' ', &word)) {
		if (word.n >= sizeof(name) || is_shown(m, word))
			continue;
		memcpy(name, word.p, word.n);
		name[word.n] = '\0';
		row(out, name);
	}
}

static const char *
kind_of_module(const char *name)
{
	struct known k = known_module_kind(text_of(name));

	return (k.kind == KIND_HONOURED ? "built in" : kind_names[k.kind]);
}

static void
module_list(struct buf *out)
{
	const struct known_module *m;

	buf_str(out, "\n## Modules\n\n| module | version | kind |\n| --- | --- | --- |\n");
	for (m = known_modules; m->name != NULL; m++)
		if (strcmp(m->name, "core") != 0)
			buf_printf(out, "| `%s` | %s | %s |\n", m->name, m->since,
			    kind_of_module(m->name));
}

static bool
is_of_lighttpd(const struct directive *d)
{
	const struct known_module *m;

	for (m = known_modules; m->name != NULL; m++)
		if (known_module_reads(text_of(m->name), text_of(d->name)))
			return (true);
	return (false);
}

void
manual_lighttpd(struct buf *out)
{
	static const char head[] = "\n| setting | kind | here |\n| --- | --- | --- |\n";
	const struct known_module *m;
	const struct directive *d;

	buf_str(out, intro);
	module_list(out);
	buf_printf(out, "\n## Settings of lighttpd\n%s", head);
	for (m = known_modules; m->name != NULL; m++)
		rows(out, m);
	buf_printf(out, "\n## Settings that only accel-server has\n%s", head);
	for (d = directives; d->name != NULL; d++)
		if (!is_of_lighttpd(d))
			row(out, d->name);
}
