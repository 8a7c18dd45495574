/* io/std_fds.c -- see std_fds.h */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "io/std_fds.h"

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
