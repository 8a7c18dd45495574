/* io/disk/hot.c -- which bytes are in memory, and how to read others into it. */
#include "io/disk/hot.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "io/engine.h"
#include "io/disk/job.h"
#include "io/disk/mounts.h"
#include "io/disk/open.h"
#include "io/disk/pin.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* Linux 6.5; not in the headers of Debian 12 */
#endif

#define COPY_MAX   (1u << 20)
#define MARK_AGE_S (24 * 60 * 60 - 5) /* of relatime, a little less than a day */

/* ---------------------------------------------------------------- looking */

struct counted {
	uint64_t cached, dirty, writeback, evicted, recently;
};

/* EPERM: newer kernels answer only users who may write the file (seen with 6.18), and a filter
 * of system calls may return it. */
static int
count_pages(int fd, uint64_t off, uint64_t len, struct counted *c)
{
	struct {
		uint64_t off, len;
	} range = { off, len };

	if (syscall(SYS_cachestat, fd, &range, c, 0) < 0)
		return (errno == EPERM ? -ENOSYS : -errno);
	return (0);
}

int
io_pages_counted(int fd, uint64_t off, uint64_t len)
{
	uint64_t pages = (off + len - 1) / PAGE - off / PAGE + 1;
	struct counted c;
	int err = count_pages(fd, off, len, &c);

	return (err != 0 ? err : c.cached >= pages);
}

bool
io_pages_dirty(int fd, uint64_t off, uint64_t len)
{
	struct counted c;

	return (count_pages(fd, off, len, &c) == 0 && (c.dirty != 0 || c.writeback != 0));
}

bool
io_pages_gone(int fd, uint64_t off, uint64_t len, uint64_t size)
{
	uint64_t end = off + len < size ? off + len : size;

	return (off < end && io_pages_counted(fd, off, end - off) == 0);
}

bool
io_file_counted(const struct io_file *f, uint64_t off, uint64_t len)
{
	return (io_pages_counted(f->fd, off, len) == 1);
}

/* At most a page.  1: readable without waiting, 0: not, -EOPNOTSUPP: this file system cannot
 * tell. */
static int
bytes_readable(int fd, uint64_t off, size_t len)
{
	char buf[PAGE];
	struct iovec iov = { buf, len };
	ssize_t n = preadv2(fd, &iov, 1, (off_t)off, RWF_NOWAIT);

	if (n < 0 && errno == EOPNOTSUPP)
		return (-EOPNOTSUPP);
	return (n == (ssize_t)len);
}

/* If the kernel does not count pages for this process: bytes that can be copied without waiting are
 * in memory. 0.1 ms per MiB. */
static bool
range_copied(int fd, uint64_t from, uint64_t to)
{
	char buf[64 << 10];
	struct iovec iov = { buf, sizeof(buf) };
	ssize_t n;

	if (to - from > COPY_MAX)
		return (false);
	for (; from < to; from += (uint64_t)n) {
		n = preadv2(fd, &iov, 1, (off_t)from, RWF_NOWAIT);
		if (n <= 0)
			return (false);
	}
	return (true);
}

/* 1, 0 or -EOPNOTSUPP, as above. */
static int
ends_readable(int fd, uint64_t from, uint64_t to)
{
	int is = bytes_readable(fd, to - 1, 1);

	return (is == 1 ? bytes_readable(fd, from, 1) : is);
}

/* The pages are counted first, because RWF_NOWAIT starts to read what is not there.  The ends are
 * read because cachestat(2) also counts pages that are being read.  A small file is covered by one
 * end. */
int
io_range_cached(int fd, uint64_t from, uint64_t to)
{
	int all = io_pages_counted(fd, from, to - from), is;

	if (all == 0)
		return (0);
	if (to - from <= PAGE)
		return (bytes_readable(fd, from, to - from));
	is = ends_readable(fd, from, to);
	return (is == 1 && all == -ENOSYS ? range_copied(fd, from, to) : is);
}

bool
io_facts_are_local(const struct statx *stx)
{
	return ((stx->stx_mask & STATX_MNT_ID) != 0 && mounts_local(stx->stx_mnt_id));
}

bool
io_fd_is_local(int fd)
{
	struct statx stx;

	return (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &stx) == 0 &&
		io_facts_are_local(&stx));
}

static bool
is_later(struct statx_timestamp a, struct statx_timestamp b)
{
	return (a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec));
}

/* By the rule of relatime.  With strictatime each read writes one. */
bool
io_read_marks(const struct statx *s)
{
	int64_t age = (int64_t)(clock_wall_ns() / NS_PER_S) - s->stx_atime.tv_sec;

	if (!S_ISREG(s->stx_mode) || (is_later(s->stx_atime, s->stx_mtime) &&
					 is_later(s->stx_atime, s->stx_ctime) && age < MARK_AGE_S))
		return (false);
	return (mounts_marks(s->stx_mnt_id));
}

/* tmpfs cannot tell which bytes are readable now, but its pages are never in the middle of a
 * read. */
static bool
range_there(int fd, uint64_t from, uint64_t to)
{
	int is = io_range_cached(fd, from, to);

	return ((is == -EOPNOTSUPP ? io_pages_counted(fd, from, to - from) : is) == 1);
}

bool
io_ends_hot(int fd, uint32_t n)
{
	int all = io_pages_counted(fd, 0, n), is;

	if (all == 0)
		return (false);
	is = ends_readable(fd, 0, n);
	return ((is == -EOPNOTSUPP ? all : is) == 1);
}

