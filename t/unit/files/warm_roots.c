/* t/unit/files/warm_roots.c -- names of real files: the answer for each kind, no blocking, roots
 * that hold; by the loop where the kernel has the name in memory, and by a thread. */

#include <seccomp.h>
#include "t/unit/files/warm_test.h"

static const char *roots[3];
/* true if it can be known that the tree is on a local disk */
static bool local;

int
statx(int at, const char *restrict path, int flags, unsigned mask, struct statx *restrict stx)
{
	long err = syscall(SYS_statx, at, path, flags, mask, stx);

	if (!local)
		stx->stx_mask &= ~STATX_MNT_ID;
	return ((int)err);
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

	dir = g_dir_make_tmp("warm-XXXXXX", NULL);
	g_assert_nonnull(dir);
	make_dir("in");
	make_dir("in/empty-dir");
	g_assert_cmpint(mkfifo(path = in_dir("in/fifo"), 0644), ==, 0);
	g_free(path);
	make_file("in/file", 10);
	make_file("in/empty", 0);
	make_file("in/large", 300000);
	make_file("in/index.html", 11);
	make_file("out", 1);
	make_socket("in/socket");
	make_link("file", "in/inner");
	make_link("../out", "in/escape");
	make_link(dir, "in/absolute");
	make_link("loop", "in/loop");
	make_link("in", "alias");
}

static void
up(const char *first, const char *second)
{
	roots[0] = first != NULL ? in_dir(first) : NULL;
	roots[1] = second != NULL ? in_dir(second) : NULL;
	conf.roots = roots;
	loop_up(1);
}

static void
down(void)
{
	loop_down();
	conf.roots = NULL;
	g_free((char *)(uintptr_t)roots[0]);
	g_free((char *)(uintptr_t)roots[1]);
}

static void
check_kinds(void)
{
	check("in/file", 0);
	check("in//file", 0);
	check("in/empty", 0);
	check("in/large", 0);
	check("in/inner", 0);
	check("in/fifo", -EPERM); /* and no waiting for a writer */
	check("in", -EISDIR);
	check("in/", -EISDIR);
	check("in/none", -ENOENT);
	check("in/none/", -ENOENT);
	check("in/file/", -ENOTDIR);
	check("in/file/x", -ENOTDIR);
	check("in/loop", -ELOOP);
}

static void
test_kinds(void)
{
	g_autofree char *file = in_dir("in/file");

	for (conf.how = WARM_STAT; conf.how <= WARM_READ; conf.how++) {
		conf.before = conf.how == WARM_READ ? 128 * 1024 : 0;
		up(NULL, NULL);
		check_kinds();
		check("in/socket", conf.how == WARM_STAT ? -EPERM : -EACCES);
		check("in/escape", 0);
		g_assert_cmpint(find("/dev/null").err, ==, -EPERM);
		g_assert_cmpint(find("/").err, ==, -EISDIR);
		g_assert_cmpuint(find(file).stx.stx_size, ==, 10);
		g_assert_cmpuint(local ? counters.hot : counters.cold, >, 10);
		g_assert_true(local || counters.hot == 0);
		down();
	}
	conf.how = WARM_OPEN;
	conf.before = 0;
}

static void
check_confined(void)
{
	check("in/file", 0);
	check("in//file", 0);
	check("in/../in/file", -EXDEV);
	check("in/inner", 0);
	check("in/fifo", -EPERM);
	check("in/escape", -EXDEV);
	check("in/../out", -EXDEV);
	check("in/absolute/out", -EXDEV);
	check("out", -EXDEV);
	check("inner", -EXDEV);
	check("in", -EXDEV);
	check("in/", -EISDIR);
	g_assert_cmpint(find("/etc/passwd").err, ==, -EXDEV);
	g_assert_cmpint(find("/proc/self/root/etc/passwd").err, ==, -EXDEV);
}

static void
test_roots(void)
{
	up("in", NULL);
	check_confined();
	down();
	up("in//", NULL);
	check_confined();
	down();
	up("alias", NULL); /* both names of the root are accepted */
	check_confined();
	check("alias/file", 0);
	check("alias/escape", -EXDEV);
	down();
}

static void
test_nested_roots(void)
{
	up("in", "");
	check("in/escape", 0); /* leaves one, stays in the other */
	check("in/absolute/out", -EXDEV);
	check("in/none", -ENOENT);
	down();
}

static int
open_descriptors(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return (n);
}

