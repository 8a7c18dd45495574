/* io/disk/links.c -- see links.h */
#include "io/disk/links.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "io/disk/pools.h"
#include "io/mounts.h"

#define BELOW (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)

bool
io_links_inner(const char *path)
{
	return (strstr(path, "//") != NULL);
}

static int
open_how(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
		.resolve = resolve | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, dir, path[0] != '\0' ? path : ".", &how, sizeof(how));

	return (fd < 0 ? -errno : fd);
}

/* ---- where a descriptor is */

/* False: the descriptor has no path, or a longer one. */
static bool
path_of(int fd, char path[PATH_MAX])
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX);
	if (n <= 0 || n == PATH_MAX || path[0] != '/')
		return (false);
	path[n] = '\0';
	return (true);
}

static bool
is_below(int root, int fd)
{
	char dir[PATH_MAX], path[PATH_MAX];
	size_t n;

	if (!path_of(root, dir) || !path_of(fd, path))
		return (false);
	n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);
	return (strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0'));
}

/* The kernel adds this to the name of a file that was removed or replaced meanwhile. */
static const char removed[] = " (deleted)";

char *
io_links_name(int fd)
{
	char path[PATH_MAX];
	size_t n, end = sizeof(removed) - 1;

	if (!path_of(fd, path))
		return (NULL);
	n = strlen(path);
	if (n > end && strcmp(path + n - end, removed) == 0)
		path[n - end] = '\0';
	return (strdup(path));
}

/* ---- the walk */

/* O_PATH opens no file: a file outside the root is not touched, and a file inside is opened by its
 * descriptor. */
static int
open_found(int root, int found, uint64_t flags)
{
	char link[32];
	struct open_how how = { .flags = flags };
	int fd;

	if (!is_below(root, found))
		return (-EXDEV);
	if (flags & O_PATH)
		return (fcntl(found, F_DUPFD_CLOEXEC, 0));
	snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
	fd = (int)syscall(SYS_openat2, AT_FDCWD, link, &how, sizeof(how));
	return (fd < 0 ? -errno : fd);
}

static int
open_below(int root, const char *path, const struct open_how *how)
{
	int fd = open_how(root, path, how->flags, how->resolve), found;

	if (fd != -EXDEV || (how->resolve & RESOLVE_NO_XDEV) || (how->resolve & BELOW) == BELOW)
		return (fd);
	found = open_how(root, path, O_PATH, how->resolve & ~(uint64_t)RESOLVE_BENEATH);
	if (found < 0)
		return (found);
	fd = open_found(root, found, how->flags);
	close(found);
	return (fd);
}

/* ---- what is refused */

static const char *
reason(int err, uint64_t resolve)
{
	if (err == -EACCES)
		return ("the server may not read its target, see server.sandbox-paths");
	if (resolve & RESOLVE_NO_SYMLINKS)
		return ("server.follow-symlink is disable");
	return (err == -ELOOP
		    ? "links lead in a circle"
		    : "it leads out of its directory; server.follow-symlink is not enable");
}

static const char *
mount_of(int root, const char *part, char mount[IO_MOUNT_NAME])
{
	io_mount_of(root, part, mount, IO_MOUNT_NAME);
	return (mount);
}

/* True: this part of the path ends with a link, which was logged. */
static bool
tell(int root, const char *part, int err, uint64_t resolve)
{
	char target[PATH_MAX], dir[PATH_MAX], mount[IO_MOUNT_NAME];
	ssize_t n = readlinkat(root, part, target, sizeof(target));
	int fd;

	if (n < 0)
		return (false);
	fd = open_how(root, part, O_PATH, resolve & ~(uint64_t)RESOLVE_NO_XDEV);
	if (fd >= 0 && err != -EACCES && is_below(root, fd)) {
		close(fd);
		return (false); /* the link of this part is not the reason */
	}
	if (fd >= 0)
		close(fd);
	if (!path_of(root, dir))
		dir[0] = '\0';
	log_limited(10, LOG_WARN, NULL, "link.refused", LF_STR("directory", dir),
	    LF_STR("link", part), LF_TEXT("target", ((struct text){ target, (size_t)n })),
	    LF_STR("why", reason(err, resolve)), LF_STR("device", mount_of(root, part, mount)),
	    LF_STR("do", "see server.follow-symlink and server.sandbox-paths, or put the file "
			 "there itself"));
	return (true);
}

/* Looks for the first link that does not stay below.  Another process may have changed it
 * meanwhile; this is for the log only. */
static void
tell_refused(int root, const char *path, int err, uint64_t resolve)
{
	char part[PATH_MAX];
	size_t i;

	for (i = 0; path[i] != '\0' && i + 1 < sizeof(part); i++) {
		if (path[i] == '/') {
			part[i] = '\0';
			if (tell(root, part, err, resolve))
				return;
		}
		part[i] = path[i];
	}
	part[i] = '\0';
	(void)tell(root, part, err, resolve);
}

static bool
is_refusal(int err, const struct open_how *how)
{
	if (err == -EACCES)
		return ((how->resolve & RESOLVE_BENEATH) == 0);
	/* The reason may be a mount below the root, so a root alone does not explain it. */
	if (err == -EXDEV)
		return ((how->resolve & RESOLVE_NO_XDEV) == 0);
	return (err == -ELOOP);
}

static int
open_told(int root, const char *path, const struct open_how *how, bool tells)
{
	int fd = open_below(root, path, how);

	if (fd < 0 && tells && is_refusal(fd, how))
		tell_refused(root, path, fd, how->resolve);
	return (fd);
}

int
io_links_open_at(int base, const char *path, const struct open_how *how, bool tells)
{
	const char *mark = strstr(path, "//");
	struct open_how dir = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = how->resolve };
	char *first;
	int fd, root;

	if (mark == NULL || (how->resolve & RESOLVE_BENEATH) == 0)
		return (open_told(base, path, how, tells));
	first = strndup(path, (size_t)(mark - path));
	if (first == NULL)
		return (-ENOMEM);
	root = open_told(base, first, &dir, tells);
	free(first);
	if (root < 0)
		return (root);
	for (mark++; *mark == '/'; mark++)
		continue;
	fd = open_told(root, mark, how, tells);
	close(root);
	return (fd);
}

int
io_links_open(const struct io_job *j)
{
	return (io_links_open_at(j->root, j->path, &j->how, true));
}
