/* io/safe_open.c -- walks a path one component at a time; see safe_open.h */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "io/safe_open.h"

#define LINKS_MAX 16

struct walk {
	char rest[PATH_MAX]; /* rest of the path */
	int dir;             /* O_PATH, or AT_FDCWD */
	/* only root can replace this directory */
	bool safe;
	bool trusted; /* and no other user can write to it */
	unsigned links;
};

static bool
others_write(const struct stat *st)
{
	return ((st->st_mode & S_IWOTH) != 0 || ((st->st_mode & S_IWGRP) != 0 && st->st_gid != 0));
}

/* Only root can move its directory out of a sticky directory. */
static void
enter(struct walk *w, int dir)
{
	struct stat st;

	if (w->dir >= 0)
		close(w->dir);
	w->dir = dir;
	if (fstatat(dir, "", &st, AT_EMPTY_PATH) != 0 || st.st_uid != 0)
		w->safe = false;
	else if (others_write(&st) && (st.st_mode & S_ISVTX) == 0)
		w->safe = false;
	w->trusted = w->safe && !others_write(&st);
}

/* At the root or in the working directory, with a path left to walk. */
static int
begin(struct walk *w, const char *path)
{
	int dir;

	if (snprintf(w->rest, sizeof(w->rest), "%s", path) >= (int)sizeof(w->rest))
		return (-ENAMETOOLONG);
	dir = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return (-errno);
	w->safe = true;
	enter(w, dir);
	return (0);
}

/* Takes the next component; *last: it is the last one.  -EISDIR: there is none. */
static int
next_component(struct walk *w, char name[NAME_MAX + 1], bool *last)
{
	char *p = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(p, "/");

	if (n == 0)
		return (-EISDIR);
	if (n > NAME_MAX)
		return (-ENAMETOOLONG);
	memcpy(name, p, n);
	name[n] = '\0';
	*last = p[n + strspn(p + n, "/")] == '\0';
	memmove(w->rest, p + n, strlen(p + n) + 1);
	return (0);
}

static int
follow(struct walk *w, const char *name, const struct stat *link)
{
	char target[PATH_MAX], path[PATH_MAX];
	ssize_t n;

	if (!w->trusted || link->st_uid != 0 || ++w->links > LINKS_MAX)
		return (-ELOOP);
	n = readlinkat(w->dir, name, target, sizeof(target) - 1);
	if (n < 0)
		return (-errno);
	target[n] = '\0';
	if (snprintf(path, sizeof(path), "%s%s", target, w->rest) >= (int)sizeof(path))
		return (-ENAMETOOLONG);
	if (path[0] == '/')
		return (begin(w, path));
	memcpy(w->rest, path, strlen(path) + 1);
	return (0);
}

