/* io/read_whole.c -- see read_whole.h */
#include "io/read_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes, at most max, or -errno. */
static ssize_t
read_up_to(int fd, char *p, size_t max)
{
	size_t n = 0;
	ssize_t got;

	while (n < max) {
		got = read(fd, p + n, max - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return (-errno);
		if (got == 0)
			break;
		n += (size_t)got;
	}
	return ((ssize_t)n);
}

static struct text
read_fd(int fd, size_t max, int *err)
{
	struct stat st;
	ssize_t n;
	char *p;

	*err = fstat(fd, &st) != 0 ? -errno : !S_ISREG(st.st_mode) ? -EINVAL : 0;
	if (*err == 0 && (uint64_t)st.st_size > max)
		*err = -EFBIG;
	if (*err != 0)
		return (TEXT_NONE);
	p = malloc((size_t)st.st_size + 1);
	n = p != NULL ? read_up_to(fd, p, (size_t)st.st_size) : -ENOMEM;
	if (n < 0) {
		free(p);
		*err = (int)n;
		return (TEXT_NONE);
	}
	p[n] = '\0';
	return ((struct text){ p, (size_t)n });
}

struct text
io_read_whole(int dir, const char *name, size_t max, int *err)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct text t;

	if (fd < 0) {
		*err = -errno;
		return (TEXT_NONE);
	}
	t = read_fd(fd, max, err);
	close(fd);
	return (t);
}
