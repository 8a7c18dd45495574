#include "fcgi-stat-accel/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/start/listen.h"
#include "io/start/pid.h"

#define ANSWER_MS 8000 /* the child tries for 2 s to lock, and for 2 s to connect */
/* tries of 10 ms: the queue of a busy process may be full for a moment */
#define CONNECT_TRIES 200

struct answer {
	int32_t err, old;
};

void
keeper_remove(const char *path, const struct stat *made)
{
	struct stat now;

	if (lstat(path, &now) == 0 && now.st_ino == made->st_ino && now.st_dev == made->st_dev)
		unlink(path);
}

/* ---------------------------------------------------------------- the process at the path */

static int
connect_to(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int tries, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return (-errno);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	for (tries = 0; connect(fd, (const struct sockaddr *)&un, sizeof(un)) < 0; tries++) {
		int err = -errno;

		if (err != -EAGAIN || tries == CONNECT_TRIES) {
			close(fd);
			return (err);
		}
		usleep(10000);
	}
	return (fd);
}

/* The process that called listen(2), and *pidfd; 0: none; -1: unknown, or another program. */
static pid_t
find_old(const char *path, int *pidfd)
{
	struct ucred who = { .pid = 0 };
	socklen_t len = sizeof(who);
	int fd = connect_to(path);

	*pidfd = -1;
	if (fd == -ENOENT || fd == -ECONNREFUSED)
		return (0);
	if (fd < 0)
		return (-1);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && who.pid > 1)
		*pidfd = pid_open(who.pid, "fcgi-stat-accel");
	close(fd);
	return (*pidfd >= 0 ? who.pid : -1);
}

static int
take_place(const struct keeper_conf *k)
{
	struct stat st;

	if (lstat(k->path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return (-EADDRINUSE);
	return (rename(k->temporary, k->path) == 0 ? 0 : -errno);
}

/* The lock makes two new processes take turns: the second replaces the first. */
static struct answer
replace(const struct keeper_conf *k)
{
	struct answer a = { 0, 0 };
	int pidfd, lock;

	a.err = listen_lock(k->path, &lock);
	if (a.err != 0)
		return (a);
	a.old = (int32_t)find_old(k->path, &pidfd);
	a.err = take_place(k);
	if (a.err == 0 && a.old > 0 && pid_signal(pidfd, SIGUSR1) != 0)
		a.old = -1;
	if (pidfd >= 0)
		close(pidfd);
	listen_unlock(k->path, lock);
	return (a);
}

/* ---------------------------------------------------------------- the child */

/* All other descriptors are closed: the child would keep them open, the listening socket among
 * them. */
static void
keep(int end, const struct keeper_conf *k)
{
	struct answer a;
	sigset_t all;
	char byte;
	ssize_t n;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	(void)dup2(end, 0);
	(void)syscall(SYS_close_range, 1, ~0u, 0);
	if (k->path[0] == '/')
		(void)!chdir("/");
	while ((n = read(0, &byte, 1)) > 0 || (n < 0 && errno == EINTR)) {
		if (n < 0)
			continue;
		a = replace(k);
		(void)!write(0, &a, sizeof(a));
		if (a.err == 0 && !k->stay)
			_exit(0);
	}
	keeper_remove(k->path, &k->made);
	if (k->temporary != NULL)
		keeper_remove(k->temporary, &k->made);
	_exit(0);
}

int
keeper_start(const struct keeper_conf *k)
{
	int end[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end) < 0)
		return (-errno);
	pid = fork();
	if (pid == 0)
		keep(end[0], k);
	close(end[0]);
	if (pid < 0) {
		close(end[1]);
		return (-EAGAIN);
	}
	return (end[1]);
}

int
keeper_replace(int keeper, pid_t *old)
{
	struct pollfd p = { .fd = keeper, .events = POLLIN };
	struct answer a;

	if (write(keeper, "", 1) != 1)
		return (-errno);
	if (poll(&p, 1, ANSWER_MS) != 1)
		return (-ETIMEDOUT);
	if (read(keeper, &a, sizeof(a)) != (ssize_t)sizeof(a))
		return (-EIO);
	*old = (pid_t)a.old;
	return (a.err);
}
