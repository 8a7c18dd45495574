/* io/start/version.h -- identifies the contents of a file that were seen, as far as its times and
 * size can.
 *
 * A file system stamps a write with the last tick of a clock.  Two writes within one tick leave the
 * same times, so bytes read between them look current for ever.  Contents are therefore settled
 * only if they were read when every later write was sure to leave another time:
 *
 *      write  c       c + one tick         read begins
 *        |____|____________|____________________|_____________ time
 *              another write here               a write here
 *              leaves time c, too               leaves a later one
 *
 *   ticks          20 ms are two of the slowest kernel's.  A time without a fraction of a second
 *                  counts as one of a file system that stores none: 2 s, the tick of FAT.
 *   other clocks   NFS, FUSE and every file system not known to be local may have a clock that is
 *                  late: 60 s.
 *   watched        A file whose times stayed the same for two ticks of observation has settled,
 *                  whatever they are.  So times in the future cost a few reads, not one for every
 *                  request.
 *
 * Not detected: two writes within a tick of a server whose clock is more than 60 s late, and of a
 * file system with ticks longer than 2 s.
 *
 * Units    nanoseconds; wall clock for times of files, CLOCK_MONOTONIC for the time of observation.
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

/* True if *now still has the contents of `then`.  A new change time alone means no, unless
 * something else that changes it differs: the links (a rename replaced the file), the mode, the
 * owner. */
bool io_version_holds(const struct io_version *then, const struct io_version *now);

/* True if bytes read from `read_wall` on are settled.  That time is of CLOCK_REALTIME_COARSE, taken
 * before the read: this clock times files, and other clocks go on while it stands still.  watched:
 * how long its times had been the same by then; 0: unknown. */
bool io_version_settled(const struct io_version *, uint64_t read_wall, uint64_t watched,
    bool own_clock);

#define IO_OTHER_CLOCK_NS 60000000000ull /* the clock of another machine may be late by this much */
/* Old enough for the clocks of other machines: then it does not matter whose clock it is. */
bool io_version_is_old(const struct io_version *, uint64_t read_wall);

#endif
