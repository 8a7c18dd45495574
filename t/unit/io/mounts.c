/* t/unit/io/mounts.c -- the mount point that names a device, from this machine's table. */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sched.h>
#include <unistd.h>
#include "io/disk/mounts.h"
#include "io/io.h"
#include "t/unit/test.h"

static uint64_t
dev_of(const char *path)
{
	struct stat st;

	g_assert_cmpint(stat(path, &st), ==, 0);
	return (st.st_dev);
}

static void
is_named(uint64_t dev, const char *point)
{
	char name[200];

	mounts_point(dev, name, sizeof(name));
	g_assert_cmpstr(name, ==, point);
}

TEST("/mounts/unknown")
{
	is_named(makedev(4000, 7), "");
	is_named(MOUNTS_UNKNOWN, "");
}

TEST("/mounts/proc")
{
	char name[4];

	is_named(dev_of("/proc"), "/proc");
	mounts_point(dev_of("/proc"), name, sizeof(name));
	g_assert_cmpstr(name, ==, "/pr"); /* cut to size */
}

static void
mounted(const char *from, const char *to, const char *type, unsigned long flags)
{
	g_assert_cmpint(mount(from, to, type, flags, NULL), ==, 0);
}

/* Other mounts of a file system, of a directory of it, and one that hides another. */
static void
several_in(const char *shorter, const char *longer)
{
	g_autofree char *part = g_build_filename(longer, "part", NULL);
	uint64_t dev;

	mounted("one", longer, "tmpfs", 0);
	dev = dev_of(longer);
	is_named(dev, longer);
	g_assert_cmpint(mkdir(part, 0700), ==, 0);
	mounted(longer, shorter, NULL, MS_BIND);
	is_named(dev, shorter);
	g_assert_cmpint(umount(shorter), ==, 0);
	mounted(part, shorter, NULL, MS_BIND);
	is_named(dev, longer);
	mounted("two", longer, "tmpfs", 0);
	is_named(dev, shorter);
	is_named(dev_of(longer), longer);
	g_assert_cmpint(umount(longer), ==, 0);
	g_assert_cmpint(umount(shorter), ==, 0);
	is_named(dev, longer);
	g_assert_cmpint(umount(longer), ==, 0);
	is_named(dev, "");
}

static bool own_mounts;

static void
marks(const char *from, const char *at, unsigned long flags, bool expected)
{
	struct statx stx;

	mounted(from, at, NULL, MS_BIND);
	mounted(NULL, at, NULL, MS_REMOUNT | MS_BIND | flags);
	g_assert_cmpint(statx(AT_FDCWD, at, 0, STATX_MNT_ID, &stx), ==, 0);
	g_assert_cmpint(mounts_marks(stx.stx_mnt_id), ==, expected);
	g_assert_cmpint(umount(at), ==, 0);
	g_assert_true(mounts_marks(stx.stx_mnt_id)); /* unknown: perhaps */
	g_assert_false(mounts_local(stx.stx_mnt_id));
}

static void
access_times(const char *dir, const char *at)
{
	struct statfs fs;

	g_assert_cmpint(statfs(dir, &fs), ==, 0);
	marks(dir, at, MS_RELATIME, fs.f_type != TMPFS_MAGIC);
	marks(dir, at, MS_NOATIME, false);
	marks(dir, at, MS_RDONLY, false);
	marks("/dev/shm", at, MS_RELATIME, false);
}

TEST("/mounts/several")
{
	g_autofree char *dir = g_dir_make_tmp("accel mounts-XXXXXX", NULL);
	g_autofree char *shorter = g_build_filename(dir, "a", NULL);
	g_autofree char *longer = g_build_filename(dir, "longer", NULL);

	g_assert_cmpint(mkdir(shorter, 0700), ==, 0);
	g_assert_cmpint(mkdir(longer, 0700), ==, 0);
	if (own_mounts) {
		several_in(shorter, longer);
		access_times(longer, shorter);
	} else {
		g_test_skip("only root has mounts of its own");
	}
	rmdir(shorter);
	rmdir(longer);
	rmdir(dir);
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	/* The table is of the namespace in which it was opened. */
	own_mounts =
	    unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	mounts_open();
	return (tests_run());
}
