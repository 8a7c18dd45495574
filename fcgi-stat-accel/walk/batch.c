#include "fcgi-stat-accel/walk/batch.h"

#include <string.h>

struct walk_batch *
walk_batch_new(struct walk_dir *d)
{
	struct walk_batch *b = g_new0(struct walk_batch, 1);

	b->dir = walk_dir_ref(d);
	walk_dir_use(d);
	b->names = g_array_new(FALSE, FALSE, sizeof(struct walk_name));
	b->text = g_string_new(NULL);
	b->refs = 1;
	return (b);
}

struct walk_batch *
walk_batch_ref(struct walk_batch *b)
{
	__atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
	return (b);
}

void
walk_batch_unref(struct walk_batch **bp)
{
	struct walk_batch *b = *bp;

	*bp = NULL;
	if (b == NULL || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	walk_dir_unref(&b->dir);
	g_array_free(b->names, TRUE);
	g_string_free(b->text, TRUE);
	g_free(b);
}

void
walk_batch_add(struct walk_batch *b, const char *name, uint64_t ino, uint8_t type)
{
	struct walk_name n = { .ino = ino, .at = (uint32_t)b->text->len, .type = type };

	g_string_append_len(b->text, name, (gssize)strlen(name) + 1);
	g_array_append_val(b->names, n);
}

static gint
by_inode(gconstpointer pa, gconstpointer pb, gpointer data)
{
	const struct walk_name *a = pa, *b = pb;
	const struct walk_batch *batch = data;

	if (a->ino != b->ino)
		return (a->ino < b->ino ? -1 : 1);
	return (strcmp(walk_batch_text(batch, a), walk_batch_text(batch, b)));
}

static void
make_key(struct walk_batch *b)
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
	GString *path = g_string_new(NULL);
	guint8 digest[32];
	gsize n = sizeof(digest);

	walk_dir_path(b->dir, NULL, path);
	g_checksum_update(sum, (const guchar *)path->str, (gssize)path->len + 1);
	for (guint i = 0; i < b->names->len; i++) {
		const struct walk_name *name = &g_array_index(b->names, struct walk_name, i);
		const char *text = walk_batch_text(b, name);

		g_checksum_update(sum, (const guchar *)&name->ino, sizeof(name->ino));
		g_checksum_update(sum, (const guchar *)text, (gssize)strlen(text) + 1);
	}
	g_checksum_get_digest(sum, digest, &n);
	memcpy(b->key, digest, sizeof(b->key));
	b->has_key = true;
	g_checksum_free(sum);
	g_string_free(path, TRUE);
}

void
walk_batch_seal(struct walk_batch *b, bool with_key)
{
	if (!b->listed)
		g_array_sort_with_data(b->names, by_inode, b);
	b->left = b->names->len;
	if (with_key)
		make_key(b);
}

bool
walk_batch_all_taken(const struct walk_batch *b)
{
	return (__atomic_load_n(&b->next, __ATOMIC_RELAXED) >= b->names->len);
}

const struct walk_name *
walk_batch_next(struct walk_batch *b)
{
	unsigned i;

	if (walk_batch_all_taken(b))		/* so that the number stays small */
		return (NULL);
	i = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED);
	return (i < b->names->len ? &g_array_index(b->names, struct walk_name, i) : NULL);
}

bool
walk_batch_finished(struct walk_batch *b, bool good)
{
	if (!good)
		__atomic_store_n(&b->failed, 1, __ATOMIC_RELAXED);
	return (__atomic_sub_fetch(&b->left, 1, __ATOMIC_ACQ_REL) == 0);
}
