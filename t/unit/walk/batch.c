/* t/unit/walk/batch.c -- batches of names: their order, their key, each name once, and the
 * paths of directories. */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "t/unit/test.h"
#include "walk/batch.h"
#include "walk/filter.h"

static struct walk_dir *
new_dir(struct walk_dir *parent, const char *name)
{
	struct walk_dir *d = walk_dir_new(parent, name);

	if (parent != NULL)
		walk_dir_unuse(parent);
	walk_dir_opened(d, AT_FDCWD, 1);
	return (d);
}

static void
free_dir(struct walk_dir **d)
{
	walk_dir_unuse(*d);
	walk_dir_unref(d);
}

static void
free_batch(struct walk_batch **b)
{
	walk_dir_unuse((*b)->dir);
	walk_batch_unref(b);
}

TEST("/batch/order")
{
	struct walk_dir *d = new_dir(NULL, "/srv");
	struct walk_batch *b = walk_batch_new(d);
	g_autoptr(GString) seen = g_string_new(NULL);
	const struct walk_name *n;

	walk_batch_add(b, "c", 3, 8);
	walk_batch_add(b, "b", 1, 8);
	walk_batch_add(b, "a", 1, 8);
	walk_batch_add(b, "d", UINT64_MAX, 8);
	walk_batch_seal(b, NULL);
	while ((n = walk_batch_next(b)) != NULL)
		g_string_append(seen, walk_batch_text(b, n));
	g_assert_cmpstr(seen->str, ==, "abcd");
	g_assert_true(walk_batch_all_taken(b));
	for (int i = 0; i < 4; i++)
		g_assert_cmpint(walk_batch_finished(b, i != 2), ==, i == 3);
	g_assert_cmpuint(b->failed, ==, 1);
	free_batch(&b);
	free_dir(&d);
}

static void
key_of(const char *dir, const char *name, uint64_t ino, char *key)
{
	struct walk_dir *d = new_dir(NULL, dir);
	struct walk_batch *b = walk_batch_new(d);
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);

	walk_batch_add(b, "other", 7, 8);
	walk_batch_add(b, name, ino, 8);
	walk_batch_seal(b, sum);
	strcpy(key, b->key);
	g_checksum_free(sum);
	free_batch(&b);
	free_dir(&d);
}

TEST("/batch/key")
{
	char key[WALK_KEY_CHARS + 1], other[WALK_KEY_CHARS + 1];
	static const struct {
		const char *dir, *name;
		uint64_t ino;
	} changed[] = { { "/srv/b", "name", 9 }, { "/srv/a", "name2", 9 }, { "/srv/a", "name", 10 },
		{ "/srv/a/", "name", 9 } };

	key_of("/srv/a", "name", 9, key);
	key_of("/srv/a", "name", 9, other);
	g_assert_cmpuint(strlen(key), ==, WALK_KEY_CHARS);
	g_assert_cmpstr(key, ==, other);
	for (unsigned i = 0; i < G_N_ELEMENTS(changed); i++) {
		key_of(changed[i].dir, changed[i].name, changed[i].ino, other);
		g_assert_cmpstr(key, !=, other);
	}
}

static void
check_path(void (*path)(const struct walk_dir *, const char *, struct buf *),
    const struct walk_dir *d, const char *name, const char *expected)
{
	struct buf b;

	buf_init(&b, 0);
	path(d, name, &b);
	g_assert_cmpstr(b.p, ==, expected);
	buf_free(&b);
}

TEST("/dir/paths")
{
	struct walk_dir *root = new_dir(NULL, "/srv/www/"), *a = new_dir(root, "a"),
			*b = new_dir(a, "b"), *here = new_dir(NULL, "");

	check_path(walk_dir_path, b, "file", "/srv/www/a/b/file");
	check_path(walk_dir_path, b, NULL, "/srv/www/a/b");
	check_path(walk_dir_path, root, NULL, "/srv/www/");
	check_path(walk_dir_path, here, "x/y", "x/y");
	check_path(walk_dir_path_below, b, "file", "a/b/file");
	check_path(walk_dir_path_below, root, "file", "file");
	free_dir(&here);
	free_dir(&root); /* its name stays for those below */
	check_path(walk_dir_path, b, NULL, "/srv/www/a/b");
	free_dir(&a);
	free_dir(&b);
}

static void *
take_all(void *arg)
{
	struct walk_batch *b = arg;
	const struct walk_name *n;
	uintptr_t sum = 0;

	while ((n = walk_batch_next(b)) != NULL)
		sum += n->ino;
	return ((void *)sum);
}

TEST("/batch/each-once")
{
	struct walk_dir *d = new_dir(NULL, "");
	struct walk_batch *b = walk_batch_new(d);
	pthread_t t[4];
	uintptr_t sum = 0;
	void *part;

	for (unsigned i = 1; i <= WALK_BATCH_MAX; i++)
		walk_batch_add(b, "n", i, 8);
	walk_batch_seal(b, NULL);
	for (unsigned i = 0; i < G_N_ELEMENTS(t); i++)
		g_assert_cmpint(pthread_create(&t[i], NULL, take_all, b), ==, 0);
	for (unsigned i = 0; i < G_N_ELEMENTS(t); i++) {
		pthread_join(t[i], &part);
		sum += (uintptr_t)part;
	}
	g_assert_cmpuint(sum, ==, (uintptr_t)WALK_BATCH_MAX * (WALK_BATCH_MAX + 1) / 2);
	free_batch(&b);
	free_dir(&d);
}

TEST("/filter/patterns")
{
	static const char *const jpg[] = { "*.jpg", NULL }, *const img[] = { "img/*", "/top",
		NULL };
	struct walk_filter f = { .include = jpg };

	g_assert_false(walk_filter_needs_path(&f));
	g_assert_true(walk_filter_file(&f, "a.jpg", NULL));
	g_assert_false(walk_filter_file(&f, "a.jpeg", NULL));
	g_assert_true(walk_filter_dir(&f, "a", NULL));
	f = (struct walk_filter){ .exclude = img };
	g_assert_true(walk_filter_needs_path(&f));
	g_assert_false(walk_filter_file(&f, "x", "img/x"));
	g_assert_true(walk_filter_file(&f, "x", "img/y/x"));
	g_assert_true(walk_filter_file(&f, "x", "a/img/x"));
	g_assert_false(walk_filter_dir(&f, "top", "top"));
	g_assert_true(walk_filter_dir(&f, "top", "a/top"));
	f = (struct walk_filter){ .include = jpg, .exclude = img };
	g_assert_false(walk_filter_file(&f, "x.jpg", "img/x.jpg"));
	g_assert_true(walk_filter_file(&f, "\xff.jpg", "\xff.jpg"));
}
