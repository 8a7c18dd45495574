/* io/start/pid.c -- see pid.h */
#include "io/start/pid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COMM_MAX 15 /* the kernel keeps this many bytes of a name */

static bool
runs(pid_t pid, const char *program)
{
	char path[64], name[COMM_MAX + 2];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return (false);
	n = read(fd, name, sizeof(name) - 1);
	close(fd);
	if (n <= 0)
		return (false);
	name[n] = '\0';
	name[strcspn(name, "\n")] = '\0';
	return (strncmp(name, program, COMM_MAX) == 0);
}

int
pid_open(pid_t pid, const char *program)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0u);

	if (fd < 0)
		return (-errno);
	if (runs(pid, program))
		return (fd);
	close(fd);
	return (-ESRCH);
}

int
pid_signal(int pidfd, int sig)
{
	return (syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0u) == 0 ? 0 : -errno);
}
