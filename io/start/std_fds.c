/* io/start/std_fds.c -- see std_fds.h */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "io/start/std_fds.h"

static int spawner = -1; /* see io_spawner_open() */

/* In a chroot without /dev/null, the root directory does as well: it can be neither read nor
 * written. */
int
io_open_std_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
		if (fd < 0)
			fd = open("/", O_RDONLY | O_DIRECTORY);
		if (fd < 0)
			return (-errno);
	} while (fd <= STDERR_FILENO);
	close(fd);
	return (0);
}

bool
io_stderr_is_null(void)
{
	struct stat err, null;

	return (fstat(STDERR_FILENO, &err) == 0 && stat("/dev/null", &null) == 0 &&
		S_ISCHR(err.st_mode) && err.st_rdev == null.st_rdev);
}

static bool
parent_is(const char *name)
{
	char path[64], comm[64] = "";
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)getppid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return (false);
	n = read(fd, comm, sizeof(comm) - 1);
	close(fd);
	return (n > 0 && comm[n - 1] == '\n' && strlen(name) == (size_t)n - 1 &&
		strncmp(comm, name, (size_t)n - 1) == 0);
}

/* A socket, of a service manager, cannot be opened by its name in /proc. */
static bool
takes_lines(int fd)
{
	struct stat st;

	return (
	    isatty(fd) || (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode))));
}

/* The parent waits 100 ms for its child and only then leaves.  Without O_NOCTTY the terminal would
 * become the controlling one of this process, whose session spawn-fcgi has made. */
void
io_spawner_open(void)
{
	char path[64];

	if (!parent_is("spawn-fcgi"))
		return;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/2", (int)getppid());
	spawner = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (spawner >= 0 && !takes_lines(spawner))
		io_spawner_close();
}

void
io_spawner_tell(struct text lines)
{
	if (spawner >= 0)
		(void)!write(spawner, lines.p, lines.n);
}

void
io_spawner_close(void)
{
	if (spawner >= 0)
		close(spawner);
	spawner = -1;
}