/* The links of /proc/self/fd are not paths; the kernel follows them. */
static bool
in_proc(const struct walk *w)
{
	struct statfs fs;

	return (w->trusted && fstatfs(w->dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC);
}

/* Walks up to the last component, which is not a link then and need not exist. */
static int
walk(struct walk *w, const char *path, char name[NAME_MAX + 1])
{
	struct stat st;
	bool last;
	int fd, err;

	*w = (struct walk){ .dir = -1 };
	err = begin(w, path);
	while (err == 0 && (err = next_component(w, name, &last)) == 0) {
		if (fstatat(w->dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			return (last && errno == ENOENT ? 0 : -errno);
		if (S_ISLNK(st.st_mode)) {
			if (last && in_proc(w))
				return (0);
			err = follow(w, name, &st);
			continue;
		}
		if (last)
			return (0);
		fd = openat(w->dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return (-errno);
		enter(w, fd);
	}
	return (err);
}

static bool
is_writable_kind(const struct stat *st)
{
	return (S_ISREG(st->st_mode) || S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode));
}

static int
check_file(const struct walk *w, const struct stat *dir, int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return (-errno);
	if (!is_writable_kind(&st))
		return (-EINVAL);
	if (w == NULL || w->trusted || !S_ISREG(st.st_mode))
		return (0);
	if (st.st_nlink > 1)
		return (-EMLINK);
	return ((dir->st_mode & S_ISVTX) != 0 && (dir->st_mode & S_IWOTH) != 0 && st.st_uid != 0
		    ? -EPERM
		    : 0);
}

static int
open_last(const struct walk *w, const char *name, int flags, mode_t mode)
{
	struct stat dir;
	int fd, err;

	if (fstatat(w->dir, "", &dir, AT_EMPTY_PATH) != 0)
		return (-errno);
	if ((dir.st_mode & S_IWOTH) != 0 && (dir.st_mode & S_ISVTX) == 0)
		return (-EPERM);
	fd = openat(w->dir, name, flags | O_CLOEXEC | O_NOCTTY | (in_proc(w) ? 0 : O_NOFOLLOW),
	    mode);
	if (fd < 0)
		return (-errno);
	err = check_file(w, &dir, fd);
	if (err == 0)
		return (fd);
	close(fd);
	return (err);
}

static int
open_plain(const char *path, int flags, mode_t mode)
{
	int fd = open(path, flags | O_CLOEXEC | O_NOCTTY, mode), err;

	if (fd < 0)
		return (-errno);
	err = check_file(NULL, NULL, fd);
	if (err == 0)
		return (fd);
	close(fd);
	return (err);
}

int
safe_open(const char *path, int flags, mode_t mode)
{
	char name[NAME_MAX + 1];
	struct walk w;
	int res;

	if (geteuid() != 0)
		return (open_plain(path, flags, mode));
	res = walk(&w, path, name);
	if (res == 0)
		res = open_last(&w, name, flags, mode);
	if (w.dir >= 0)
		close(w.dir);
	return (res);
}

/* True if a file can be made in the last directory of the path. */
static int
may_create(const char *path)
{
	char name[NAME_MAX + 1];
	struct stat dir;
	struct walk w;
	int err = walk(&w, path, name);

	if (err == 0 && fstatat(w.dir, "", &dir, AT_EMPTY_PATH) != 0)
		err = -errno;
	if (err == 0 && geteuid() == 0 && (dir.st_mode & S_IWOTH) != 0 &&
	    (dir.st_mode & S_ISVTX) == 0)
		err = -EPERM;
	if (err == 0 && faccessat(w.dir, ".", W_OK | X_OK, AT_EACCESS) != 0)
		err = -errno;
	if (w.dir >= 0)
		close(w.dir);
	return (err);
}

int
safe_open_check(const char *path)
{
	int fd = safe_open(path, O_PATH, 0), err; /* the reader of a fifo notices an open */
	char self[32];

	if (fd < 0)
		return (fd == -ENOENT ? may_create(path) : fd);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	err = faccessat(AT_FDCWD, self, W_OK, AT_EACCESS) == 0 ? 0 : -errno;
	close(fd);
	return (err);
}

const char *
safe_open_help(int err)
{
	switch (err) {
	case -EPERM:
		return ("root opens nothing where everybody can put files: use a directory that "
			"other users cannot write to");
	case -ELOOP:
		return ("name the file itself: root does not follow a link in a directory that "
			"other users can write to");
	case -EMLINK:
		return (
		    "remove the other name of the file, or let only root write to its directory");
	case -EINVAL: return ("name a regular file, a fifo or a character device");
	case -EOPNOTSUPP: return ("name a file; no program is started for these lines");
	case -ENOENT: return ("make its directory");
	case -ENOTDIR: return ("a part of the path is a file: name a directory there");
	case -EISDIR: return ("it is a directory: name a file in it");
	case -ENOSPC:
	case -EDQUOT: return ("make room on the disk");
	case -EROFS: return ("use a file system that is not mounted read-only");
	}
	return ("make the file and its directory writable for the user who starts the program");
}

const char *
safe_open_fault(int err, char text[SAFE_OPEN_FAULT])
{
	snprintf(text, SAFE_OPEN_FAULT, "%s; %s", strerror(-err), safe_open_help(err));
	return (text);
}

int
safe_unlink(const char *path)
{
	char name[NAME_MAX + 1];
	struct walk w;
	int err;

	if (geteuid() != 0)
		return (unlink(path) == 0 ? 0 : -errno);
	err = walk(&w, path, name);
	if (err == 0 && unlinkat(w.dir, name, 0) != 0)
		err = -errno;
	if (w.dir >= 0)
		close(w.dir);
	return (err);
}
