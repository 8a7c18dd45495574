/* io/disk/take.c -- IO_OPEN with removes: opens a regular file and removes its name, in a thread.
 *
 *   openat2(root, "a/b") --> directory --openat("f")--> file --is it "f" still?--> unlinkat("f")
 *
 * Both names are looked up in the opened directory, so no link and no rename above it leads
 * elsewhere.  Nothing but a regular file is removed.  The bytes are gone when the descriptor is
 * closed, even after a crash.
 *
 * Links are not followed, and the file is on the file system of the root, so the thread does not
 * touch another device.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "io/disk/open.h"
#include "io/engine.h"

#define TAKE_TRIES 3 /* another file may get the name meanwhile */
#define BENEATH    (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV)
#define DIR_FLAGS  (O_PATH | O_DIRECTORY | O_CLOEXEC)
#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* The directory of the path: a descriptor, or -errno.  *base is the name in it. */
static int
directory_of(int root, const char *path, const char **base)
{
	struct open_how how = { .flags = DIR_FLAGS, .resolve = BENEATH };
	const char *slash = strrchr(path, '/');
	size_t n = slash != NULL ? (size_t)(slash - path) : 0;
	char dir[PATH_MAX] = ".";
	int fd;

	*base = slash != NULL ? slash + 1 : path;
	if (**base == '\0' || strcmp(*base, ".") == 0 || strcmp(*base, "..") == 0)
		return (-EISDIR);
	if (n >= sizeof(dir))
		return (-ENAMETOOLONG);
	if (n != 0) {
		memcpy(dir, path, n);
		dir[n] = '\0';
	}
	fd = (int)syscall(SYS_openat2, root, dir, &how, sizeof(how));
	return (fd < 0 ? -errno : fd);
}

static bool
same_file(const struct statx *a, const struct statx *b)
{
	return (a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major &&
		a->stx_dev_minor == b->stx_dev_minor);
}

/* Removes the name if it is that of the opened file.  0 or -errno; -EAGAIN: it is another's. */
static int
remove_name(int dir, const char *base, const struct statx *opened)
{
	struct statx now;

	if (statx(dir, base, AT_SYMLINK_NOFOLLOW, STATX_INO, &now) < 0)
		return (errno == ENOENT ? -EAGAIN : -errno);
	if (!same_file(opened, &now))
		return (-EAGAIN);
	return (unlinkat(dir, base, 0) < 0 ? -errno : 0);
}

/* The file: a descriptor, or -errno. */
static int
take(struct io_job *j, int dir, const char *base)
{
	int fd = openat(dir, base, FILE_FLAGS), err = 0;

	if (fd < 0)
		return (io_open_error(-errno));
	if (statx(fd, "", AT_EMPTY_PATH, IO_OPEN_FACTS, &j->stx) < 0)
		err = -errno;
	else if (!S_ISREG(j->stx.stx_mode))
		err = -EACCES;
	else
		err = remove_name(dir, base, &j->stx);
	/* removing the name changes the file's times, but not its bytes */
	if (err == 0 && statx(fd, "", AT_EMPTY_PATH, IO_OPEN_FACTS, &j->stx) < 0)
		err = -errno;
	if (err == 0)
		return (fd);
	close(fd);
	return (err);
}

static void
take_run(struct io_job *j)
{
	const char *base;
	int root = j->fd, dir = directory_of(root, j->path, &base), tries;

	close(root);
	j->fd = -1;
	j->res = dir;
	if (dir < 0)
		return;
	for (tries = 0; tries < TAKE_TRIES; tries++) {
		j->res = take(j, dir, base);
		if (j->res != -EAGAIN)
			break;
	}
	close(dir);
	j->fd = j->res >= 0 ? (int)j->res : -1;
}

static void
take_finish(struct io_job *j)
{
	if (j->op != NULL) {
		*j->op->open.stx = j->stx;
		if (j->res >= 0)
			j->fd = -1; /* the caller owns it now */
		io_complete(j->op, j->res);
	}
	io_job_free(j);
}

/* The root is duplicated: the job runs even if its op has ended, and perhaps the configuration that
 * opened the root is gone by then. */
void
io_start_take(struct io_op *op)
{
	int root = fcntl(op->open.root, F_DUPFD_CLOEXEC, 0);
	struct io_job *j;

	if (root < 0) {
		io_complete(op, -errno);
		return;
	}
	j = io_job_for(op, op->open.path, take_run, take_finish);
	if (j == NULL) {
		close(root);
		return;
	}
	j->fd = root;
	j->must_run = true;
	j->dev = io_dev_of(root);
	io_job_start(op, j);
}
