#include "accel-warm/met.h"

struct identity {
	dev_t dev;
	ino_t ino;
};

static guint
hash(gconstpointer p)
{
	const struct identity *id = p;

	return ((guint)(id->ino ^ id->ino >> 32 ^ id->dev * 31));
}

static gboolean
equal(gconstpointer pa, gconstpointer pb)
{
	const struct identity *a = pa, *b = pb;

	return (a->dev == b->dev && a->ino == b->ino);
}

GHashTable *
walk_met_new(void)
{
	return (g_hash_table_new_full(hash, equal, g_free, NULL));
}

bool
walk_met_add(GHashTable *met, dev_t dev, ino_t ino)
{
	struct identity *id = g_new(struct identity, 1);

	id->dev = dev;
	id->ino = ino;
	return (g_hash_table_add(met, id));
}
