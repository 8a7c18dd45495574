/* t/unit/io/sandbox_test.h -- a directory, and a child that enters the sandbox before it tries
 * something. */
#ifndef SANDBOX_TEST_H
#define SANDBOX_TEST_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "io/start/sandbox.h"
#include "io/start/sandbox_impl.h"
#include "t/unit/test.h"

#define UNEXPECTED 255 /* no errno */

static char *dir, *root, *linked, *log_file, *socket_file, *spool;

static G_GNUC_UNUSED char *
below(const char *parent, const char *name)
{
	return (g_build_filename(parent, name, NULL));
}

static G_GNUC_UNUSED char *
make_dir(const char *parent, const char *name)
{
	char *path = below(parent, name);

	g_assert_cmpint(g_mkdir(path, 0755), ==, 0);
	return (path);
}

static void G_GNUC_UNUSED
put(const char *parent, const char *name)
{
	g_autofree char *path = below(parent, name);

	g_assert_true(g_file_set_contents(path, "x", 1, NULL));
}

/* dir/{root/{file,mnt/},link -> root,outside/file,log/log,run/socket,spool/} */
static void G_GNUC_UNUSED
up(void)
{
	char *outside, *log, *run;

	dir = g_dir_make_tmp("sandbox-XXXXXX", NULL);
	g_assert_nonnull(dir);
	root = make_dir(dir, "root");
	linked = below(dir, "link");
	g_assert_cmpint(symlink("root", linked), ==, 0);
	put(root, "file");
	g_free(make_dir(root, "mnt"));
	outside = make_dir(dir, "outside");
	put(outside, "file");
	log = make_dir(dir, "log");
	log_file = below(log, "log");
	run = make_dir(dir, "run");
	socket_file = below(run, "socket");
	spool = make_dir(dir, "spool");
	put(run, "socket");
	g_free(outside);
	g_free(log);
	g_free(run);
}

static void G_GNUC_UNUSED
down(void)
{
	g_autofree char *rm = g_strdup_printf("rm -rf '%s'", dir);

	g_assert_cmpint(g_spawn_command_line_sync(rm, NULL, NULL, NULL, NULL), ==, TRUE);
	g_free(dir);
	g_free(root);
	g_free(linked);
	g_free(log_file);
	g_free(socket_file);
	g_free(spool);
}

/* ---- what a child tries: 0 or errno */

static struct sandbox got;

static int G_GNUC_UNUSED
enter(void)
{
	const struct sandbox_path paths[] = { { linked, SANDBOX_READ },
		{ "/dev/null", SANDBOX_WRITE }, { log_file, SANDBOX_APPEND | SANDBOX_BESIDE },
		{ socket_file, SANDBOX_REMOVE | SANDBOX_BESIDE }, { spool, SANDBOX_SPOOL },
		{ "/nonexistent", SANDBOX_READ | SANDBOX_OPTIONAL }, { NULL } };
	char why[256];

	return (sandbox_enter(SANDBOX_ACCELERATOR, paths, &got, why, sizeof(why)) == 0 &&
		got.landlock > 0 && got.seccomp);
}

static int G_GNUC_UNUSED
open_below(const char *parent, const char *name, int flags)
{
	g_autofree char *path = below(parent, name);
	int fd = open(path, flags, 0644), err = fd < 0 ? errno : 0;
	char byte;

	if (fd >= 0 && (flags & O_ACCMODE) == O_RDONLY && !(flags & O_DIRECTORY) &&
	    read(fd, &byte, 1) != 1)
		err = UNEXPECTED;
	if (fd >= 0)
		close(fd);
	return (err);
}

static int G_GNUC_UNUSED
reads_outside(void)
{
	return (open_below(dir, "outside/file", O_RDONLY));
}

/* Asks the kernel, not the code under test.  0 or less: no Landlock here. */
static long G_GNUC_UNUSED
abi(void)
{
	return (syscall(444 /* landlock_create_ruleset */, NULL, 0, 1));
}

static bool G_GNUC_UNUSED
usable(void)
{
	if (abi() > 0)
		return (true);
	g_test_skip("this kernel has no Landlock, or a filter forbids it");
	return (false);
}

static void G_GNUC_UNUSED
test(gconstpointer fn)
{
	up();
	((void (*)(void))fn)();
	down();
}

#endif
