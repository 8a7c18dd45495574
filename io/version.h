/* io/version.h -- which contents of a file were looked at, as far as its times and size can tell.
 *
 * A file system writes the time of the last tick of a clock.  Two writes within one tick leave the same times, so what was
 * read between them looks current for ever.  Contents are therefore settled only if they were read when every later write
 * was sure to leave another time:
 *
 *      write  c       c + one tick         read begins
 *        |____|____________|____________________|_____________ time
 *              another write here               a write here
 *              leaves time c, too               leaves a later one
 *
 *   ticks          20 ms are two of the slowest kernel's.  A time without a fraction of a second is taken for one of a file
 *                  system that stores none: 2 s, the tick of FAT.
 *   other clocks   NFS, FUSE and whatever is not known to be a local file system may have a clock that is late: 60 s.
 *   watched        A file whose times stayed as they are while we watched for two ticks has settled, whatever they say.
 *                  So times in the future cost a few reads, not one for every request.
 *
 * Not seen: two writes within a tick of a server whose clock is more than 60 s behind ours, and of a file system with
 * ticks longer than 2 s.
 *
 * Units    nanoseconds; wall clock for times of files, CLOCK_MONOTONIC for how long they were watched.
 * Thread   any.
 */
#ifndef IO_VERSION_H
#define IO_VERSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct io_version {
	uint64_t size;
	int64_t mtime_s, ctime_s;
	uint32_t mtime_ns, ctime_ns;
	uint32_t nlink, mode, uid, gid;
};

struct io_version io_version_of(const struct statx *);

/* A look at the file shows the contents of `then` still.  The time of change alone says no, unless something else that moves it
 * has changed: the links (a rename put another file in its place), the mode, the owner. */
bool io_version_holds(const struct io_version *then, const struct io_version *now);
int io_version_look(const struct io_version *then, int fd, int flags, struct io_version *now); /* 0, -ETXTBSY or -ENODATA; flags of statx(2) */

/* What was read from `read_wall` on is settled.  That time is of CLOCK_REALTIME_COARSE, taken before reading: it is the clock that
 * times files, and other clocks go on while it stands still.  watched: for how long its times had been the same by then; 0: not known. */
bool io_version_settled(const struct io_version *, uint64_t read_wall, uint64_t watched, bool own_clock);

#define IO_OTHER_CLOCK_NS 60000000000ull /* by so much the clock of another machine may be late */
/* Old enough for the clocks of other machines: nobody need find out whose clock it is. */
bool io_version_is_old(const struct io_version *, uint64_t read_wall);

#endif
