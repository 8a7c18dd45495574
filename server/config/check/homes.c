/* server/config/check/homes.c -- see homes.h */
#include "server/config/check/homes.h"

#include <glib.h>
#include <stdlib.h>

#define FIELDS 7 /* name:password:uid:gid:comment:directory:shell */

struct homes {
	GHashTable *of; /* user -> directory */
};

/* The first line of a user counts, as for getpwnam(3). */
static void
add(struct homes *h, struct text line)
{
	struct text field[FIELDS] = { TEXT_NONE };
	char *user;
	size_t i;

	for (i = 0; i < FIELDS && text_next(&line, ':', &field[i]); i++)
		continue;
	if (i != FIELDS || field[0].n == 0 || field[5].n < 2 || field[5].p[0] != '/' ||
	    memchr(field[0].p, '\0', field[0].n) != NULL ||
	    memchr(field[5].p, '\0', field[5].n) != NULL)
		return;
	user = g_strndup(field[0].p, field[0].n);
	if (g_hash_table_contains(h->of, user))
		g_free(user);
	else
		g_hash_table_insert(h->of, user, g_strndup(field[5].p, field[5].n));
}

struct homes *
homes_new(struct text passwd)
{
	struct homes *h = calloc(1, sizeof(*h));
	struct text line;

	if (h == NULL)
		return (NULL);
	h->of = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	while (text_next(&passwd, '\n', &line))
		add(h, line);
	return (h);
}

void
homes_free(struct homes *h)
{
	if (h == NULL)
		return;
	g_hash_table_destroy(h->of);
	free(h);
}

const char *
homes_find(const struct homes *h, struct text user)
{
	char name[256];

	if (h == NULL || user.n >= sizeof(name))
		return (NULL);
	memcpy(name, user.p, user.n);
	name[user.n] = '\0';
	return (g_hash_table_lookup(h->of, name));
}

void
homes_each(const struct homes *h, void (*fn)(const char *user, const char *home, void *arg),
    void *arg)
{
	GHashTableIter it;
	gpointer user, home;

	if (h == NULL)
		return;
	g_hash_table_iter_init(&it, h->of);
	while (g_hash_table_iter_next(&it, &user, &home))
		fn(user, home, arg);
}

static bool
has(const struct conf_list *users, struct text user)
{
	size_t i = 0;

	while (i < users->n && !text_eq(users->v[i], user))
		i++;
	return (i < users->n);
}

bool
homes_allowed(const struct conf *c, struct text user)
{
	if (has(&c->userdir_exclude, user))
		return (false);
	return (c->userdir_include.n == 0 || has(&c->userdir_include, user));
}

bool
homes_are_used(const struct conf *c)
{
	return (c->userdir_active && c->userdir_path != NULL && c->userdir_basepath == NULL);
}
