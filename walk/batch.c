#include "walk/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/must.h"

struct walk_batch *
walk_batch_new(struct walk_dir *d)
{
	struct walk_batch *b = g_new0(struct walk_batch, 1);

	b->dir = walk_dir_ref(d);
	walk_dir_use(d);
	buf_init(&b->text, 0);
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
	g_free(b->names);
	buf_free(&b->text);
	g_free(b);
}

void
walk_batch_add(struct walk_batch *b, const char *name, uint64_t ino, uint8_t type)
{
	if (b->n == b->room) {
		b->room = MAX(2 * b->room, 16);
		b->names = g_renew(struct walk_name, b->names, b->room);
	}
	b->names[b->n++] =
	    (struct walk_name){ .ino = ino, .at = (uint32_t)b->text.n, .type = type };
	buf_add(&b->text, name, strlen(name) + 1);
	must(!b->text.failed); /* g_renew() aborts without memory, too */
}

static gint
by_inode(const void *pa, const void *pb, void *data)
{
	const struct walk_name *a = pa, *b = pb;
	const struct walk_batch *batch = data;

	if (a->ino != b->ino)
		return (a->ino < b->ino ? -1 : 1);
	return (strcmp(walk_batch_text(batch, a), walk_batch_text(batch, b)));
}

static void
make_key(struct walk_batch *b, GChecksum *sum)
{
	struct buf path;

	buf_init(&path, 0);
	walk_dir_path(b->dir, NULL, &path);
	g_checksum_reset(sum);
	g_checksum_update(sum, (const guchar *)path.p, (gssize)path.n);
	for (unsigned i = 0; i < b->n; i++) {
		const struct walk_name *name = &b->names[i];
		const char *text = walk_batch_text(b, name);

		g_checksum_update(sum, (const guchar *)&name->ino, sizeof(name->ino));
		g_checksum_update(sum, (const guchar *)text, (gssize)strlen(text) + 1);
	}
	g_strlcpy(b->key, g_checksum_get_string(sum), sizeof(b->key));
	buf_free(&path);
}

void
walk_batch_seal(struct walk_batch *b, GChecksum *sum)
{
	if (!b->listed)
		qsort_r(b->names, b->n, sizeof(*b->names), by_inode, b);
	b->left = b->n;
	if (sum != NULL)
		make_key(b, sum);
}

bool
walk_batch_all_taken(const struct walk_batch *b)
{
	return (__atomic_load_n(&b->next, __ATOMIC_RELAXED) >= b->n);
}

const struct walk_name *
walk_batch_next(struct walk_batch *b)
{
	unsigned i;

	if (walk_batch_all_taken(b)) /* so that their number stays small */
		return (NULL);
	i = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED);
	return (i < b->n ? &b->names[i] : NULL);
}

bool
walk_batch_finished(struct walk_batch *b, bool good)
{
	if (!good)
		__atomic_store_n(&b->failed, 1, __ATOMIC_RELAXED);
	return (__atomic_sub_fetch(&b->left, 1, __ATOMIC_ACQ_REL) == 0);
}
