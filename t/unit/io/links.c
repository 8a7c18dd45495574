/* t/unit/io/links.c -- IO_OPEN with IO_LINKS: absolute links beneath a root, and a root in a root;
 * with each backend. */
#include "base/log.h"
#include "t/unit/io/in_dir.h"

#define BELOW (IO_BENEATH | IO_LINKS)

static struct statx stx;
static int root;

static int64_t
look(const char *path, uint64_t resolve, bool only_stat)
{
	struct waiter w;
	g_autofree char *copy = g_strdup(path);

	wait_init(&w, IO_OPEN, NULL);
	w.op.only_stat = only_stat;
	w.op.open.root = root;
	w.op.open.path = copy;
	w.op.open.resolve = resolve;
	w.op.open.stx = &stx;
	w.op.deadline_ms = 5000;
	wait_op(&w);
	return (w.res);
}

/* err 0: it is found, both when it is opened and when it is looked at again. */
static void
check(const char *path, uint64_t resolve, int err)
{
	int64_t fd = look(path, resolve, false);

	if (err != 0) {
		g_assert_cmpint(fd, ==, -err);
		g_assert_cmpint(look(path, resolve, true), ==, -err);
		return;
	}
	g_assert_cmpint(fd, >=, 0);
	close((int)fd);
	g_assert_cmpint(look(path, resolve, true), ==, 0);
}

static void
link_make(const char *name, const char *fmt, const char *arg)
{
	g_autofree char *path = g_build_filename(dir, name, NULL),
			*target = g_strdup_printf(fmt, arg);

	g_unlink(path);
	g_assert_cmpint(symlink(target, path), ==, 0);
}

static void
tree_make(void)
{
	g_autofree char *sub = g_build_filename(dir, "www/sub", NULL),
			*other = g_build_filename(dir, "other", NULL);

	g_assert_cmpint(g_mkdir_with_parents(sub, 0700), ==, 0);
	g_assert_cmpint(g_mkdir_with_parents(other, 0700), ==, 0);
	g_free(file_make(dir, "www/f", 10));
	g_free(file_make(dir, "www/sub/x", 20));
	g_free(file_make(dir, "other/secret", 30));
	link_make("alias", "%s/www", dir);
	link_make("www/abs", "%s/www/f", dir);
	link_make("www/by-alias", "%s/alias/f", dir);
	link_make("www/sub/abs", "%s/www/sub/x", dir);
	link_make("www/sub/up", "../%s", "f");
	link_make("www/sub/above", "%s/www/f", dir);
	link_make("www/around", "../%s", "www/f");
	link_make("www/out", "%s/other/secret", dir);
	link_make("www/out-dir", "%s/other", dir);
	link_make("www/loop", "%s", "loop");
	link_make("www/null", "%s", "/dev/null");
	link_make("www/gone", "%s/www/gone-too", dir);
}

static void
drop_line(void *arg, struct text line)
{
	(void)arg;
	(void)line;
}

static void
links_beneath(void)
{
	check("f", BELOW, 0);
	check("abs", BELOW, 0);
	g_assert_cmpuint(stx.stx_size, ==, 10);
	check("by-alias", BELOW, 0);
	check("around", BELOW, 0);
	check("sub/abs", BELOW, 0);
	check("abs", IO_BENEATH, EXDEV);
	check("out", BELOW, EXDEV);
	check("out-dir/secret", BELOW, EXDEV);
	check("null", BELOW, EXDEV);
	check("loop", BELOW, ELOOP);
	check("gone", BELOW, ENOENT);
	check("abs/x", BELOW, ENOTDIR);
	check("../other/secret", BELOW, EXDEV);
	check("sub/../../other/secret", BELOW, EXDEV);
	check("../www/f", BELOW, 0); /* it comes back; names of clients have no ".." */
	check("abs", BELOW | IO_NO_SYMLINKS, ELOOP);
	check("out", IO_LINKS, 0);
	check("out-dir/secret", IO_LINKS, 0);
	g_assert_cmpint(look("null", IO_LINKS, false), ==, -EACCES);
}

