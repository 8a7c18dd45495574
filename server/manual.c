/* server/manual.c -- makes manual pages of the tables of directives and options. */
#include "base/events.h"
#include "io/file.h"
#include "proxy-core/balance.h"
#include "server/config/config.h"
#include "server/ctl/ctl.h"
#include "server/options.h"
#include "wire/codec/codec.h"

/* ---------------------------------------------------------------- accel-server.conf(5) */

static const char conf[] =
#include "server/manual-conf.txt.inc"
    ;

static const char program[] =
#include "server/manual.txt.inc"
    ;

/* "number, default 80, 0 to 65535 connections" */
static void
facts(struct manpage *p, const struct directive *d)
{
	static const struct {
		const char *type, *words;
	} types[] = {
		{ "BOOL", "\"enable\" or \"disable\"" },
		{ "UINT", "Number" },
		{ "STR", "String" },
		{ "LIST", "List of strings" },
		{ "MAP", "List \"key\" => \"value\"" },
		{ "MAPS", "List \"key\" => ( \"a\" => \"b\" )" },
	};
	struct buf b;
	size_t i;

	buf_init(&b, 0);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].type, d->type) == 0)
			buf_str(&b, types[i].words);
	if (strcmp(d->type, "UINT") == 0)
		buf_printf(&b, " from %s to %s%s%s", d->min, d->max, d->unit[0] != '\0' ? " " : "",
		    d->unit);
	else if (d->min[0] != '\0')
		buf_printf(&b, ", one of: %s", d->min);
	else if (strcmp(d->max, "text") == 0)
		buf_str(&b, ", printable text on one line");
	else if (strcmp(d->max, "name") == 0)
		buf_str(&b, ", names of header fields");
	else if (strcmp(d->max, "log-format") == 0)
		buf_str(&b, ", text with %-parts");
	else if (strcmp(d->max, "network") == 0)
		buf_str(&b, ", addresses and networks");
	else if (strcmp(d->max, "secret") == 0)
		buf_str(&b, " of at most 256 bytes, not shown");
	if (d->def[0] != '\0')
		buf_printf(&b, "; default %s", d->def);
	if (d->scope[0] == 'G')
		buf_str(&b, "; outside of conditions only");
	else if (d->scope[0] == 'S')
		buf_str(&b, "; outside of conditions, or in $SERVER[\"socket\"] only");
	else if (d->scope[0] == 'H')
		buf_str(&b, "; outside of conditions, or in $SERVER[\"socket\"] and "
			    "$HTTP[\"host\"] only");
	else if (d->scope[0] == 'P')
		buf_str(&b, "; of the pool: write it in the block of proxy-core.backends or "
			    "around it");
	buf_str(&b, ".");
	buf_char(&b, '\0');
	manpage_text(p, b.p);
	buf_free(&b);
}

static void
choice(struct manpage *p, const char *name, const char *doc)
{
	struct buf b;

	buf_init(&b, 0);
	buf_printf(&b, "\"%s\": %s.", name, doc);
	buf_char(&b, '\0');
	manpage_text(p, b.p);
	buf_free(&b);
}

static void
backend(struct manpage *p, const struct file_backend *b)
{
	struct buf doc;

	buf_init(&doc, 0);
	buf_printf(&doc, "%s. Its loop waits for %s", b->doc,
	    b->waits != NULL ? b->waits : "nothing");
	buf_char(&doc, '\0');
	choice(p, b->name, doc.p);
	buf_free(&doc);
}

/* Values that are the names in another table. */
static void
choices(struct manpage *p, const struct directive *d)
{
	const struct file_backend *const *b;
	const struct proto *const *c;
	const struct balancer *l;

	if (strcmp(d->name, "server.network-backend") == 0)
		for (b = file_backends; *b != NULL; b++)
			backend(p, *b);
	if (strcmp(d->name, "proxy-core.protocol") == 0)
		for (c = protos; *c != NULL; c++)
			choice(p, (*c)->name, (*c)->doc);
	if (strcmp(d->name, "proxy-core.balancer") == 0)
		for (l = balancers; l->name != NULL; l++)
			if (l->now == NULL)
				choice(p, l->name, l->doc);
}

static bool
is_active(const struct directive *d)
{
	return (strcmp(d->type, "OLD") != 0 && strcmp(d->type, "NOP") != 0 &&
		strcmp(d->type, "BLOCK") != 0 && strcmp(d->type, "ALIAS") != 0);
}

static void
other(struct manpage *p, const struct directive *d)
{
	manpage_item(p, d->name);
	if (strcmp(d->type, "ALIAS") == 0)
		manpage_text(p, "Another name of the following.");
	if (strcmp(d->type, "BLOCK") == 0)
		manpage_text(p, "Becomes blocks of proxy-core.");
	else
		manpage_text(p,
		    strcmp(d->type, "ALIAS") == 0 ? d->def : "Accepted, without effect.");
	manpage_text(p, d->prose);
}

static void
refused(struct manpage *p)
{
	const struct refused *f;

	for (f = refused_settings; f->name != NULL; f++) {
		manpage_item(p, f->name);
		manpage_text(p,
		    f->kind == SETTING_REFUSED ? "Refused:" : "Accepted with a warning:");
		manpage_text(p, f->why);
		if (f->instead[0] != '\0')
			manpage_text(p, f->instead);
	}
}

static void
control(struct manpage *p, const struct control_row *c)
{
	const char *setting = control_setting(c->allowed);
	struct buf b;

	buf_init(&b, 0);
	buf_printf(&b, "%s: %s", c->name.p, control_value_name(c->value));
	buf_char(&b, '\0');
	manpage_item(p, b.p);
	manpage_text(p, c->doc);
	b.n = 0;
	buf_printf(&b, "Allowed by %s.", setting);
	buf_char(&b, '\0');
	if (setting != NULL)
		manpage_text(p, b.p);
	buf_free(&b);
}

void
manual_conf(struct manpage *p)
{
	const struct directive *d;
	const char *rest;
	enum control c;

	manpage_title(p, "accel-server.conf", "5");
	rest = manpage_marked(p, conf);
	for (d = directives; d->name != NULL; d++) {
		if (!is_active(d))
			continue;
		manpage_item(p, d->name);
		manpage_text(p, d->prose);
		choices(p, d);
		facts(p, d);
	}
	rest = manpage_marked(p, rest);
	for (c = 0; c < CONTROLS; c++)
		control(p, &controls[c]);
	rest = manpage_marked(p, rest);
	for (d = directives; d->name != NULL; d++)
		if (!is_active(d))
			other(p, d);
	rest = manpage_marked(p, rest);
	refused(p);
	manpage_marked(p, rest);
}

/* ---------------------------------------------------------------- accel-server(8) */

void
manual_program(struct manpage *p)
{
	const char *rest;

	manpage_title(p, "accel-server", "8");
	rest = manpage_marked(p, program);
	options_manual(p, options_command.options);
	rest = manpage_marked(p, rest);
	ctl_manual(p);
	rest = manpage_marked(p, rest);
	events_manual(p, "server");
	manpage_marked(p, rest);
}
