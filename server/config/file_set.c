/* server/config/file_set.c -- see file_set.h */
#include "server/config/file_set.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

#include "server/config/config.h"

void
file_set_add(struct file_set *s, const char *directive, const char *name, bool optional)
{
	s->v[s->n++] = (struct setting_file){ .directive = directive,
		.name = conf_is_set(name) ? name : NULL,
		.optional = optional };
}

void
file_set_read(struct file_set *s, struct sources *sources)
{
	unsigned i;

	for (i = 0; i < s->n; i++)
		if (s->v[i].name != NULL)
			s->v[i].is = sources_get(sources, SOURCE_FILE, s->v[i].name, NULL);
}

void
file_set_free(struct file_set *s)
{
	unsigned i;

	for (i = 0; i < s->n; i++)
		source_free(&s->v[i].is);
}

bool
file_set_is_there(const struct file_set *s, const struct conf_refusal *at)
{
	const struct setting_file *f;

	for (f = s->v; f < s->v + s->n; f++)
		if (f->is.err != 0 && !f->optional)
			return (
			    config_refuse_value(at, f->directive, f->name, strerror(-f->is.err)));
	return (true);
}

/* An empty file is one, too. */
struct text
file_set_text(const struct file_set *s, unsigned nr)
{
	const struct setting_file *f = &s->v[nr];

	if (f->name == NULL || f->is.err != 0)
		return (TEXT_NONE);
	return ((struct text){ f->is.bytes.p != NULL ? f->is.bytes.p : "", f->is.bytes.n });
}

/* ---- digests */

/* What they have, or why they cannot be read.  NULL: the record does not have one of them. */
static char *
digest_of(const struct file_set *s)
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
	const struct source *is;
	char *digest = NULL;
	unsigned i;

	for (i = 0; i < s->n && s->v[i].is.err != -ENODATA; i++) {
		is = &s->v[i].is;
		g_checksum_update(sum, (const guchar *)&is->err, sizeof(is->err));
		g_checksum_update(sum, (const guchar *)&is->bytes.n, sizeof(is->bytes.n));
		if (is->bytes.n != 0)
			g_checksum_update(sum, (const guchar *)is->bytes.p, (gssize)is->bytes.n);
	}
	if (i == s->n)
		digest = g_strdup(g_checksum_get_string(sum));
	g_checksum_free(sum);
	return (digest);
}

bool
made_of_others(struct made_of *m, const struct file_set *s)
{
	char *now = digest_of(s);
	bool others = now != NULL && g_strcmp0(now, m->used) != 0;

	if (now != NULL && !others) { /* the old files are back */
		g_free(m->refused);
		m->refused = NULL;
	}
	others = others && g_strcmp0(now, m->refused) != 0;
	g_free(now);
	return (others);
}

void
made_of_note(struct made_of *m, const struct file_set *s, bool used)
{
	char **to = used ? &m->used : &m->refused;

	g_free(m->refused);
	m->refused = NULL;
	if (used)
		g_free(m->used);
	*to = digest_of(s);
}

void
made_of_free(struct made_of *m)
{
	g_free(m->used);
	g_free(m->refused);
}