static void
a_root_within(void)
{
	check("sub//x", BELOW, 0);
	check("sub//", BELOW, 0);
	g_assert_true(S_ISDIR(stx.stx_mode));
	check("sub//abs", BELOW, 0);
	check("sub//up", BELOW, EXDEV);
	check("sub/up", BELOW, 0);
	check("sub//above", BELOW, EXDEV);
	check("sub/above", BELOW, 0);
	check("sub//../f", BELOW, EXDEV);
	check("sub///x", BELOW, 0);
	check("sub//gone", BELOW, ENOENT);
	check("none//x", BELOW, ENOENT);
	check("f//x", BELOW, ENOTDIR);
	check("out-dir//secret", BELOW, EXDEV);
	check("loop//x", BELOW, ELOOP);
	check("sub//up", BELOW | IO_NO_SYMLINKS, ELOOP);
	check("sub//up", IO_LINKS, 0);
}

static int64_t
look_named(const char *path, uint64_t resolve, struct io_first *first)
{
	g_autofree char *copy = g_strdup(path);
	struct waiter w;

	*first = (struct io_first){ .keep = 100 };
	wait_init(&w, IO_OPEN, NULL);
	w.op.open.first = first;
	w.op.open.root = root;
	w.op.open.path = copy;
	w.op.open.resolve = resolve | IO_REAL_NAME;
	w.op.open.stx = &stx;
	w.op.deadline_ms = 5000;
	wait_op(&w);
	return (w.res);
}

/* is: the end of the real name, NULL: there is no link in the path. */
static void
check_real(const char *path, uint64_t resolve, const char *is)
{
	struct io_first first;
	int64_t fd = look_named(path, resolve, &first);

	g_assert_cmpint(fd, >=, 0);
	if (is == NULL)
		g_assert_cmpstr(first.real, ==, NULL);
	else
		g_assert_true(first.real != NULL && g_str_has_suffix(first.real, is));
	close((int)fd);
	free(first.real);
	free(first.bytes);
}

static void
real_names(void)
{
	struct io_first first;

	check_real("f", BELOW, NULL);
	check_real("sub/x", BELOW, NULL);
	check_real("sub", BELOW, NULL);
	check_real("abs", BELOW, "/www/f");
	check_real("by-alias", BELOW, "/www/f");
	check_real("sub/up", BELOW, "/www/f");
	check_real("sub/up", IO_BENEATH, "/www/f");
	check_real("sub//abs", BELOW, "/www/sub/x");
	check_real("out-dir/secret", IO_LINKS, "/other/secret");
	check_real("out-dir", IO_LINKS, NULL); /* a directory */
	check_real("f", BELOW | IO_NO_SYMLINKS, NULL);
	g_assert_cmpint(look_named("loop", BELOW, &first), ==, -ELOOP);
	g_assert_cmpint(look_named("out", BELOW, &first), ==, -EXDEV);
	g_assert_cmpint(look_named("gone", BELOW, &first), ==, -ENOENT);
	g_assert_cmpint(look_named("abs", BELOW | IO_NO_SYMLINKS, &first), ==, -ELOOP);
}

static void
test_backend(gconstpointer backend)
{
	g_autofree char *www = g_build_filename(dir, "www", NULL);

	log_set_sink(drop_line, NULL);
	tree_make();
	loop_up(backend, 2, 8);
	g_assert_cmpint(io_root_open(www, &root), ==, 0);
	links_beneath();
	a_root_within();
	real_names();
	io_close_fd(root);
	loop_down();
}

int
main(int argc, char **argv)
{
	size_t i;

	g_test_init(&argc, &argv, NULL);
	for (i = 0; file_backends[i] != NULL; i++) {
		g_autofree char *name = g_strdup_printf("/links/%s", file_backends[i]->name);

		g_test_add_data_func(name, file_backends[i], test_backend);
	}
	return (tests_run());
}
