/* t/unit/files/root.c -- which absolute names lie below a directory, by both names of it. */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "files/root.h"
#include "t/unit/test.h"

static char *dir; /* without symbolic links */

static char *
in_dir(const char *name)
{
	return (g_build_filename(dir, name, NULL));
}

/* The result of root_tail() for dir/name; NULL: not below. */
static char *
tail_of(const struct root *r, const char *name)
{
	char *path = g_strconcat(dir, name, NULL), *found = NULL;
	struct text tail;

	if (root_tail(r, text_of(path), &tail))
		found = g_strndup(tail.p, tail.n);
	g_free(path);
	return (found);
}

static void
check(const struct root *r, const char *name, const char *expected)
{
	g_autofree char *tail = tail_of(r, name);

	g_assert_cmpstr(tail, ==, expected);
}

static void
check_names(const struct root *r, const char *other)
{
	check(r, "/real/a", "a");
	check(r, "/real/a/b", "a/b");
	check(r, "/real//a", "a");
	check(r, "/real/", "");
	check(r, "/real", NULL);
	check(r, "/realm/a", NULL);
	check(r, "/other/a", NULL);
	check(r, "/real/../other/a", "../other/a"); /* IO_BENEATH refuses it */
	check(r, other, "a");
}

TEST("/root/names")
{
	const char *given[] = { "real", "real/", "real//" };
	struct root r;
	char *path;

	for (guint i = 0; i < G_N_ELEMENTS(given); i++) {
		path = g_strconcat(dir, "/", given[i], NULL);
		g_assert_cmpint(root_open(path, &r), ==, 0);
		g_assert_cmpint(r.fd, >=, 0);
		check_names(&r, "/real/a");
		check(&r, "/alias/a", NULL);
		root_close(&r);
		g_free(path);
	}
}

TEST("/root/two-names")
{
	g_autofree char *path = in_dir("alias");
	struct root r;

	g_assert_cmpint(root_open(path, &r), ==, 0);
	check_names(&r, "/alias/a");
	check(&r, "/aliased/a", NULL);
	root_close(&r);
}

/* 10,000 aliases of one directory need one descriptor. */
TEST("/root/shared")
{
	g_autofree char *path = in_dir("real"), *alias = in_dir("alias"), *moved = in_dir("moved");
	struct root r, same, other;

	g_assert_cmpint(root_open(path, &r), ==, 0);
	g_assert_cmpint(root_open(alias, &same), ==, 0);
	g_assert_cmpint(same.fd, ==, r.fd);
	root_close(&r);
	g_assert_cmpint(fcntl(same.fd, F_GETFD), !=, -1);
	g_assert_cmpint(g_rename(path, moved), ==, 0);
	g_assert_cmpint(g_mkdir(path, 0700), ==, 0);
	g_assert_cmpint(root_open(path, &other), ==, 0); /* another directory of the same name */
	g_assert_cmpint(other.fd, !=, same.fd);
	root_close(&other);
	root_close(&same);
	g_assert_cmpint(g_rmdir(path), ==, 0);
	g_assert_cmpint(g_rename(moved, path), ==, 0);
	g_assert_cmpint(root_open(path, &r), ==, 0);
	root_close(&r);
}

TEST("/root/everything")
{
	struct root r;
	struct text tail;

	g_assert_cmpint(root_open("/", &r), ==, 0);
	g_assert_cmpuint(r.name.n, ==, 0);
	g_assert_true(root_tail(&r, TEXT("/etc/passwd"), &tail));
	g_assert_cmpmem(tail.p, tail.n, "etc/passwd", 10);
	g_assert_true(root_tail(&r, TEXT("/"), &tail));
	g_assert_cmpuint(tail.n, ==, 0);
	g_assert_false(root_tail(&r, TEXT("etc/passwd"), &tail)); /* not absolute */
	g_assert_false(root_tail(&r, TEXT(""), &tail));
	root_close(&r);
}

TEST("/root/none")
{
	g_autofree char *none = in_dir("none"), *file = in_dir("file");
	struct root r;

	g_assert_cmpint(root_open(none, &r), ==, -ENOENT);
	g_assert_true(g_file_set_contents(file, "x", 1, NULL));
	g_assert_cmpint(root_open(file, &r), ==, -ENOTDIR);
	g_assert_cmpint(g_unlink(file), ==, 0);
}

int
main(int argc, char **argv)
{
	char *made = g_dir_make_tmp("root-XXXXXX", NULL), *real, *alias;
	int result;

	g_test_init(&argc, &argv, NULL);
	dir = realpath(made, NULL);
	real = in_dir("real");
	alias = in_dir("alias");
	g_assert_cmpint(g_mkdir(real, 0755), ==, 0);
	g_assert_cmpint(symlink("real", alias), ==, 0);
	result = tests_run();
	g_unlink(alias);
	g_rmdir(real);
	g_rmdir(made);
	g_free(alias);
	g_free(real);
	g_free(made);
	free(dir);
	return (result);
}
