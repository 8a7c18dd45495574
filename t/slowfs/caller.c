#include "caller.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXITING 0x4UL /* in the flags of proc_pid_stat(5) */

enum life { ALIVE, DYING, GONE };

static bool
proc_read(pid_t thread, const char *file, char *buf, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)thread, file);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return (false);
	n = read(fd, buf, size - 1);
	close(fd);
	if (n <= 0)
		return (false);
	buf[n] = '\0';
	return (true);
}

static enum life
life_of(pid_t thread)
{
	char buf[1024], *after;
	unsigned long flags, pending;

	if (!proc_read(thread, "stat", buf, sizeof(buf)))
		/* else it is hidden from us */
		return (kill(thread, 0) < 0 && errno == ESRCH ? GONE : ALIVE);
	/* Fields are counted from the end of the name, which may hold anything: 9 is flags, 31
	 * pending signals. */
	after = strrchr(buf, ')');
	if (after == NULL || sscanf(after + 1,
				 " %*c %*d %*d %*d %*d %*d %lu %*u %*u %*u %*u %*u %*u %*d %*d"
				 " %*d %*d %*d %*d %*u %*u %*d %*u %*u %*u %*u %*u %*u %lu",
				 &flags, &pending) != 2)
		return (ALIVE);
	return ((flags & EXITING) || (pending & (1UL << (SIGKILL - 1))) ? DYING : ALIVE);
}

pid_t
caller_group(pid_t thread)
{
	char buf[1024], *line;

	if (!proc_read(thread, "status", buf, sizeof(buf)) ||
	    (line = strstr(buf, "\nTgid:")) == NULL)
		return (0);
	return ((pid_t)strtol(line + strlen("\nTgid:"), NULL, 10));
}

bool
caller_killed(pid_t thread, pid_t group)
{
	enum life life = life_of(thread);

	/* The thread that asked may have ended, and its process still wait for the answer. */
	if (life == GONE && group != 0 && group != thread)
		life = life_of(group);
	return (life != ALIVE);
}
