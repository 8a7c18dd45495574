#include "walk/touch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As in io/disk/open.h: the access time is left out. */
#define FACTS (STATX_TYPE | STATX_MODE | STATX_INO | STATX_SIZE | STATX_MTIME | STATX_CTIME)

/* A fifo must not block the thread; a terminal must not become the controlling terminal. */
#define FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* Reading a million files would write a million inodes.  Only the owner of a file may use
 * O_NOATIME:
 * after the first refusal it is not used any more. */
static unsigned noatime = O_NOATIME;

int
walk_touch_stat(int dir, const char *name, bool follow, uint8_t *type)
{
	struct statx stx;

	if (statx(dir, name, follow ? 0 : AT_SYMLINK_NOFOLLOW, FACTS, &stx) < 0)
		return (-errno);
	*type = (uint8_t)((stx.stx_mode & S_IFMT) >> 12);
	return (0);
}

static int
open_how(int dir, const char *name, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)flags, .resolve = resolve };
	long fd;

	fd = TEMP_FAILURE_RETRY(resolve == 0 ? openat(dir, name, flags)
					     : syscall(SYS_openat2, dir, name, &how, sizeof(how)));
	return (fd < 0 ? -errno : (int)fd);
}

static int
open_quietly(int dir, const char *name, int flags, uint64_t resolve)
{
	unsigned quiet = __atomic_load_n(&noatime, __ATOMIC_RELAXED);
	int fd = open_how(dir, name, flags | (int)quiet, resolve);

	if (fd != -EPERM || quiet == 0)
		return (fd);
	__atomic_store_n(&noatime, 0, __ATOMIC_RELAXED);
	return (open_how(dir, name, flags, resolve));
}

int
walk_touch_open(int dir, const char *name, bool follow, bool beneath)
{
	return (open_quietly(dir, name, FLAGS | (follow ? 0 : O_NOFOLLOW),
	    beneath ? RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS : 0));
}

ssize_t
walk_touch_read(int fd, void *buf, size_t n, off_t at)
{
	ssize_t got = TEMP_FAILURE_RETRY(pread(fd, buf, n, at));

	return (got < 0 ? -errno : got);
}

int
walk_touch_dir(int dir, const char *name, bool follow, bool stay)
{
	return (open_quietly(dir, name, FLAGS | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW),
	    stay ? RESOLVE_NO_XDEV : 0));
}

int
walk_touch_identity(int fd, dev_t *dev, ino_t *ino)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &stx) < 0)
		return (-errno);
	*dev = (dev_t)stx.stx_dev_major << 32 | stx.stx_dev_minor;
	*ino = stx.stx_ino;
	return (0);
}

bool
walk_touch_can_stay(void)
{
	int fd = open_how(AT_FDCWD, ".", O_PATH | O_CLOEXEC, RESOLVE_NO_MAGICLINKS);

	if (fd >= 0)
		close(fd);
	return (fd != -ENOSYS);
}
