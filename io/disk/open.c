/* io/disk/open.c -- opens names in the stat pool, beneath a root.
 *
 * A thread of one device must not get stuck in another one.  So a path is first walked with
 * RESOLVE_NO_XDEV, which returns EXDEV at a mount point without touching it.  The job then moves to
 * the queue of that mount and goes on there.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/log.h"
#include "io/engine.h"
#include "io/disk/links.h"
#include "io/disk/mounts.h"
#include "io/disk/open.h"

_Static_assert(IO_BENEATH == RESOLVE_BENEATH, "the kernel's value");
_Static_assert(IO_NO_SYMLINKS == RESOLVE_NO_SYMLINKS, "the kernel's value");

#define IO_OWN_FLAGS (IO_NOATIME | IO_LINKS | IO_REAL_NAME | IO_LOCAL | IO_GIVEN)
#define RENAME_RACES 16 /* openat2 returns EAGAIN if a rename nearby interfered */

/* O_NONBLOCK: a FIFO or device must not block the thread. */
static struct open_how
how_to_open(const struct io_op *op)
{
	uint64_t flags = O_CLOEXEC | (op->only_stat ? O_PATH : O_RDONLY | O_NONBLOCK | O_NOCTTY);

	return ((struct open_how){
	    .flags = flags,
	    .resolve = (op->open.resolve & ~IO_OWN_FLAGS) | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	});
}

const char *
io_open_path(const struct io_job *j)
{
	return (j->path[0] != '\0' ? j->path : ".");
}

uint64_t
io_device_beyond(int dir, const char *below)
{
	char root[PATH_MAX], path[2 * PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	n = readlink(path, root, sizeof(root) - 1);
	if (n <= 0)
		return (MOUNTS_UNKNOWN);
	root[n] = '\0';
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", n == 1 ? "" : root, below) >=
	    sizeof(path))
		return (MOUNTS_UNKNOWN);
	return (mounts_dev_below(root, path));
}

/* Also called for a path that leaves the root; its second walk returns -EXDEV again. */
static enum open_next
cross(struct io_job *j)
{
	uint64_t dev = io_device_beyond(j->root, j->path);
	bool moves = dev != j->dev;

	j->how.resolve &= ~(uint64_t)RESOLVE_NO_XDEV;
	j->dev = dev;
	return (moves ? OPEN_MOVES : OPEN_AGAIN);
}

/* A thread does the walk, even if a ring opens other paths. */
static void
walk(struct io_job *j)
{
	j->walks = true;
	j->async = NULL;
}

/* The path has a link: a thread follows it, and asks where the link led. */
static void
follow(struct io_job *j)
{
	j->named = true;
	j->how.resolve &= ~(uint64_t)RESOLVE_NO_SYMLINKS;
	j->async = NULL;
}

static bool
is_of_links(const struct io_job *j, int err)
{
	return (err == -EXDEV || err == -ELOOP ||
		(err == -EACCES && (j->how.resolve & RESOLVE_BENEATH) == 0));
}

int
io_open_error(int err)
{
	return (err == -ENXIO || err == -ENODEV ? -EACCES : err);
}

enum open_next
io_open_failed(struct io_job *j, int err)
{
	if (err == -EINTR || (err == -EAGAIN && ++j->tries < RENAME_RACES))
		return (OPEN_AGAIN);
	if (err == -EXDEV && (j->how.resolve & RESOLVE_NO_XDEV))
		return (cross(j));
	if (err == -ELOOP && j->names && !j->named) {
		follow(j);
		return (OPEN_WALKS);
	}
	if (j->links && !j->walks && is_of_links(j, err)) {
		walk(j);
		return (OPEN_WALKS);
	}
	j->res = io_open_error(err);
	return (OPEN_FAILED);
}

/* Only the owner of a file may set O_NOATIME.  openat2(2) would fail for all others, and be called
 * twice.  Most files that others own have one owner, for whom one call is tried. */
static void
unmark(struct io_job *j, int fd)
{
	static uint32_t refused = UINT32_MAX;
	uint32_t owner = j->stx.stx_uid;

	if (!j->unmarks || !S_ISREG(j->stx.stx_mode))
		return;
	j->marks = owner == __atomic_load_n(&refused, __ATOMIC_RELAXED);
	if (j->marks || fcntl(fd, F_SETFL, O_NONBLOCK | O_NOATIME) == 0)
		return;
	j->marks = true;
	__atomic_store_n(&refused, owner, __ATOMIC_RELAXED);
}

bool
io_open_seen(struct io_job *j, int fd, int err)
{
	if (err != 0 || j->only_stat) {
		j->res = err;
		return (false);
	}
	if (!S_ISREG(j->stx.stx_mode) && !S_ISDIR(j->stx.stx_mode)) {
		j->res = -EACCES;
		return (false);
	}
	/* The server reads whole windows and announces the next one itself.  cachestat(2) would
	 * count pages that the kernel reads ahead while they are still being read. */
	if (S_ISREG(j->stx.stx_mode) && j->stx.stx_size > j->first.keep && !j->given)
		posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	unmark(j, fd);
	j->fd = fd;
	j->res = fd;
	return (true);
}

