/* io/demand.c -- what is known of a file's windows, and which of them are held in memory.
 *
 *   wanted once        nothing
 *   wanted again       a thread reads the window into the hot set (io/hotset.h)
 *   read by a thread   it should be in the page cache for a while: its next windows are worth
 *                      reading ahead, and a miss means that its pages have left
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include "io/disk/pools_impl.h"
#include "io/engine.h"
#include "io/hotset.h"

/* bytes that a thread read in this time should be in the page cache */
#define READ_NS   NS_PER_S
#define MARKED_NS (23 * 3600 * NS_PER_S) /* relatime writes an access time once a day */
#define SEEN      1024u /* windows remembered per file: 256 MiB; later ones replace earlier ones */

/* By then the kernel has written a dirty page back (dirty_expire_centisecs), and a writer that has
 * mapped the file leaves a new time. */
#define DIRTY_NS (35 * NS_PER_S)

/* A slot of a file's table, about one window.  The slot of a window is the number of the window
 * modulo the size of the table. */
struct io_seen {
	uint64_t nr;
	uint64_t from, to, read_ns; /* what a thread read of it, and when; 0: no bytes */
	uint64_t wanted_ns;         /* when a client last wanted it; 0: never */
	bool filling;               /* a thread reads it into the hot set */
};

/* ---------------------------------------------------------------- what was seen */

static unsigned
windows(const struct io_file *f)
{
	uint64_t n = (f->size + IO_WINDOW - 1) / IO_WINDOW;

	return (n < SEEN && !f->grows ? n > 0 ? (unsigned)n : 1 : SEEN);
}

/* The file's slot for the window at off; it is emptied first if it was about another window.  NULL:
 * no memory. */
static struct io_seen *
seen(struct io_file *f, uint64_t off)
{
	struct io_seen *w;

	if (f->seen == NULL)
		f->seen = calloc(windows(f), sizeof(*f->seen));
	if (f->seen == NULL)
		return (NULL);
	w = &f->seen[off / IO_WINDOW % windows(f)];
	if (w->nr != off / IO_WINDOW)
		*w = (struct io_seen){ .nr = off / IO_WINDOW };
	return (w);
}

static uint64_t
window_end(uint64_t off)
{
	return ((off / IO_WINDOW + 1) * IO_WINDOW);
}

/* from..to is in one window. */
static void
prove(struct io_file *f, uint64_t from, uint64_t to)
{
	struct io_seen *w = seen(f, from);

	if (w == NULL)
		return;
	if (w->from <= from && from <= w->to && w->read_ns != 0) {
		w->to = to > w->to ? to : w->to; /* goes on */
	} else {
		w->from = from;
		w->to = to;
	}
	w->read_ns = io_now(f->io);
}

void
io_file_proved(struct io_file *f, uint64_t off, uint64_t len)
{
	uint64_t end = off + len, to;

	if (len != 0)
		io_file_marked(f);
	for (; off < end; off = to) {
		to = window_end(off) < end ? window_end(off) : end;
		prove(f, off, to);
	}
}

void
io_file_marked(struct io_file *f)
{
	f->marked_ns = io_now(f->io);
}

bool
io_file_was_read(struct io_file *f, uint64_t off)
{
	const struct io_seen *w = seen(f, off);

	return (w != NULL && w->read_ns != 0 && io_now(f->io) < w->read_ns + READ_NS);
}

/* A thread read it a moment ago. */
void
io_file_missed(struct io_file *f, uint64_t off)
{
	struct io_seen *w = seen(f, off);

	if (w != NULL && w->from <= off && off < w->to && io_file_was_read(f, off))
		count(f->io->counters, pages_gone);
}

bool
io_file_may_look(struct io_file *f)
{
	return (!f->no_nowait && f->marked_ns != 0 && io_now(f->io) < f->marked_ns + MARKED_NS &&
		io_device_is_fit(f->io, io_file_dev(f)));
}

enum io_lane
io_file_read_lane(struct io_file *f, uint64_t off, uint64_t len)
{
	const struct io_seen *w = seen(f, off);
	bool was = w != NULL && w->read_ns != 0 && w->from <= off && off + len <= w->to;

	return (was && io_pages_counted(f->fd, off, len) == 1 ? LANE_REREAD : LANE_READ);
}

