/* base/events.c -- the table of events, as a section of a manual page and as doc/events.md. */
#include <string.h>

#include "base/events.h"

/* sorted by name; the last has NULL */
static const struct event_info event_infos[] = {
#define E(name, who, level, means, next) { name, who, level, means, next },
#include "base/events.def"
#undef E
	{ NULL },
};

static const char intro[] =
    "# Events of the error logs\n"
    "\n"
    "Made by `accel-server --manual=events` from the table that tests compare with the programs. "
    "`ev=` of a line is the name; the manual pages of the programs have the same texts. Forms "
    "and fields of the lines are in [operations.md](operations.md#logs).\n"
    "\n"
    "| level | |\n"
    "| --- | --- |\n"
    "| alert | The program aborts. |\n"
    "| error | Something does not work until a person changes it, or a client was cut. |\n"
    "| warn | A client, an application or a disk failed, or a setting needs a look. |\n"
    "| info | Nothing is wrong with the server. |\n"
    "\n"
    "| ev= | written by | level | meaning | what to do |\n"
    "| --- | --- | --- | --- | --- |\n";

void
events_manual(struct manpage *p, const char *who)
{
	const struct event_info *e;
	struct buf b;

	buf_init(&b, 0);
	manpage_marked(p, "# EVENTS\nev= of a line in the log is one of these names.\n");
	for (e = event_infos; e->name != NULL; e++) {
		if (strcmp(e->who, who) != 0 && strcmp(e->who, "both") != 0)
			continue;
		manpage_item(p, e->name);
		b.n = 0;
		buf_printf(&b, "%s: %s.%s%s", e->level, e->means, e->next[0] != '\0' ? " " : "",
		    e->next);
		buf_char(&b, '\0');
		manpage_text(p, b.p);
	}
	buf_free(&b);
}

static const char *
programs(const char *who)
{
	if (strcmp(who, "server") == 0)
		return ("accel-server");
	return (strcmp(who, "accel") == 0 ? "fcgi-stat-accel" : "both");
}

void
events_markdown(struct buf *out)
{
	const struct event_info *e;

	buf_str(out, intro);
	for (e = event_infos; e->name != NULL; e++)
		buf_printf(out, "| `%s` | %s | %s | %s. |%s%s |\n", e->name, programs(e->who),
		    e->level, e->means, e->next[0] != '\0' ? " " : "", e->next);
}
