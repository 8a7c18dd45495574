/* Touching real files: what each kind gives, that nothing blocks, and that roots hold. */

#include "fcgi-stat-accel/touch.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char *dir;

static char *
in_dir(const char *name)
{
	return (g_build_filename(dir, name, NULL));
}

static void
make_file(const char *name, gssize size)
{
	char *path = in_dir(name), *bytes = g_malloc0(size);

	g_assert_true(g_file_set_contents(path, bytes, size, NULL));
	g_free(bytes);
	g_free(path);
}

static void
make_link(const char *to, const char *name)
{
	char *path = in_dir(name);

	g_assert_cmpint(symlink(to, path), ==, 0);
	g_free(path);
}

static void
make_socket(const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	g_snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s", dir, name);
	g_assert_cmpint(bind(fd, (struct sockaddr *)&un, sizeof(un)), ==, 0);
	close(fd);
}

static void
make_tree(void)
{
	char *path;

	dir = g_dir_make_tmp("touch-XXXXXX", NULL);
	g_assert_nonnull(dir);
	g_assert_cmpint(g_mkdir(path = in_dir("in"), 0755), ==, 0);
	g_free(path);
	g_assert_cmpint(mkfifo(path = in_dir("in/fifo"), 0644), ==, 0);
	g_free(path);
	make_file("in/file", 10);
	make_file("in/empty", 0);
	make_file("in/large", 300000);
	make_file("out", 1);
	make_socket("in/socket");
	make_link("file", "in/inner");
	make_link("../out", "in/escape");
	make_link(dir, "in/absolute");
	make_link("loop", "in/loop");
	make_link("in", "alias");
}

static void
remove_tree(void)
{
	static const char *const names[] = { "in/fifo", "in/file", "in/empty", "in/large", "out",
	    "in/socket", "in/inner", "in/escape", "in/absolute", "in/loop", "alias", "in", "" };

	for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
		char *path = in_dir(names[i]);

		g_assert_cmpint(g_remove(path), ==, 0);
		g_free(path);
	}
	g_free(dir);
}

static void
check(struct touch *t, const char *name, int want)
{
	char *path = g_strconcat(dir, "/", name, NULL);

	g_test_message("%s", name);
	g_assert_cmpint(touch_file(t, path), ==, want);
	g_free(path);
}

static void
check_kinds(struct touch *t)
{
	check(t, "in/file", 0);
	check(t, "in/empty", 0);
	check(t, "in/large", 0);
	check(t, "in/inner", 0);
	check(t, "in/fifo", -EPERM);		/* and no waiting for a writer */
	check(t, "in/socket", -ENXIO);
	check(t, "in", -EISDIR);
	check(t, "in/none", -ENOENT);
	check(t, "in/file/x", -ENOTDIR);
	check(t, "in/loop", -ELOOP);
}

static void
test_kinds(void)
{
	struct touch *t;

	touch_new(128 * 1024, &t);
	check_kinds(t);
	check(t, "in/escape", 0);
	g_assert_cmpint(touch_file(t, "/dev/null"), ==, -EPERM);
	touch_free(&t);
	g_assert_null(t);
	touch_new(0, &t);
	check_kinds(t);
	touch_free(&t);
}

static struct touch *
rooted(const char *name)
{
	char *root = g_strconcat(dir, "/", name, NULL);
	struct touch *t;

	touch_new(4096, &t);
	g_assert_cmpint(touch_add_root(t, root), ==, 0);
	g_free(root);
	return (t);
}

static void
check_confined(struct touch *t)
{
	check(t, "in/file", 0);
	check(t, "in//file", 0);
	check(t, "in/../in/file", -EXDEV);
	check(t, "in/inner", 0);
	check(t, "in/fifo", -EPERM);
	check(t, "in/escape", -EXDEV);
	check(t, "in/../out", -EXDEV);
	check(t, "in/absolute/out", -EXDEV);
	check(t, "out", -EXDEV);
	check(t, "inner", -EXDEV);
	check(t, "in", -EXDEV);
	g_assert_cmpint(touch_file(t, "/etc/passwd"), ==, -EXDEV);
	g_assert_cmpint(touch_file(t, "/proc/self/root/etc/passwd"), ==, -EXDEV);
}

static void
test_roots(void)
{
	struct touch *t = rooted("in");

	check_confined(t);
	touch_free(&t);
	t = rooted("in//");
	check_confined(t);
	touch_free(&t);
	t = rooted("alias");			/* both names of it will do */
	check_confined(t);
	check(t, "alias/file", 0);
	check(t, "alias/escape", -EXDEV);
	touch_free(&t);
}

static void
test_nested_roots(void)
{
	struct touch *t = rooted("in");
	char *outer = in_dir("");

	g_assert_cmpint(touch_add_root(t, outer), ==, 0);
	check(t, "in/escape", 0);		/* leaves one, stays in the other */
	check(t, "in/absolute/out", -EXDEV);
	g_free(outer);
	touch_free(&t);
}

static void
test_root_that_is_none(void)
{
	struct touch *t;
	char *file = in_dir("out");

	touch_new(0, &t);
	g_assert_cmpint(touch_add_root(t, "/nonexistent"), ==, -ENOENT);
	g_assert_cmpint(touch_add_root(t, file), ==, -ENOTDIR);
	touch_free(&t);
	g_free(file);
}

static void
test_root_of_everything(void)
{
	struct touch *t;

	touch_new(0, &t);
	g_assert_cmpint(touch_add_root(t, "/"), ==, 0);
	check(t, "in/file", 0);
	check(t, "in/escape", 0);
	touch_free(&t);
}

int
main(int argc, char **argv)
{
	int result;

	g_test_init(&argc, &argv, NULL);
	make_tree();
	g_test_add_func("/touch/kinds", test_kinds);
	g_test_add_func("/touch/roots", test_roots);
	g_test_add_func("/touch/nested-roots", test_nested_roots);
	g_test_add_func("/touch/root-that-is-none", test_root_that_is_none);
	g_test_add_func("/touch/root-of-everything", test_root_of_everything);
	result = g_test_run();
	remove_tree();
	return (result);
}
