/* server/config/check/mime.c -- assigned suffixes first, then one hash look-up by extension. */
#include <glib.h>
#include <stdio.h>
#include "server/config/check/mime.h"

#define EXT_MAX 32 /* no registered extension is longer */

struct assigned {
	struct text suffix, type;
};

struct mime {
	GHashTable *by_ext; /* lower-case extension => type */
	GStringChunk *strings;
	struct text fallback; /* type if no suffix and no extension matches */
	bool stop;            /* a row "" => type exists: nothing after it is asked */
	size_t n;
	struct assigned v[];
};

/* The types a browser needs to show a page, for machines without mime.types. */
static const char *const builtin[][2] = {
	{ "html", "text/html" },
	{ "htm", "text/html" },
	{ "css", "text/css" },
	{ "txt", "text/plain" },
	{ "md", "text/markdown" },
	{ "csv", "text/csv" },
	{ "xml", "text/xml" },
	{ "js", "text/javascript" },
	{ "mjs", "text/javascript" },
	{ "json", "application/json" },
	{ "wasm", "application/wasm" },
	{ "xhtml", "application/xhtml+xml" },
	{ "pdf", "application/pdf" },
	{ "png", "image/png" },
	{ "jpg", "image/jpeg" },
	{ "jpeg", "image/jpeg" },
	{ "gif", "image/gif" },
	{ "webp", "image/webp" },
	{ "avif", "image/avif" },
	{ "svg", "image/svg+xml" },
	{ "ico", "image/vnd.microsoft.icon" },
	{ "woff", "font/woff" },
	{ "woff2", "font/woff2" },
	{ "ttf", "font/ttf" },
	{ "mp3", "audio/mpeg" },
	{ "ogg", "audio/ogg" },
	{ "flac", "audio/flac" },
	{ "wav", "audio/x-wav" },
	{ "mp4", "video/mp4" },
	{ "webm", "video/webm" },
	{ "mpeg", "video/mpeg" },
	{ "zip", "application/zip" },
	{ "gz", "application/gzip" },
	{ "bz2", "application/x-bzip2" },
	{ "xz", "application/x-xz" },
	{ "tar", "application/x-tar" },
	{ "iso", "application/x-iso9660-image" },
};

/* Writes t in lower case with a NUL; t.n < EXT_MAX. */
static void
lower(struct text t, char dst[EXT_MAX])
{
	size_t i;

	for (i = 0; i < t.n; i++)
		dst[i] = g_ascii_tolower(t.p[i]);
	dst[t.n] = '\0';
}

static void
learn(struct mime *m, struct text ext, const char *type)
{
	char key[EXT_MAX];

	if (ext.n == 0 || ext.n >= EXT_MAX)
		return;
	lower(ext, key);
	if (!g_hash_table_contains(m->by_ext, key)) /* the first line wins */
		g_hash_table_insert(m->by_ext, g_string_chunk_insert(m->strings, key),
		    (void *)type);
}

/* Next word of a line; any number of blanks separates words. */
static bool
next_word(struct text *rest, struct text *word)
{
	while (text_next(rest, ' ', word))
		if (word->n != 0)
			return (true);
	return (false);
}

/* "type/subtype  ext ext ..."; a type without extensions and a comment add nothing. */
static void
learn_line(struct mime *m, struct text line)
{
	struct text type, ext;
	const char *copy = NULL;

	if (!next_word(&line, &type) || type.p[0] == '#' || text_has_control(type))
		return;
	while (next_word(&line, &ext)) {
		if (copy == NULL)
			copy = g_string_chunk_insert_len(m->strings, type.p, (gssize)type.n);
		learn(m, ext, copy);
	}
}

static void
learn_types(struct mime *m, struct text types)
{
	char *bytes = g_strndup(types.p, types.n);
	struct text rest = { bytes, types.n }, line;

	g_strdelimit(bytes, "\t\r\f\v", ' ');
	while (text_next(&rest, '\n', &line))
		learn_line(m, line);
	g_free(bytes);
}

static void
learn_builtin(struct mime *m)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(builtin); i++)
		learn(m, text_of(builtin[i][0]), builtin[i][1]);
}

static struct text
keep(struct mime *m, struct text t)
{
	return ((struct text){ g_string_chunk_insert_len(m->strings, t.p, (gssize)t.n), t.n });
}

static void
assign_pair(struct mime *m, const struct conf_pair *pair)
{
	if (pair->key.n != 0) {
		m->v[m->n++] = (struct assigned){ keep(m, pair->key), keep(m, pair->value) };
	} else if (!m->stop) {
		m->fallback = keep(m, pair->value);
		m->stop = true;
	}
}

/* The mistake in a row of mimetype.assign, or NULL. */
static const char *
wrong(const struct conf_pair *pair)
{
	if (pair->value.n == 0)
		return ("is empty; write a media type such as text/plain");
	/* in a reply head a line break would begin another header */
	if (text_has_control(pair->value))
		return ("holds a control character; remove it");
	return (NULL);
}

struct mime *
mime_new(const struct conf_map *assign, struct text types, char *err, size_t errsize)
{
	struct mime *m;
	const char *why;
	size_t i;

	for (i = 0; i < assign->n; i++) {
		why = wrong(&assign->v[i]);
		if (why == NULL)
			continue;
		snprintf(err, errsize, "the type of \"%.*s\" %s", (int)assign->v[i].key.n,
		    assign->v[i].key.p, why);
		return (NULL);
	}
	m = g_malloc0(sizeof(*m) + assign->n * sizeof(m->v[0]));
	m->by_ext = g_hash_table_new(g_str_hash, g_str_equal);
	m->strings = g_string_chunk_new(4096);
	m->fallback = TEXT("application/octet-stream");
	for (i = 0; i < assign->n; i++)
		assign_pair(m, &assign->v[i]);
	if (!m->stop && types.p != NULL)
		learn_types(m, types);
	else if (!m->stop)
		learn_builtin(m);
	return (m);
}

void
mime_free(struct mime *m)
{
	if (m == NULL)
		return;
	g_hash_table_destroy(m->by_ext);
	g_string_chunk_free(m->strings);
	g_free(m);
}

/* The part after the last dot of the last segment; .n 0: none. */
static struct text
extension(struct text path)
{
	size_t i;

	for (i = path.n; i > 0 && path.p[i - 1] != '/'; i--)
		if (path.p[i - 1] == '.')
			return ((struct text){ path.p + i, path.n - i });
	return (TEXT_NONE);
}

struct text
mime_type(const struct mime *m, struct text path)
{
	struct text ext;
	char key[EXT_MAX];
	const char *type;
	size_t i;

	for (i = 0; i < m->n; i++)
		if (text_iends(path, m->v[i].suffix))
			return (m->v[i].type);
	ext = extension(path);
	if (m->stop || ext.n == 0 || ext.n >= EXT_MAX)
		return (m->fallback);
	lower(ext, key);
	type = g_hash_table_lookup(m->by_ext, key);
	return (type != NULL ? text_of(type) : m->fallback);
}
