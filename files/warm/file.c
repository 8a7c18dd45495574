/* files/warm/file.c -- one file: in memory already, or opened by a thread.
 *
 *   io_open_hot() --> all there ------------------------------------------> over at once
 *        `---> IO_OPEN, with the first window --> short, or no more wanted --> done()
 *                         `---> IO_READ, several windows at a time ---------> done()
 */

#include "files/warm/impl.h"

#include <errno.h>
#include "base/clock.h"
#include "io/disk/hot.h"
#include "io/disk/pin.h"

/* On FUSE without FOPEN_KEEP_CACHE an open(2) drops the bytes of the file from memory, and so does
 * one of NFS after a change.  What is local has been read by the look-up. */
static bool
stays_warm(const struct warm_file *f)
{
	return (f->gives && io_facts_are_local(&f->found.stx));
}

static struct warm_bytes
wanted(const struct warm_file *f)
{
	const struct warm_conf *conf = f->warm->conf;
	bool read = conf->how == WARM_READ;

	if (f->want->n == 0 || conf->how == WARM_STAT || stays_warm(f))
		return ((struct warm_bytes){ 0 });
	if (f->pins)
		return ((struct warm_bytes){ .before = MIN(conf->before, io_pins_file_max()) });
	return (
	    (struct warm_bytes){ read ? conf->before : 0, read ? conf->soon : 0, conf->behind });
}

static int
only_regular(const struct statx *stx)
{
	if (S_ISREG(stx->stx_mode))
		return (0);
	return (S_ISDIR(stx->stx_mode) ? -EISDIR : -EPERM);
}

/* ---------------------------------------------------------------- in memory */

static int
try_hot(struct warm_file *f, const struct warm_root *r, const char *tail)
{
	struct warm_bytes b = wanted(f);
	struct io_hot ask = {
		.root = r->dir.fd,
		.path = tail,
		.resolve = f->warm->roots.resolve,
		.look = f->warm->conf->how == WARM_STAT,
		.want = f->want,
		.bytes = warm_bytes_all(&b),
	};
	int err = r->hot ? io_open_hot(&ask, &f->found.stx) : -EAGAIN;

	f->own_clock = r->hot;
	return (err == 0 ? only_regular(&f->found.stx) : err);
}

/* ---------------------------------------------------------------- opening */

static void
note_times(struct warm_file *f)
{
	const struct io_stamps *at = &f->op.at;
	uint64_t opened = at->opened != 0 ? at->opened : at->end;

	f->found.queue_ns = clock_between(at->submit, at->start);
	f->found.stat_ns = clock_between(at->start, opened);
	f->found.read_ns = clock_between(opened, at->end);
	f->found.awake = at->awake;
	if (!f->pins)
		count_add(f->warm->counters, bytes_before, f->first.n);
}

/* io/ also answers -EACCES for a path that is neither a file nor a directory. */
static int
open_error(const struct warm_file *f)
{
	int err = f->op.res < 0 ? (int)f->op.res : only_regular(&f->found.stx);

	return (err == -EACCES && f->found.stx.stx_mode != 0 ? only_regular(&f->found.stx) : err);
}

static bool open_below(struct warm_file *);

/* The windows of a file that is given are read through a second descriptor of the same open(2). */
static void
open_given(struct warm_file *f)
{
	struct warm_bytes b = wanted(f);
	int fd;

	f->fd = (int)f->op.res;
	if (f->found.err != 0 || f->left || f->first.n >= f->found.stx.stx_size ||
	    f->first.n >= warm_bytes_all(&b)) {
		f->done(f);
		return;
	}
	fd = io_fd_dup(f->fd);
	if (fd >= 0) {
		read_begin(f, fd, &b);
		return;
	}
	f->found.err = fd;
	f->done(f);
}