static int
open_path(struct io_job *j)
{
	int fd;

	if (j->walks)
		return (io_links_open(j));
	fd = (int)syscall(SYS_openat2, j->root, io_open_path(j), &j->how, sizeof(j->how));
	return (fd < 0 ? -errno : fd);
}

/* False: the file has no name, so nothing shows whether it may be sent. */
static bool
name_file(struct io_job *j)
{
	if (!j->named || !S_ISREG(j->stx.stx_mode))
		return (true);
	j->first.real = io_links_name(j->fd);
	if (j->first.real != NULL)
		return (true);
	close(j->fd);
	j->fd = -1;
	j->res = -EACCES;
	return (false);
}

static void
open_run(struct io_job *j)
{
	enum open_next next;
	int fd, err;

	do {
		fd = open_path(j);
		next = fd < 0 ? io_open_failed(j, fd) : OPEN_FAILED;
	} while (next == OPEN_AGAIN || next == OPEN_WALKS);
	if (fd < 0) {
		j->moves = next == OPEN_MOVES;
		return;
	}
	err = statx(fd, "", AT_EMPTY_PATH, IO_OPEN_FACTS, &j->stx) < 0 ? -errno : 0;
	if (!io_open_seen(j, fd, err))
		close(fd);
	else if (name_file(j))
		(void)io_first_read(j);
}

static void
give_first(struct io_job *j)
{
	if (j->op->open.first == NULL)
		return;
	*j->op->open.first = j->first;
	j->first.bytes = NULL;
	j->first.real = NULL;
	if (j->first.n != 0)
		io_count_read(j->op->io, true);
}

static void
tell_marks(const struct io_job *j)
{
	static bool told;

	count(j->io->counters, noatime_refused);
	if (__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		return;
	log_event(LOG_WARN, NULL, "noatime.refused", LF_STR("file", j->path),
	    LF_U64("owner", j->stx.stx_uid), LF_U64("uid", geteuid()),
	    LF_STR("why", "only the owner of a file may open it with O_NOATIME"),
	    LF_STR("then", "reading such files writes their access times"),
	    LF_STR("do",
		"mount the file system with noatime, or give the files to the server's user; "
		"server.cache.noatime-refused counts such files"));
}

static void
open_finish(struct io_job *j)
{
	if (j->marks)
		tell_marks(j);
	if (j->op != NULL) {
		*j->op->open.stx = j->stx;
		if (j->res >= 0)
			give_first(j);
		j->fd = -1; /* the caller owns it now */
		io_complete(j->op, j->res);
	}
	io_job_free(j);
}

/* Uses known facts: never waits, not even for a network. */
uint64_t
io_dev_of(int fd)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &stx) < 0)
		return (MOUNTS_UNKNOWN);
	return (makedev(stx.stx_dev_major, stx.stx_dev_minor));
}

/* A path without links costs no further call: the first try follows none. */
static void
expect_links(struct io_job *j, const struct io_op *op)
{
	if ((op->open.resolve & IO_REAL_NAME) == 0 || (op->open.resolve & IO_NO_SYMLINKS) ||
	    op->only_stat || op->open.first == NULL)
		return;
	j->names = true;
	j->named = j->walks;
	if (!j->walks)
		j->how.resolve |= RESOLVE_NO_SYMLINKS;
}

static struct io_job *
open_job(struct io_op *op)
{
	struct io_job *j = io_job_for(op, op->open.path, open_run, open_finish);

	if (j == NULL)
		return (NULL);
	j->lane = op->urgent ? LANE_URGENT : LANE_STAT;
	j->async = op->urgent ? NULL : op->io->looks;
	j->only_stat = op->only_stat;
	j->unmarks = (op->open.resolve & IO_NOATIME) != 0;
	j->given = (op->open.resolve & IO_GIVEN) != 0;
	j->root = op->open.root;
	j->how = how_to_open(op);
	j->links = (op->open.resolve & IO_LINKS) != 0;
	if (j->links && (op->open.resolve & IO_BENEATH) && io_links_inner(op->open.path))
		walk(j);
	expect_links(j, op);
	if (op->open.first != NULL)
		j->first = (struct io_first){ .keep = op->open.first->keep,
			.warm = op->open.first->warm,
			.warm_most = op->open.first->warm_most,
			.shut = op->open.first->shut,
			.forget = op->open.first->forget };
	return (j);
}

void
io_start_open(struct io_op *op)
{
	struct io_job *j = open_job(op);

	if (j == NULL)
		return;
	j->dev = io_dev_of(op->open.root);
	if ((op->open.resolve & IO_LOCAL) && io_open_at_once(j)) {
		io_job_finish(j);
		return;
	}
	io_job_start(op, j);
}

/* The kernel never gives EPERM here; filters of containers do. */
static bool
can_open_beneath(int root)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, root, ".", &how, sizeof(how));

	if (fd >= 0)
		close(fd);
	return (fd >= 0 || (errno != ENOSYS && errno != EPERM));
}

int
io_root_open(const char *dir, int *fdp)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return (-errno);
	if (!can_open_beneath(fd)) {
		close(fd);
		return (-ENOSYS);
	}
	*fdp = fd;
	return (0);
}

const char *
io_root_error(int err)
{
	return (err == -ENOSYS ? "openat2(2) is refused; expected Linux 5.6 or newer, and in a "
				 "container a seccomp filter that allows it"
			       : strerror(-err));
}
