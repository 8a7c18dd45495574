/* server/helper/kept.c -- what a helper process leaves to the next one; see kept.h */
#include "server/helper/kept.h"

#include <string.h>

struct helper_name *
helper_kept_find(const struct helper_kept *k, enum helper_kind kind, const char *name)
{
	struct helper_name *n;
	guint i;

	for (i = 0; i < k->names->len; i++) {
		n = g_ptr_array_index(k->names, i);
		if (n->kind == kind && strcmp(n->name, name) == 0)
			return (n);
	}
	return (NULL);
}

/* Names of earlier configurations stay: draining generations have their logs open, and HUP reopens
 * them. */
static void
adopt(struct helper_kept *k, const struct helper_name *n)
{
	struct helper_name *old = helper_kept_find(k, n->kind, n->name);

	if (old != NULL)
		g_ptr_array_remove(k->names, old);
	else if (k->names->len == HELPER_NAMES_MAX)
		g_ptr_array_remove_index(k->names, 0);
	g_ptr_array_add(k->names, g_memdup2(n, sizeof(*n)));
}

void
helper_kept_init(struct helper_kept *k)
{
	*k = (struct helper_kept){ .names = g_ptr_array_new_with_free_func(g_free),
		.load_ms = HELPER_LOAD_MS };
}

void
helper_keep(struct helper_kept *k, const struct helper_name *n)
{
	if (n->kind == HELPER_LOAD)
		k->load_ms = n->timeout_ms;
	else if (n->kind == HELPER_REMOVE_PIDFILE)
		memcpy(k->pidfile, n->name, sizeof(k->pidfile));
	else
		adopt(k, n);
}
