/* accel-load/manual.c -- the manual page. */
#include "accel-load/options.h"

static const char text[] =
#include "accel-load/manual.txt.inc"
    ;

void
load_manual(struct manpage *p)
{
	const char *rest;

	manpage_title(p, "accel-load", "1");
	rest = manpage_marked(p, text);
	options_manual(p, load_command.options);
	manpage_marked(p, rest);
}
