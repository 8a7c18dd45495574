#include "base/manual_part.h"

/* "-t N, --threads=N" */
static void
option(struct manpage *p, const GOptionEntry *e)
{
	const char *arg = e->arg_description;
	struct buf b;

	buf_init(&b, 0);
	if (e->short_name != '\0')
		buf_printf(&b, "-%c%s%s, ", e->short_name, arg != NULL ? " " : "",
		    arg != NULL ? arg : "");
	buf_printf(&b, "--%s", e->long_name);
	if (arg != NULL)
		buf_printf(&b, e->flags & G_OPTION_FLAG_OPTIONAL_ARG ? "[=%s]" : "=%s", arg);
	buf_char(&b, '\0');
	manpage_item(p, b.p);
	b.n = 0;
	buf_printf(&b, "%s.", e->description);
	buf_char(&b, '\0');
	manpage_said(p, b.p);
	buf_free(&b);
}

void
manual_options(struct manpage *p, const GOptionEntry *e)
{
	manpage_heading(p, "OPTIONS");
	for (; e->long_name != NULL; e++)
		if (!(e->flags & G_OPTION_FLAG_HIDDEN))
			option(p, e);
	manpage_item(p, "-h, --help");		/* glib adds it to the table */
	manpage_said(p, "Print the options.");
}

void
manual_section(struct manpage *p, const char *heading, const struct manual_said *s)
{
	manpage_heading(p, heading);
	for (; s->term != NULL; s++) {
		manpage_item(p, s->term);
		manpage_said(p, s->prose);
	}
}
