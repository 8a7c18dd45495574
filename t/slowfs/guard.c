#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t guard;
static int pipe_fd = -1;

static void
abort_connection(unsigned minor)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/abort", minor);
	if ((fd = open(path, O_WRONLY | O_CLOEXEC)) < 0)
		return; /* not mounted, or not ours: what follows may do */
	(void)!write(fd, "1\n", 2);
	close(fd);
}

/* In /proc/self/mountinfo blanks are \040. */
static void
unescape(char *s)
{
	char *to = s;
	unsigned c;

	for (; *s != '\0'; to++) {
		if (sscanf(s, "\\%3o", &c) == 1) {
			*to = (char)c;
			s += 4;
		} else
			*to = *s++;
	}
	*to = '\0';
}

static void
unmount(char *path)
{
	unescape(path);
	if (umount2(path, MNT_FORCE | MNT_DETACH) == 0 || errno != EPERM)
		return;
	execlp("fusermount3", "fusermount3", "-u", "-z", path, (char *)NULL);
}

/* By the number of its device: something else may be mounted at the same place. */
static void
clear_away(unsigned minor)
{
	char *line = NULL, path[4096];
	size_t room = 0;
	unsigned n;
	FILE *f;

	abort_connection(minor);
	if ((f = fopen("/proc/self/mountinfo", "re")) == NULL)
		return;
	while (getline(&line, &room, f) > 0) {
		if (sscanf(line, "%*u %*u 0:%u %*s %4095s", &n, path) == 2 && n == minor &&
		    strstr(line, " fuse.slowfs ") != NULL)
			unmount(path);
	}
	free(line);
	fclose(f);
}

static void
guard_main(int fd, pid_t slowfs)
{
	sigset_t hup, all;
	unsigned minor;
	int sig;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL); /* Ctrl-C is for slowfs */
	sigemptyset(&hup);
	sigaddset(&hup, SIGHUP);
	/* comes with the end of its first thread */
	prctl(PR_SET_PDEATHSIG, SIGHUP);
	setsid();
	dup2(fd, 3);
	close_range(0, 2, 0); /* readers of our output must see its end */
	close_range(4, ~0u, 0);
	if (read(3, &minor, sizeof(minor)) != sizeof(minor))
		return; /* ended before there was a mount */
	while (getppid() == slowfs && (sigwait(&hup, &sig) != 0 || sig != SIGHUP))
		;
	clear_away(minor);
}

int
guard_start(void)
{
	pid_t slowfs = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return (-errno);
	if ((guard = fork()) < 0)
		return (-errno);
	if (guard == 0) {
		guard_main(fds[0], slowfs);
		_exit(0);
	}
	close(fds[0]);
	pipe_fd = fds[1];
	return (0);
}

/* Asks for nothing: no answer would come yet. */
void
guard_mount(const char *mountpoint)
{
	struct statx stx;
	unsigned minor;

	if (statx(AT_FDCWD, mountpoint, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &stx) != 0)
		return;
	minor = stx.stx_dev_minor;
	(void)!write(pipe_fd, &minor, sizeof(minor));
}

/* An aborted connection answers requests that came after we stopped to listen; a plain unmount
 * would leave them waiting, and with them a thread of ours that tells the kernel to forget: then
 * nobody could end. */
void
guard_clear(void)
{
	kill(guard, SIGHUP);
	while (waitpid(guard, NULL, 0) < 0 && errno == EINTR)
		;
}