/* ---------------------------------------------------------------- windows held in memory */

/* A thread reads a window into the hot set, if the file still has this version. */
struct fill_job {
	struct io_job job;
	struct hotset *hotset;
	struct held_key key;
	struct io_version version;
	uint64_t interval, watched_ns;
	unsigned dropped;
	bool filled;
};

static bool
is_version(const struct fill_job *fj)
{
	struct io_version now;

	return (io_version_look(&fj->version, fj->job.file->fd, 0, &now) == 0);
}

static void
fill_run(struct io_job *j)
{
	struct fill_job *fj = container_of(j, struct fill_job, job);
	uint64_t wall = clock_coarse_ns(), now = clock_mono_ns(), until = UINT64_MAX;
	struct iovec iov[HOTSET_PIECES];
	struct held *w;
	int n;

	if (!is_version(fj) || !io_version_settled(&fj->version, wall, now - fj->watched_ns,
				   io_fd_is_local(j->file->fd)))
		return;
	w = hotset_get(fj->hotset, &fj->key, &fj->version, now);
	if (w != NULL) { /* another worker has read it */
		hotset_put(w);
		return;
	}
	w = hotset_room(fj->hotset, j->len, fj->interval, now, &fj->dropped);
	if (w == NULL)
		return;
	n = held_iov(w, 0, iov, HOTSET_PIECES);
	io_will_need(j->file->fd, j->off, j->off + j->len);
	if (preadv(j->file->fd, iov, n, (off_t)j->off) == (ssize_t)j->len && is_version(fj)) {
		if (io_pages_dirty(j->file->fd, j->off, j->len))
			until = now + DIRTY_NS;
		hotset_add(w, &fj->key, &fj->version, now, until);
		fj->filled = true;
	} else {
		hotset_put(w);
	}
}

static void
fill_finish(struct io_job *j)
{
	struct fill_job *fj = container_of(j, struct fill_job, job);
	struct io_seen *w = seen(j->file, j->off);

	if (w != NULL)
		w->filling = false;
	if (fj->filled)
		count(j->io->counters, hotset_filled);
	count_add(j->io->counters, hotset_evicted, fj->dropped);
	io_job_free(j);
}

static uint32_t
window_len(const struct io_file *f, uint64_t off)
{
	return ((uint32_t)(f->size - off < IO_WINDOW ? f->size - off : IO_WINDOW));
}

/* Lets an idle thread read the window into the hot set; no request waits for it. */
static void
fill(struct io_file *f, struct hotset *hs, struct io_seen *w, const struct held_key *key)
{
	uint64_t off = w->nr * IO_WINDOW, now = io_now(f->io);
	struct fill_job *fj;

	if (w->filling || off >= f->size || !hotset_wants(hs, window_len(f, off), now))
		return;
	fj = calloc(1, sizeof(*fj));
	if (fj == NULL)
		return;
	io_job_init(&fj->job, f->io, NULL);
	fj->job.run = fill_run;
	fj->job.finish = fill_finish;
	fj->job.lane = LANE_READ;
	fj->job.spare = true; /* hot windows need no disk, and will be wanted again */
	io_job_set_file(&fj->job, f, off, window_len(f, off));
	fj->hotset = hs;
	fj->key = *key;
	fj->version = f->version;
	fj->interval = now - w->wanted_ns;
	fj->watched_ns = f->watched_ns;
	w->filling = true;
	(void)io_job_push(&fj->job);
}

static struct hotset *
hotset_of(const struct io *io)
{
	return (io->pools != NULL ? io->pools->hotset : NULL);
}

struct held *
io_file_held(struct io_file *f, uint64_t off)
{
	struct hotset *hs = hotset_of(f->io);
	struct held_key key = { io_file_dev(f), f->ino, off / IO_WINDOW };
	struct io_seen *seen_as;
	struct held *w;

	if (hs == NULL || !f->watched || f->grows || f->stale)
		return (NULL);
	w = hotset_get(hs, &key, &f->version, io_now(f->io));
	if (w != NULL)
		return (w);
	seen_as = seen(f, off);
	if (seen_as == NULL)
		return (NULL);
	if (seen_as->wanted_ns != 0)
		fill(f, hs, seen_as, &key);
	seen_as->wanted_ns = io_now(f->io);
	return (NULL);
}
