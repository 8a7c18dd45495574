#include "fcgi-stat-accel/nginx_cache.h"

#include <string.h>

/* nginx counts the bytes of the head in 16 bits.  HEAD, and a conditional GET that ends in 304,
 * need only the head. */
#define HEAD_MAX (64u << 10)

/* Digits of levels: "1:2". */
static bool
read_levels(const char *text, unsigned char levels[NGINX_CACHE_LEVELS])
{
	for (int i = 0; i < NGINX_CACHE_LEVELS; i++) {
		if (*text != '1' && *text != '2')
			return (false);
		levels[i] = (unsigned char)(*text++ - '0');
		if (*text == '\0')
			return (true);
		if (*text++ != ':')
			return (false);
	}
	return (false);
}

/* The path without slashes at its end, for the life of the process; NULL: not absolute, or "/". */
static const char *
read_path(const char *text, size_t n)
{
	const char *path;
	char *copy;

	while (n > 0 && text[n - 1] == '/')
		n--;
	if (n == 0 || text[0] != '/')
		return (NULL);
	copy = g_strndup(text, n);
	path = g_intern_string(copy);
	g_free(copy);
	return (path);
}

bool
nginx_cache_read(const char *text, struct nginx_cache *cache)
{
	const char *equals = text[0] != '/' ? strchr(text, '=') : NULL,
		   *path = equals != NULL ? equals + 1 : text, *colon = strchr(path, ':');
	struct nginx_cache c = { 0 };
	char *name;

	if (equals == text || (colon != NULL && !read_levels(colon + 1, c.levels)))
		return (false);
	c.path = read_path(path, colon != NULL ? (size_t)(colon - path) : strlen(path));
	if (c.path == NULL)
		return (false);
	if (equals != NULL) {
		name = g_strndup(text, (size_t)(equals - text));
		c.name = g_intern_string(name);
		g_free(name);
	}
	*cache = c;
	return (true);
}

static bool
is_named(const struct nginx_cache *c, const char *name)
{
	size_t n = strlen(c->path);

	if (c->name != NULL && strcmp(c->name, name) == 0)
		return (true);
	return (strncmp(c->path, name, n) == 0 && name[n + strspn(name + n, "/")] == '\0');
}

const struct nginx_cache *
nginx_cache_find(const struct nginx_cache *all, const char *name)
{
	if (all == NULL)
		return (NULL);
	while (all->path != NULL && name != NULL && !is_named(all, name))
		all++;
	return (all->path != NULL ? all : NULL);
}

void
nginx_cache_file(const struct nginx_cache *c, const char *key, GString *path)
{
	char *hash = g_compute_checksum_for_string(G_CHECKSUM_MD5, key, -1);
	size_t end = strlen(hash);

	g_string_assign(path, c->path);
	for (int i = 0; i < NGINX_CACHE_LEVELS && c->levels[i] != 0; i++) {
		end -= c->levels[i];
		g_string_append_c(path, '/');
		g_string_append_len(path, hash + end, c->levels[i]);
	}
	g_string_append_c(path, '/');
	g_string_append(path, hash);
	g_free(hash);
}

static uint64_t
behind_head(uint64_t at)
{
	return (at > UINT64_MAX - HEAD_MAX ? UINT64_MAX : at + HEAD_MAX);
}

/* The length of the head is not known: a part begins where it begins without a head, and ends
 * where it ends with the longest head.  The last bytes are the same. */
void
nginx_cache_ranges(struct range_set *want)
{
	const struct range_part head = { 0, HEAD_MAX };
	struct range_set moved = { 1, { head } };

	for (unsigned i = 0; i < want->n; i++) {
		struct range_part p = want->part[i];

		if (p.from != RANGE_TAIL)
			p.to = behind_head(p.to);
		if (moved.n == RANGE_PARTS)
			break;
		moved.n = range_join(moved.part, moved.n, p);
	}
	*want = moved;
}
