/* io/start/version.c -- see version.h */
#include "io/start/version.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include "base/clock.h"
#include "io/engine.h"
#include "io/disk/open.h"

#define TICKS_NS  (20 * NS_PER_MS)
#define COARSE_NS (2 * NS_PER_S)

struct io_version
io_version_of(const struct statx *stx)
{
	return ((struct io_version){
	    .size = stx->stx_size,
	    .mtime_s = stx->stx_mtime.tv_sec,
	    .mtime_ns = stx->stx_mtime.tv_nsec,
	    .ctime_s = stx->stx_ctime.tv_sec,
	    .ctime_ns = stx->stx_ctime.tv_nsec,
	    .nlink = stx->stx_nlink,
	    .mode = stx->stx_mode,
	    .uid = stx->stx_uid,
	    .gid = stx->stx_gid,
	});
}

bool
io_version_holds(const struct io_version *then, const struct io_version *now)
{
	if (then->size != now->size || then->mtime_s != now->mtime_s ||
	    then->mtime_ns != now->mtime_ns)
		return (false);
	if (then->ctime_s == now->ctime_s && then->ctime_ns == now->ctime_ns)
		return (true);
	return (then->nlink != now->nlink || then->mode != now->mode || then->uid != now->uid ||
		then->gid != now->gid);
}

static uint64_t
tick_ns(uint32_t fraction)
{
	return (fraction == 0 ? COARSE_NS : TICKS_NS);
}

/* True if t is more than `more` before `wall`; a time in the future is not. */
static bool
is_before(int64_t s, uint32_t ns, uint64_t wall, uint64_t more)
{
	uint64_t at;

	if (s < 0)
		return (true);
	if (__builtin_mul_overflow((uint64_t)s, NS_PER_S, &at) ||
	    __builtin_add_overflow(at, ns + more, &at))
		return (false);
	return (at < wall);
}

static bool
both_before(const struct io_version *v, uint64_t wall, uint64_t margin)
{
	return (is_before(v->mtime_s, v->mtime_ns, wall, tick_ns(v->mtime_ns) + margin) &&
		is_before(v->ctime_s, v->ctime_ns, wall, tick_ns(v->ctime_ns) + margin));
}

bool
io_version_is_old(const struct io_version *v, uint64_t read_wall)
{
	return (both_before(v, read_wall, IO_OTHER_CLOCK_NS));
}

bool
io_version_settled(const struct io_version *v, uint64_t read_wall, uint64_t watched, bool own_clock)
{
	uint64_t m = tick_ns(v->mtime_ns), c = tick_ns(v->ctime_ns);

	if (watched > (m > c ? m : c))
		return (true);
	return (both_before(v, read_wall, own_clock ? 0 : IO_OTHER_CLOCK_NS));
}

void
io_file_watch(struct io_file *f, const struct statx *stx)
{
	f->version = io_version_of(stx);
	f->dev = makedev(stx->stx_dev_major, stx->stx_dev_minor);
	f->ino = stx->stx_ino;
	f->watched_ns = io_now(f->io);
	f->watched = true;
}

/* A file that cannot be asked counts as unchanged: the read will show an error, if any. */
int
io_version_look(const struct io_version *then, int fd, int flags, struct io_version *now)
{
	struct statx stx;

	*now = *then;
	if (statx(fd, "", AT_EMPTY_PATH | flags, IO_OPEN_FACTS, &stx) < 0)
		return (0);
	*now = io_version_of(&stx);
	if (io_version_holds(then, now))
		return (0);
	return (now->size < then->size ? -ENODATA : -ETXTBSY);
}

int
io_file_look_now(struct io_file *f, struct io_version *now)
{
	int err;

	if (!f->watched)
		return (0);
	err = io_version_look(&f->version, f->fd, AT_STATX_DONT_SYNC, now);
	if (err == 0)
		f->version = *now; /* a new name, mode or owner is known the next time */
	else
		f->stale = true;
	return (err);
}

int
io_file_look(struct io_file *f)
{
	struct io_version now;

	return (io_file_look_now(f, &now));
}
