/* io/listen_unix.c -- see listen_unix.h */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/must.h"
#include "io/listen_unix.h"

#define LOCK_TRIES 200 /* of 10 ms: a starter holds the lock for microseconds, a user who means harm for ever */

/* A directory that cannot be locked (unreadable, or a file system without locks) is used without. */
static int
lock_directory(const char *path, int *lockp)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash;
	int tries;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash == dir)
		slash[1] = '\0';
	else if (slash != NULL)
		*slash = '\0';
	*lockp = open(slash != NULL ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*lockp < 0)
		return (0);
	for (tries = 0; flock(*lockp, LOCK_EX | LOCK_NB) != 0; tries++) {
		if (errno != EWOULDBLOCK)
			return (0);
		if (tries == LOCK_TRIES)
			return (-EBUSY);
		usleep(10000);
	}
	return (0);
}

/* connect(2) gives the same error for a dead socket and for a file that is no socket. */
static bool
is_stale(const struct sockaddr_un *un)
{
	struct stat st;
	bool refused;
	int fd;

	if (lstat(un->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return (false);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return (false);
	refused = connect(fd, (const struct sockaddr *)un, sizeof(*un)) < 0 && errno == ECONNREFUSED;
	close(fd);
	return (refused);
}

/* By descriptor: in a directory of another user the name may be something else by now. */
static int
give_away(const char *path, const struct listen_conf *c)
{
	struct stat st;
	int fd, err = 0;

	if (!c->set_owner)
		return (0);
	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		err = -errno;
	else if (!S_ISSOCK(st.st_mode))
		err = -EADDRINUSE;
	else if (fchownat(fd, "", c->uid, c->gid, AT_EMPTY_PATH) != 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	return (err);
}

static int
bind_file(int fd, const struct sockaddr_un *un, const struct listen_conf *c)
{
	mode_t mask = c->set_mode ? umask(0777 & ~c->mode) : 0;
	int err = bind(fd, (const struct sockaddr *)un, sizeof(*un)) < 0 ? -errno : 0;

	if (c->set_mode)
		umask(mask);
	return (err);
}

static int
bind_locked(int fd, const struct sockaddr_un *un, const struct listen_conf *c)
{
	int err = bind_file(fd, un, c);

	if (err == -EADDRINUSE && is_stale(un))
		err = unlink(un->sun_path) == 0 ? bind_file(fd, un, c) : -errno;
	if (err == 0)
		err = give_away(un->sun_path, c);
	if (err == 0 && listen(fd, c->backlog) < 0)
		err = -errno;
	return (err);
}

int
listen_unix(const struct listen_conf *c, const char *path, int *fdp)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd, lock, err;

	must(strlen(path) < sizeof(un.sun_path));
	strcpy(un.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return (-errno);
	err = lock_directory(path, &lock);
	if (err == 0)
		err = bind_locked(fd, &un, c);
	if (lock >= 0)
		close(lock);
	if (err != 0)
		close(fd);
	else
		*fdp = fd;
	return (err);
}
