/* nginx/probe.c -- is a name in memory, and what will be sent of it?  No call here waits for a
 * disk. */
#include "nginx/stat_accel.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGES_MAX 16 /* of a long file: evenly spread, with the first and the last */

static enum accel_kind
kind_of_error(int err)
{
	switch (err) {
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
	case ELOOP:
	case EACCES: return (ACCEL_ABSENT);
	default: return (ACCEL_COLD); /* EAGAIN: it must be looked up; ENOSYS before Linux 5.12 */
	}
}

/* FUSE and others do not know RWF_NOWAIT: the bytes are there if they have just been read. */
static bool
page_is_hot(int fd, off_t at, bool read)
{
	char byte;
	struct iovec iov = { &byte, 1 };

	return (preadv2(fd, &iov, 1, at, RWF_NOWAIT) >= 0 || (read && errno == EOPNOTSUPP));
}

static bool
range_is_hot(int fd, struct accel_range range, off_t size, bool read)
{
	off_t step;

	if (range.from < 0)
		range.from = ngx_max(size + range.from, 0);
	range.to = ngx_min(range.to, size);
	if (range.from >= range.to)
		return (true);
	step = ngx_max((range.to - 1 - range.from) / (PAGES_MAX - 1), (off_t)ngx_pagesize);
	for (off_t at = range.from; at < range.to - 1; at += step)
		if (!page_is_hot(fd, at, read))
			return (false);
	return (page_is_hot(fd, range.to - 1, read));
}

static enum accel_kind
kind_of(int fd, const struct accel_name *name, bool read)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return (ACCEL_COLD);
	if (S_ISDIR(st.st_mode))
		return (name->list ? ACCEL_COLD : ACCEL_DIR);
	if (S_ISREG(st.st_mode) && !range_is_hot(fd, name->range, st.st_size, read))
		return (ACCEL_COLD);
	return (ACCEL_FILE);
}

enum accel_kind
accel_probe(const struct accel_name *name, bool read)
{
	struct open_how how = {
		.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
		.resolve = RESOLVE_CACHED,
	};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, name->path.data, &how, sizeof(how));
	enum accel_kind kind;

	if (fd < 0)
		return (kind_of_error(errno));
	kind = kind_of(fd, name, read);
	close(fd);
	return (kind);
}
