#include "accel-pool/options.h"

#include <glib.h>

static const char text[] =
#include "accel-pool/manual.txt.inc"
    ;

/* "make DIR", what it does, its options. */
static void
put_command(struct manpage *p, const struct pool_command *c)
{
	GString *s = g_string_new("# ");
	char *word = g_ascii_strup(c->word, -1);

	g_string_append_printf(s, "%s\n| %s %s\n%s\n", word, c->command.name, c->command.usage,
	    c->about);
	manpage_marked(p, s->str);
	options_items(p, c->command.options);
	g_free(word);
	g_string_free(s, TRUE);
}

void
pool_manual(struct manpage *p)
{
	const struct pool_command *c;
	const char *rest;

	manpage_title(p, "accel-pool", "1");
	rest = manpage_marked(p, text);
	for (c = pool_commands; c->word != NULL; c++)
		put_command(p, c);
	options_manual(p, pool_program.options);
	manpage_marked(p, rest);
}
