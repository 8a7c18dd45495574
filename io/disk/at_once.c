/* io/disk/at_once.c -- IO_OPEN on the loop, if the kernel has all that is needed in memory.
 *
 *   openat2(RESOLVE_CACHED) --> statx --> preadv2(RWF_NOWAIT) --> statx, close
 *        |                        |             `--> not in memory -----------+
 *        |                        `--> a read would write an access time -----+--> a thread
 *        `--> not in memory, a link, a mount, an error ----------------------'
 *
 * Only beneath a root on a local file system, and never beyond it (RESOLVE_NO_XDEV).  An absent
 * name that the kernel remembers is answered, too.  All other errors are found again by a thread,
 * which logs them.
 *
 * Writing an access time can wait for the journal, so a thread reads a file whose time is due.
 * That is the first read after a change, and one a day.
 *
 * A file system that makes the loop wait after all is left to the threads for a while: a scanner
 * may be asked for each open.
 *
 * Measured with 100,000 names at random, of which 10,000 are remembered: 14 us of CPU for a request
 * instead of 28.  Three trips to threads cost the difference: to open, to close, to come back.
 *
 * Thread   the loop's.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "io/engine.h"
#include "io/disk/hot.h"
#include "io/disk/open.h"

#define AT_ONCE_NS (5 * NS_PER_MS) /* longer than this is waiting */
#define THREADS_NS NS_PER_S        /* ... and then threads open the files, so long */
#define DOUBT      1000            /* looks that are watched after a long one */

static bool
has_at_once(struct io_job *j)
{
	struct open_how how = j->how;
	int fd;

	j->at_once = true;
	how.resolve |= RESOLVE_CACHED;
	fd = (int)syscall(SYS_openat2, j->root, io_open_path(j), &how, sizeof(how));
	if (fd < 0) {
		j->res = -errno;
		return (j->res == -ENOENT);
	}
	if (statx(fd, "", AT_EMPTY_PATH, IO_OPEN_FACTS | STATX_ATIME, &j->stx) == 0) {
		if (!io_open_seen(j, fd, 0)) {
			close(fd);
			return (true);
		}
		if (((j->how.flags & O_NOATIME) || !io_read_marks(&j->stx)) && io_first_read(j))
			return (true);
	}
	close(fd);
	return (false);
}

static long
times_slept(void)
{
	struct rusage used;

	return (getrusage(RUSAGE_THREAD, &used) == 0 ? used.ru_nvcsw : 0);
}

/* A long look may be one during which another process had the processor.  So after the first long
 * one it is counted how often this thread goes to sleep. */
static void
judge(struct io *io, uint64_t took, bool slept)
{
	if (io->doubt > 0)
		io->doubt--;
	if (took <= AT_ONCE_NS)
		return;
	io->doubt = DOUBT;
	if (slept)
		io->threads_until = io->now + took + THREADS_NS;
}

bool
io_open_at_once(struct io_job *j)
{
	struct io *io = j->io;
	uint64_t begin, end;
	long slept;

	if (j->walks || io->now < io->threads_until)
		return (false);
	slept = io->doubt > 0 ? times_slept() : 0;
	begin = clock_mono_ns();
	j->at_once = has_at_once(j);
	end = clock_mono_ns();
	judge(io, end - begin, io->doubt > 0 && times_slept() > slept);
	if (j->at_once) {
		j->end = end;
	} else {
		j->fd = -1;
		j->res = 0;
		j->first.n = 0;
		j->opened = 0;
	}
	return (j->at_once);
}
