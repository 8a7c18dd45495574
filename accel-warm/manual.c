#include "accel-warm/options.h"

static const char text[] =
#include "accel-warm/manual.txt.inc"
    ;

void
walk_manual(struct manpage *p)
{
	const char *rest;

	manpage_title(p, "accel-warm", "1");
	rest = manpage_marked(p, text);
	options_manual(p, walk_command.options);
	manpage_marked(p, rest);
}
