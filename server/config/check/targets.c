/* server/config/check/targets.c -- see targets.h */
#include "server/config/check/targets.h"

#include <glib.h>
#include <stdlib.h>

#include "base/address.h"
#include "base/buf.h"

#define TARGET_MAX   300u /* bytes of a host and a port */
#define DEFAULT_PORT 80u

struct targets {
	GHashTable *blocks; /* "host:port" --> proxy_block + 1 */
};

/* The key of a backend, "host:port" in lower case.  False: the backend is not a host. */
static bool
key_of(struct text spec, struct buf *key)
{
	struct address_parts a;
	const char *fault;
	size_t i;

	if (address_read(spec, &a, &fault) != 0 || a.path.p != NULL || a.host.n == 0)
		return (false);
	for (i = 0; i < a.host.n; i++)
		buf_char(key, (char)byte_lower(a.host.p[i]));
	buf_printf(key, ":%u", a.port.p != NULL ? a.port_number : DEFAULT_PORT);
	buf_char(key, '\0');
	return (!key->failed);
}

static bool
add(const struct conf *c, void *arg)
{
	struct targets *t = arg;
	struct buf key;
	size_t i;

	for (i = 0; i < c->proxy_backends.n; i++) {
		buf_init(&key, TARGET_MAX);
		if (key_of(c->proxy_backends.v[i], &key) &&
		    !g_hash_table_contains(t->blocks, key.p))
			g_hash_table_insert(t->blocks, g_strdup(key.p),
			    GINT_TO_POINTER(c->proxy_block + 1));
		buf_free(&key);
	}
	return (true);
}

struct targets *
targets_new(const struct config *config)
{
	struct targets *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return (NULL);
	t->blocks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	(void)config_each(config, add, t);
	return (t);
}

void
targets_free(struct targets *t)
{
	if (t == NULL)
		return;
	g_hash_table_destroy(t->blocks);
	free(t);
}

int
targets_block(const struct targets *t, struct text authority)
{
	struct buf key;
	int block = -1;

	buf_init(&key, TARGET_MAX);
	if (key_of(authority, &key))
		block = GPOINTER_TO_INT(g_hash_table_lookup(t->blocks, key.p)) - 1;
	buf_free(&key);
	return (block);
}