static void
opened(struct io_op *op)
{
	struct warm_file *f = container_of(op, struct warm_file, op);
	struct warm_bytes b = wanted(f);

	f->looking = false;
	if (op->res == -EXDEV) {
		f->root++;
		if (open_below(f))
			return;
	}
	note_times(f);
	f->found.err = open_error(f);
	f->cut = op->res == -ECANCELED;
	if (f->gives && op->res >= 0)
		open_given(f);
	else if (op->only_stat || op->res < 0 || f->first.closed)
		f->done(f);
	else
		read_begin(f, (int)op->res, &b);
}

/* The first byte that is known to be wanted; the place of the last bytes is not known. */
static uint64_t
first_byte(const struct range_set *want)
{
	uint64_t first = want->n != 0 ? RANGE_TAIL : 0;

	for (guint i = 0; i < want->n; i++)
		first = want->part[i].from == RANGE_TAIL ? MIN(first, 1)
							 : MIN(first, want->part[i].from);
	return (first);
}

/* A thread reads a short file, or the only window that is needed now, and closes the file if no
 * more of it is wanted. */
static void
ask_first(struct warm_file *f)
{
	uint64_t start = first_byte(f->want);
	struct warm_bytes b = wanted(f);
	bool first = MAX(b.before, b.soon) != 0 && start == 0;
	bool more = warm_bytes_all(&b) > (first ? IO_WINDOW : 0);

	if (first && f->want->n == 1 && f->want->part[0].to <= IO_WINDOW)
		more = false;
	f->first = (struct io_first){ .warm = first, .shut = UINT64_MAX };
	if (b.before > IO_WINDOW || b.soon > b.before)
		f->first.warm_most = IO_WINDOW; /* the rest of a longer file is read in its turn */
	if (f->gives)
		f->first.shut = 0;
	else if (more)
		/* an empty file has no bytes, and 0 means never */
		f->first.shut = first ? IO_WINDOW : CLAMP(start, 1, INT64_MAX);
}

/* Opens the file below the next root.  False: no root is left to try. */
static bool
open_below(struct warm_file *f)
{
	const char *tail;
	const struct warm_root *r = roots_next(&f->warm->roots, f->path, &f->root, &tail);

	if (r == NULL)
		return (false);
	f->own_clock = r->hot;
	ask_first(f);
	op_init(&f->op, IO_OPEN, opened);
	f->op.only_stat = f->warm->conf->how == WARM_STAT && !f->gives;
	f->op.client = f->client;
	f->op.urgent = f->pins;
	f->op.open.root = r->dir.fd;
	f->op.open.path = tail;
	f->op.open.resolve = f->warm->roots.resolve;
	f->op.open.stx = &f->found.stx;
	f->op.open.first = f->op.only_stat || (f->gives && r->hot) ? NULL : &f->first;
	if (f->gives)
		f->op.open.resolve |= IO_GIVEN | (r->hot ? IO_LOCAL : 0);
	f->looking = true;
	op_submit(f->warm->io, &f->op);
	return (true);
}

bool
file_open(struct warm_file *f)
{
	return (open_below(f));
}

bool
file_begin(struct warm_file *f)
{
	const struct warm_root *r;
	const char *tail;

	f->asked_wall = io_wall_ns(f->warm->io);
	f->found.err = -EXDEV;
	f->root = 0;
	while (f->found.err == -EXDEV &&
	       (r = roots_next(&f->warm->roots, f->path, &f->root, &tail)) != NULL) {
		f->found.err = try_hot(f, r, tail);
		f->root += f->found.err == -EXDEV;
	}
	f->found.hot = f->found.err != -EAGAIN;
	return (f->found.hot || !open_below(f));
}

void
file_stop(struct warm_file *f, void (*stop)(struct io *, struct io_op *), bool late)
{
	f->left = true;
	f->late = late;
	if (f->looking)
		stop(f->warm->io, &f->op);
	if (f->read != NULL)
		read_stop(f->read, stop);
}

const char *
file_stage(const struct warm_file *f)
{
	static const char
	    *const stage[] = { [IO_WAITS] = "queue", [IO_RUNS] = "stat", [IO_READS] = "read" };

	if (f->read != NULL)
		return ("read");
	return (f->looking ? stage[io_phase(f->warm->io, &f->op)] : NULL);
}