static void
test_roots_close(void)
{
	int before = open_descriptors();

	up("in", "");
	down();
	g_assert_cmpint(open_descriptors(), ==, before);
}

static void
test_root_that_is_none(void)
{
	const char *bad = NULL;

	loop_up(1);
	warm_free(&wm);
	conf.roots = roots;
	roots[0] = dir;
	roots[1] = "/nonexistent";
	g_assert_cmpint(warm_new(&conf, io, &counters, &stages, &wm, &bad), ==, -ENOENT);
	g_assert_cmpstr(bad, ==, "/nonexistent");
	roots[1] = in_dir("out");
	g_assert_cmpint(warm_new(&conf, io, &counters, &stages, &wm, &bad), ==, -ENOTDIR);
	g_assert_cmpstr(bad, ==, roots[1]);
	g_free((char *)(uintptr_t)roots[1]);
	roots[0] = roots[1] = NULL;
	warm_up();
	loop_down();
}

/* Run in a child, to which this is a kernel before 5.6. */
TEST("/warm/roots-of-an-old-kernel")
{
	scmp_filter_ctx ctx;
	const char *bad = "unset";

	if (!g_test_subprocess()) {
		g_test_trap_subprocess(NULL, 0, 0);
		g_test_trap_assert_passed();
		return;
	}
	loop_up(1);
	warm_free(&wm);
	ctx = seccomp_init(SCMP_ACT_ALLOW);
	g_assert_cmpint(seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(openat2), 0), ==, 0);
	g_assert_cmpint(seccomp_load(ctx), ==, 0);
	seccomp_release(ctx);
	conf.roots = roots;
	roots[0] = dir;
	g_assert_cmpint(warm_new(&conf, io, &counters, &stages, &wm, &bad), ==, -ENOSYS);
	g_assert_null(bad); /* no directory is at fault */
	roots[0] = NULL;
	io_free(io);
	io_pools_free(pools, 5000);
	conf.roots = NULL;
}

static void
test_root_of_everything(void)
{
	static const char *const all[] = { "/", NULL };

	conf.roots = all;
	loop_up(1);
	check("in/file", 0);
	check("in/escape", 0);
	loop_down();
	conf.roots = NULL;
}

static void
test_index(void)
{
	static const char *const names[] = { "none.html", "empty-dir", "fifo", "index.html", NULL };
	g_autofree char *path = in_dir("in"), *slash = in_dir("in/");
	struct warm_found f;

	conf.index = names;
	up(NULL, NULL);
	f = find(path);
	g_assert_cmpint(f.err, ==, 0);
	g_assert_true(f.index == names[3]);
	g_assert_cmpuint(f.stx.stx_size, ==, 11);
	f = find(slash);
	g_assert_cmpint(f.err, ==, 0);
	g_assert_true(f.index == names[3]);
	f = find(slash);
	g_assert_true(f.hot); /* remembered */
	g_assert_true(f.index == names[3]);
	check("in/empty-dir", -EISDIR);
	check("in/file/", -ENOTDIR);
	check("in/none/", -ENOENT);
	down();
	conf.index = NULL;
}

static void
on_loop(gconstpointer test)
{
	local = true;
	((GTestFunc)(uintptr_t)test)();
}

static void
in_thread(gconstpointer test)
{
	local = false;
	((GTestFunc)(uintptr_t)test)();
}

static void
add(const char *name, GTestFunc test)
{
	g_autofree char *hot = g_strconcat(name, "/on-the-loop", NULL),
			*cold = g_strconcat(name, "/in-a-thread", NULL);

	g_test_add_data_func(hot, (gconstpointer)(uintptr_t)test, on_loop);
	g_test_add_data_func(cold, (gconstpointer)(uintptr_t)test, in_thread);
}

int
main(int argc, char **argv)
{
	int result;

	g_test_init(&argc, &argv, NULL);
	make_tree();
	conf = (struct warm_conf){ .how = WARM_OPEN, .remember_ms = 1000 };
	add("/warm/kinds", test_kinds);
	add("/warm/roots", test_roots);
	add("/warm/nested-roots", test_nested_roots);
	add("/warm/roots-close", test_roots_close);
	add("/warm/root-that-is-none", test_root_that_is_none);
	add("/warm/root-of-everything", test_root_of_everything);
	add("/warm/index", test_index);
	result = tests_run();
	remove_below(dir);
	g_free(dir);
	return (result);
}
