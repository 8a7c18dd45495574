#include "accel-load/hash_list.h"

static const struct {
	size_t digits;
	GChecksumType type;
} kinds[] = {
	{ 32, G_CHECKSUM_MD5 },
	{ 40, G_CHECKSUM_SHA1 },
	{ 64, G_CHECKSUM_SHA256 },
	{ 128, G_CHECKSUM_SHA512 },
};

static bool
type_of(size_t digits, GChecksumType *type)
{
	for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
		if (kinds[i].digits == digits) {
			*type = kinds[i].type;
			return (true);
		}
	}
	return (false);
}

/* A line that begins with a backslash has \\, \n and \r in its name.  NULL: another escape. */
static char *
name_of(struct text t, bool escaped)
{
	GString *name = g_string_sized_new(t.n);
	const char *from = "\\nr", *to = "\\\n\r", *found;

	for (size_t i = 0; i < t.n; i++) {
		if (!escaped || t.p[i] != '\\') {
			g_string_append_c(name, t.p[i]);
			continue;
		}
		i++;
		found = i < t.n ? memchr(from, t.p[i], 3) : NULL;
		if (found == NULL) {
			g_string_free(name, TRUE);
			return (NULL);
		}
		g_string_append_c(name, to[found - from]);
	}
	return (g_string_free(name, FALSE));
}

static struct text
without_start(struct text t)
{
	for (;;) {
		if (text_starts(t, TEXT("/")))
			text_take(&t, 1);
		else if (text_starts(t, TEXT("./")))
			text_take(&t, 2);
		else
			return (t);
	}
}

/* NULL, or what is wrong with the line. */
static const char *
line_read(struct text line, struct hash_list *list, bool first)
{
	bool escaped = text_starts(line, TEXT("\\"));
	GChecksumType type;
	struct text hash;
	char *name;

	text_take(&line, escaped ? 1 : 0);
	hash = (struct text){ line.p, 0 };
	while (hash.n < line.n && text_hex_digit(line.p[hash.n]) >= 0)
		hash.n++;
	text_take(&line, hash.n);
	if (!type_of(hash.n, &type))
		return ("expected the hash of md5sum, sha1sum, sha256sum or sha512sum");
	if (!first && type != list->type)
		return ("expected a hash of the same kind as in the first line");
	if (!text_starts(line, TEXT("  ")) && !text_starts(line, TEXT(" *")))
		return ("expected HASH, two spaces and PATH");
	text_take(&line, 2);
	line = without_start(line);
	if (line.n == 0 || memchr(line.p, '\0', line.n) != NULL)
		return ("expected a PATH, without NUL bytes");
	name = name_of(line, escaped);
	if (name == NULL)
		return ("expected only the escapes \\\\, \\n and \\r");
	list->type = type;
	g_hash_table_replace(list->hashes, name, g_ascii_strdown(hash.p, (gssize)hash.n));
	return (NULL);
}

bool
hash_list_read(struct text in, struct hash_list *list, unsigned *line, const char **why)
{
	struct text one;
	bool first = true;

	list->hashes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	*why = NULL;
	for (*line = 1; *why == NULL && text_next(&in, '\n', &one); ++*line) {
		one = text_trim_cr(one);
		if (one.n == 0)
			continue;
		*why = line_read(one, list, first);
		if (*why != NULL)
			break;
		first = false;
	}
	if (*why == NULL && first)
		*why = "expected lines \"HASH  PATH\", as sha256sum writes them";
	if (*why != NULL)
		hash_list_free(list);
	return (*why == NULL);
}

void
hash_list_free(struct hash_list *list)
{
	if (list->hashes != NULL)
		g_hash_table_destroy(list->hashes);
	list->hashes = NULL;
}

const char *
hash_list_find(const struct hash_list *list, const char *path)
{
	const char *hash = NULL;

	while (hash == NULL && path != NULL) {
		path += *path == '/';
		hash = g_hash_table_lookup(list->hashes, path);
		path = strchr(path, '/');
	}
	return (hash);
}
