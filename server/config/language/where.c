/* server/config/language/where.c -- the place of a setting in the files, for messages after the
 * load. */
#include <stdio.h>
#include "server/config/impl.h"

/* The name that the directive of this entry has today; an old name stands for it. */
static struct text
name_now(struct text key)
{
	const struct directive *d;

	for (d = directives; d->name != NULL; d++)
		if (strcmp(d->type, "ALIAS") == 0 && text_eq(key, text_of(d->name)))
			return (text_of(d->def));
	return (key);
}

static const struct cfg_entry *
find(const struct cfg_block *b, struct text name)
{
	const struct cfg_entry *e = cfg_entry_find(b, name);
	guint i;

	for (i = 0; e == NULL && i < b->entries->len; i++) {
		e = g_ptr_array_index(b->entries, i);
		if (!text_eq(name_now(e->key), name))
			e = NULL;
	}
	return (e);
}

const struct cfg_entry *
cfg_entry_of(const struct config *cfg, const struct conf *c, const char *names)
{
	const struct cfg_block *b = g_ptr_array_index(cfg->blocks, c->values_of);
	const struct cfg_entry *e = NULL;
	struct text rest, name = TEXT_NONE;

	for (; b != NULL && e == NULL; b = b->parent)
		for (rest = text_of(names); e == NULL && text_next(&rest, ' ', &name);)
			e = find(b, name);
	return (e);
}

void
config_where(const struct config *cfg, const struct conf *c, const char *names, struct buf *out)
{
	const struct cfg_entry *e = cfg_entry_of(cfg, c, names);

	if (e != NULL)
		buf_printf(out, "%s:%u:%u: %s: ", e->value_pos.file, e->value_pos.line,
		    e->value_pos.column, e->key.p);
	else
		buf_printf(out, "%.*s: ", (int)strcspn(names, " "), names);
}

bool
config_refuse(const struct conf_refusal *r, const char *names, const char *why)
{
	struct buf b;

	buf_init(&b, r->errsize);
	config_where(r->config, r->c, names, &b);
	snprintf(r->err, r->errsize, "%.*s%s", (int)b.n, b.n != 0 ? b.p : "", why);
	buf_free(&b);
	return (false);
}

bool
config_refuse_value(const struct conf_refusal *r, const char *names, const char *value,
    const char *why)
{
	char line[512];

	snprintf(line, sizeof(line), "\"%s\": %s", value, why);
	return (config_refuse(r, names, line));
}
