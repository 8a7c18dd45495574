#include "base/events.h"
#include "fcgi-stat-accel/advice_show.h"
#include "fcgi-stat-accel/dialect.h"
#include "fcgi-stat-accel/open_asks.h"
#include "fcgi-stat-accel/options.h"

static const char text[] =
#include "fcgi-stat-accel/manual.txt.inc"
    ;

static void
servers(struct manpage *p)
{
	struct buf b;

	buf_init(&b, 0);
	for (const struct dialect *d = dialects; d->name != NULL; d++) {
		manpage_item(p, d->name);
		b.n = 0;
		buf_printf(&b, "%s, %s%s: %s.", d->header, d->raw ? "raw" : "percent-encoded",
		    d->utf8 ? ", UTF-8 only" : "", d->doc);
		buf_char(&b, '\0');
		manpage_text(p, b.p);
	}
	buf_free(&b);
}

void
accel_manual(struct manpage *p)
{
	const char *rest;

	manpage_title(p, "fcgi-stat-accel", "1");
	rest = manpage_marked(p, text);
	options_manual(p, accel_command.options);
	rest = manpage_marked(p, rest);
	servers(p);
	rest = manpage_marked(p, rest);
	open_asks_manual(p);
	rest = manpage_marked(p, rest);
	advice_manual(p);
	rest = manpage_marked(p, rest);
	events_manual(p, "accel");
	manpage_marked(p, rest);
}