int64_t
io_read_hot(int fd, char *to, uint32_t n)
{
	struct iovec iov = { to, n };
	ssize_t got;

	if (io_pages_counted(fd, 0, n) == 0)
		return (-EAGAIN);
	got = preadv2(fd, &iov, 1, 0, RWF_NOWAIT);
	if (got < 0 && errno == EOPNOTSUPP && io_pages_counted(fd, 0, n) == 1)
		got = pread(fd, to, n, 0);
	return (got == (ssize_t)n ? got : -EAGAIN);
}

/* cachestat(2) takes 30 ns a page: 0.1 ms for the largest request. */
static bool
bytes_cached(const struct io_hot *h, int fd, uint64_t size)
{
	struct range_part part[RANGE_PARTS];
	unsigned i, n = h->want != NULL ? range_resolve(h->want, size, h->bytes, part) : 0;
	uint64_t sum = 0;

	for (i = 0; i < n; i++) {
		sum += part[i].to - part[i].from;
		if (sum > IO_HOT_MAX || !range_there(fd, part[i].from, part[i].to))
			return (false);
	}
	return (true);
}

static int
open_cached(const struct io_hot *h, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {
		.flags = O_CLOEXEC | flags,
		.resolve = h->resolve | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED | resolve,
	};
	int fd = (int)syscall(SYS_openat2, h->root, h->path[0] != '\0' ? h->path : ".", &how,
	    sizeof(how));

	return (fd < 0 ? -errno : fd);
}

/* The path may leave the root's file system.  O_PATH does not ask a file system, so it finds the
 * end of the path before the file is really opened; -EXDEV now means that the path leaves the
 * root. */
static int
open_beyond(const struct io_hot *h, uint64_t flags)
{
	int fd = open_cached(h, O_PATH, 0);
	bool local;

	if (fd < 0)
		return (fd);
	local = io_fd_is_local(fd);
	close(fd);
	return (local ? open_cached(h, flags, 0) : -EAGAIN);
}

int
io_open_hot(const struct io_hot *h, struct statx *stx)
{
	uint64_t flags = h->look ? O_PATH : O_RDONLY | O_NONBLOCK | O_NOCTTY;
	int fd = open_cached(h, flags, RESOLVE_NO_XDEV), err = 0;

	if (fd == -EXDEV || fd == -EAGAIN) /* the quick walk returns -EAGAIN also for a mount */
		fd = open_beyond(h, flags);
	if (fd == -EINTR || fd == -EINVAL || fd == -ENOSYS) /* Linux before 5.12 */
		return (-EAGAIN);
	if (fd < 0)
		return (io_open_error(fd));
	if (statx(fd, "", AT_EMPTY_PATH, IO_OPEN_FACTS | STATX_ATIME, stx) < 0)
		err = -errno;
	else if (S_ISREG(stx->stx_mode) && h->want != NULL && h->bytes != 0 &&
		 (io_read_marks(stx) || !bytes_cached(h, fd, stx->stx_size)))
		err = -EAGAIN;
	close(fd); /* closing does not wait on these file systems */
	return (err);
}

/* ---------------------------------------------------------------- reading windows */

/* The kernel reads at most a read-ahead size (128 KiB, usually) per request.  Announced at once,
 * all requests are in flight together.  Measured on FUSE with 8 ms per request and idle disks: a
 * window takes 8 ms instead of 16. */
void
io_will_need(int fd, uint64_t off, uint64_t end)
{
	for (; off < end; off += IO_KERNEL_READ)
		posix_fadvise(fd, (off_t)off,
		    (off_t)(end - off < IO_KERNEL_READ ? end - off : IO_KERNEL_READ),
		    POSIX_FADV_WILLNEED);
}

static int dev_null = -1;

static void
open_dev_null(void)
{
	dev_null = open("/dev/null", O_WRONLY | O_CLOEXEC);
}

/* sendfile(2) to /dev/null waits until a page is in memory and copies it nowhere, so no buffer is
 * needed.  In a chroot(2) without /dev/null there is one. */
static ssize_t
touch(int fd, off_t *at, size_t len)
{
	char buf[64 << 10];
	ssize_t n;

	if (dev_null >= 0)
		return (sendfile(dev_null, fd, at, len));
	n = pread(fd, buf, len < sizeof(buf) ? len : sizeof(buf), *at);
	*at += n > 0 ? n : 0;
	return (n);
}

int64_t
io_warm_window(int fd, uint32_t len, uint64_t off)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	off_t at = (off_t)off, end = (off_t)(off + len);
	ssize_t n;

	pthread_once(&once, open_dev_null);
	io_will_need(fd, off, off + len); /* all at once: sendfile asks for 64 KiB at a time */
	do
		n = touch(fd, &at, (size_t)(end - at));
	while ((n > 0 && at < end) || (n < 0 && errno == EINTR));
	return (n < 0 && at == (off_t)off ? -errno : at - (off_t)off);
}

void
io_warm_run(struct io_job *j)
{
	j->res = io_warm_window(j->file->fd, j->len, j->off);
	if (j->res > 0 && !j->spare)
		io_pin_window(j->file->fd, j->off, (uint64_t)j->res);
}

void
io_start_warm(struct io_op *op)
{
	struct io_job *j = io_job_for(op, NULL, io_warm_run, io_read_finish);

	if (j == NULL)
		return;
	io_job_set_file(j, op->file.file, op->file.off, op->file.len);
	j->lane = LANE_READ;
	j->spare = op->spare;
	io_count_read(op->io, true);
	io_job_start(op, j);
}
