/* server/helper/kept.c -- what a helper process leaves to the next one; see kept.h */
#include "server/helper/kept.h"

#include <stdio.h>
#include <string.h>

/* Only as long as its name. */
struct kept_name {
	uint64_t nr; /* counts the names that came; the last one has the highest */
	struct helper_name n;
};

static struct kept_name *
kept_of(const struct helper_name *n)
{
	return ((struct kept_name *)(void *)((char *)(uintptr_t)n - offsetof(struct kept_name, n)));
}

static size_t
size_of(const struct helper_name *n)
{
	return (offsetof(struct helper_name, name) + strlen(n->name) + 1);
}

struct helper_name *
helper_name_copy(const struct helper_name *n)
{
	return (g_memdup2(n, size_of(n)));
}

static void
free_name(void *name)
{
	g_free(kept_of(name));
}

static guint
hash(gconstpointer name)
{
	const struct helper_name *n = name;

	return (g_str_hash(n->name) ^ n->kind);
}

static gboolean
same(gconstpointer a, gconstpointer b)
{
	const struct helper_name *m = a, *n = b;

	return (m->kind == n->kind && m->list == n->list && strcmp(m->name, n->name) == 0);
}

struct helper_name *
helper_kept_find(const struct helper_kept *k, enum helper_kind kind, const char *name)
{
	struct helper_name n = { .kind = kind };

	if (strlen(name) >= sizeof(n.name))
		return (NULL);
	strcpy(n.name, name);
	return (g_hash_table_lookup(k->set, &n));
}

static gint
by_name(gconstpointer a, gconstpointer b)
{
	const struct helper_name *const *m = a, *const *n = b;

	return (strcmp((*m)->name, (*n)->name));
}

GPtrArray *
helper_kept_certificates(const struct helper_kept *k, uint64_t list)
{
	GPtrArray *found = g_ptr_array_new();
	struct helper_name *n;
	guint i;

	for (i = 0; i < k->names->len; i++) {
		n = g_ptr_array_index(k->names, i);
		if (n->kind == HELPER_CERTIFICATE && n->list == list)
			g_ptr_array_add(found, n);
	}
	g_ptr_array_sort(found, by_name);
	return (found);
}

/* ---------------------------------------------------------------- lists */

/* The settings of a name may have changed. */
static void
adopt(struct helper_kept *k, const struct helper_name *n)
{
	struct helper_name *to = g_hash_table_lookup(k->set, n);
	struct kept_name *made;

	if (to == NULL) {
		made = g_malloc(offsetof(struct kept_name, n) + size_of(n));
		to = &made->n;
		memcpy(to, n, size_of(n));
		g_ptr_array_add(k->names, to);
		g_hash_table_add(k->set, to);
	} else
		memcpy(to, n, size_of(n));
	kept_of(to)->nr = ++k->told;
}

static gint
by_number(gconstpointer a, gconstpointer b)
{
	uint64_t m = kept_of(*(struct helper_name *const *)a)->nr;
	uint64_t n = kept_of(*(struct helper_name *const *)b)->nr;

	return (m < n ? -1 : m > n);
}

static void
forget_before(struct helper_kept *k, uint64_t nr)
{
	guint n = 0;

	for (; n < k->names->len; n++) {
		if (kept_of(g_ptr_array_index(k->names, n))->nr > nr)
			break;
		g_hash_table_remove(k->set, g_ptr_array_index(k->names, n));
	}
	if (n > 0)
		g_ptr_array_remove_range(k->names, 0, n);
}

static void
list_end(struct helper_kept *k)
{
	g_ptr_array_sort(k->names, by_number);
	if (k->names->len > HELPER_NAMES_MAX)
		forget_before(k, k->lists[0]);
	k->lists[0] = k->lists[1];
	k->lists[1] = k->told;
}

void
helper_kept_init(struct helper_kept *k)
{
	*k = (struct helper_kept){ .names = g_ptr_array_new_with_free_func(free_name),
		.set = g_hash_table_new(hash, same),
		.load_ms = HELPER_LOAD_MS };
}

void
helper_keep(struct helper_kept *k, const struct helper_name *n)
{
	if (n->kind == HELPER_LOAD) {
		k->load_ms = n->timeout_ms;
		list_end(k);
	} else if (n->kind == HELPER_REMOVE_PIDFILE)
		snprintf(k->pidfile, sizeof(k->pidfile), "%s", n->name);
	else
		adopt(k, n);
}
