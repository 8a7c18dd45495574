/* t/unit/io/safe_open.c -- another user replaces a component of a path between the look at it and
 * its use. */
#include <sys/syscall.h>
#include "io/safe_open.h"
#include "t/unit/io/in_dir.h"

static const char *swapped; /* this component becomes a link after the next look at it */

int
fstatat(int at, const char *restrict name, struct stat *restrict st, int flags)
{
	int res = (int)syscall(SYS_newfstatat, at, name, st, flags);

	if (swapped == NULL || strcmp(name, swapped) != 0)
		return (res);
	g_assert_cmpint(unlinkat(at, name, S_ISDIR(st->st_mode) ? AT_REMOVEDIR : 0), ==, 0);
	g_assert_cmpint(symlinkat("real", at, name), ==, 0);
	swapped = NULL;
	return (res);
}

static void
refused(const char *path, const char *name, int expected)
{
	swapped = name;
	g_assert_cmpint(safe_open(path, O_WRONLY | O_CREAT, 0600), ==, expected);
	g_assert_null(swapped);
}

TEST("/safe_open/a component that becomes a link is not followed")
{
	g_autofree char *way = g_build_filename(dir, "way", NULL),
			*log = g_build_filename(way, "log", NULL),
			*real = g_build_filename(dir, "real", NULL),
			*in = g_build_filename(real, "log", NULL);

	if (geteuid() != 0) {
		g_test_skip("only root walks");
		return;
	}
	g_assert_cmpint(mkdir(real, 0755), ==, 0);
	g_assert_cmpint(mkdir(way, 0755), ==, 0);
	refused(log, "way", -ENOTDIR);
	g_assert_cmpint(access(in, F_OK), !=, 0);
	rmdir(real);
	g_assert_true(g_file_set_contents(real, "", 0, NULL));
	unlink(way);
	g_assert_true(g_file_set_contents(way, "", 0, NULL));
	refused(way, "way", -ELOOP);
	unlink(way);
	unlink(real);
}

TEST("/safe_open/directory")
{
	g_assert_cmpint(safe_open(dir, O_RDONLY, 0), ==, -EINVAL);
}
