/* io/disk/at_once.c -- IO_OPEN on the loop, if everything that it needs is in memory.
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
 * A file system that makes the loop wait after all is left to the threads for a while (see
 * io/disk/health.h): a scanner may be asked for each open.
 *
 * Measured with 100,000 names at random, of which 10,000 are remembered: 14 us of CPU for a request
 * instead of 28.  Three trips to threads cost the difference: to open, to close, to come back.
 *
 * Thread   the loop's.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "io/engine.h"
#include "io/disk/health.h"
#include "io/disk/hot.h"
#include "io/disk/open.h"

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
		j->first.unmarked = (j->unmarks && !j->marks) || !io_read_marks(&j->stx);
		if ((j->first.unmarked || j->given) && io_first_read(j)) /* given: reads nothing */
			return (true);
	}
	close(fd);
	return (false);
}

bool
io_open_at_once(struct io_job *j)
{
	struct io_look l;

	if (j->walks || !io_device_is_fit(j->io, j->dev))
		return (false);
	l = io_look_begin(j->io);
	j->at_once = has_at_once(j);
	j->end = io_look_end(j->io, &l, &(struct io_looked){ "open", j->dev, -1, j->path });
	if (!j->at_once) {
		j->end = 0;
		j->fd = -1;
		j->res = 0;
		j->first.n = 0;
		j->first.unmarked = false;
		j->opened = 0;
		j->marks = false;
	}
	return (j->at_once);
}
