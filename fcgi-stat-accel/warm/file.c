/* file.c -- one file: in memory already, or opened by a thread and read.
 *
 *   io_open_hot() --> all there --------------------------------------------> over at once
 *        `---> IO_OPEN, with the first window --> short, or wanted no further --> done()
 *                         `---> IO_WARM, several windows at a time -----------> done(), the rest to behind.c
 */

#include "fcgi-stat-accel/warm/impl.h"

#include <errno.h>
#include "io/disk/hot.h"

#define PAGE 4096

/* Windows of a file that are on their way at a time.  Measured with 16 spindles of 8 ms for 128 KiB (plain threads: 251 MB/s), files of
 * 10 MB: one client gets 30, 57, 96, 151 MB/s with 1, 2, 4, 8 of them, sixteen clients 251 with each.  The kernel makes two
 * requests of each, so these are all 16 spindles; more would only make others wait. */
#define WINDOWS 8

struct window {
	struct io_op op;
	struct file_read *read;
	uint64_t at;			/* as in file_read */
	bool busy;
};

struct file_read {
	struct warm_file *owner;
	struct io_file	 *file;
	struct range_part part[RANGE_PARTS];	/* of the file, wanted before the answer and behind it */
	guint	 n;
	uint64_t at, end;		/* counted in the bytes of these: not asked for yet; wanted before the answer */
	uint64_t last_ns;		/* when the latest window came */
	guint	 flying;
	bool	 stop;			/* no more of them */
	struct window window[WINDOWS];
};

static uint64_t
plus(uint64_t a, uint64_t b)
{
	return (a + b < a ? UINT64_MAX : a + b);
}

static uint64_t
wanted_before(const struct warm_file *f)
{
	return (f->warm->conf->how == WARM_READ && f->want->n != 0 ? f->warm->conf->before : 0);
}

static uint64_t
wanted_behind(const struct warm_file *f)
{
	return (f->warm->conf->how != WARM_STAT && f->want->n != 0 ? f->warm->conf->behind : 0);
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
	struct io_hot ask = {
		.root = r->fd, .path = tail, .resolve = f->warm->roots.resolve,
		.look = f->warm->conf->how == WARM_STAT,
		.want = f->want, .bytes = plus(wanted_before(f), wanted_behind(f)),
	};
	int err = r->hot ? io_open_hot(&ask, &f->stx) : -EAGAIN;

	f->own_clock = r->hot;
	return (err == 0 ? only_regular(&f->stx) : err);
}

/* ---------------------------------------------------------------- reading */

/* What has not been asked for. */
static void
read_rest_behind(struct file_read *rd)
{
	struct warm_file *f = rd->owner;
	uint64_t skip = rd->at, len;

	for (guint i = 0; i < rd->n; i++) {
		len = rd->part[i].to - rd->part[i].from;
		if (skip < len)
			behind_add(&f->warm->behind, io_file_ref(rd->file), rd->part[i].from + skip, rd->part[i].to, f->client);
		skip -= MIN(skip, len);
	}
}

static void
read_over(struct file_read *rd)
{
	struct warm_file *f = rd->owner;

	if (rd->last_ns != 0)
		f->read_ns = rd->last_ns - (f->op.at.opened != 0 ? f->op.at.opened : f->op.at.end);
	f->cut |= f->err == 0 && rd->at < rd->end;
	if (f->err == 0 && (!f->left || f->late))
		read_rest_behind(rd);
	io_file_put(rd->file);
	f->read = NULL;
	g_free(rd);
	f->done(f);
}

static void window_done(struct io_op *);

/* No window crosses the end of a part. */
static uint64_t
next_bytes(const struct file_read *rd, uint32_t *len)
{
	const struct range_part *p = rd->part;
	uint64_t at = rd->at, off;

	for (; at >= p->to - p->from; p++)
		at -= p->to - p->from;
	off = p->from + at;
	*len = (uint32_t)MIN(MIN(rd->end - rd->at, p->to - off), IO_WINDOW - off % IO_WINDOW);
	return (off);
}

static void
window_begin(struct file_read *rd, struct window *w)
{
	w->busy = true;
	w->read = rd;
	op_init(&w->op, IO_WARM, window_done);
	w->op.client = rd->owner->client;
	w->op.file.file = rd->file;
	w->at = rd->at;
	w->op.file.off = next_bytes(rd, &w->op.file.len);
	rd->at += w->op.file.len;
	rd->flying++;
	op_submit(rd->owner->warm->io, &w->op);
}

static void
read_on(struct file_read *rd)
{
	for (guint i = 0; i < WINDOWS && rd->at < rd->end && !rd->stop; i++) {
		if (!rd->window[i].busy)
			window_begin(rd, &rd->window[i]);
	}
	if (rd->flying == 0)
		read_over(rd);
}

static void
window_done(struct io_op *op)
{
	struct window *w = container_of(op, struct window, op);
	struct file_read *rd = w->read;
	struct warm_file *f = rd->owner;

	w->busy = false;
	rd->flying--;
	if (op->res >= 0) {
		f->warm->stats->bytes_before += (uint64_t)op->res;
		rd->last_ns = MAX(rd->last_ns, op->at.end);
	}
	if (op->res == -ECANCELED)
		rd->at = MIN(rd->at, w->at);
	else if (op->res < 0 && f->err == 0)
		f->err = (int)op->res;
	else if (op->res < op->file.len) {		/* shorter than it was: nothing is behind that */
		rd->end = MIN(rd->end, w->at + (uint64_t)op->res);
		rd->n = 0;
	}
	rd->stop |= op->res < 0;
	read_on(rd);
}

/* A range begins on a page, so that its first bytes may be none that are wanted: one page more. */
static void
choose_bytes(struct file_read *rd)
{
	const struct warm_file *f = rd->owner;
	uint64_t before = wanted_before(f), sum = 0;

	rd->n = range_resolve(f->want, f->stx.stx_size, UINT64_MAX, rd->part);
	if (rd->n != 0 && rd->part[0].from != 0)
		before = plus(before, PAGE);
	rd->n = range_resolve(f->want, f->stx.stx_size, plus(before, wanted_behind(f)), rd->part);
	for (guint i = 0; i < rd->n; i++)
		sum += rd->part[i].to - rd->part[i].from;
	rd->end = MIN(before, sum);
	if (rd->n != 0 && rd->part[0].from == 0)
		rd->at = MIN(f->first.n, MIN(rd->part[0].to, rd->end));
}

static void
read_begin(struct warm_file *f, int fd)
{
	struct file_read *rd;
	struct io_file *file = io_file_new(f->warm->io, fd, f->stx.stx_size);

	if (file == NULL || f->err != 0) {
		f->err = file == NULL ? -ENOMEM : f->err;
		io_file_put(file);
		f->done(f);
		return;
	}
	f->read = rd = g_new0(struct file_read, 1);
	rd->owner = f;
	rd->file = file;
	choose_bytes(rd);
	rd->stop = f->left;
	read_on(rd);
}

/* ---------------------------------------------------------------- opening */

static uint64_t
since(uint64_t from, uint64_t to)
{
	return (to > from ? to - from : 0);
}

static void
note_times(struct warm_file *f)
{
	const struct io_stamps *at = &f->op.at;
	uint64_t opened = at->opened != 0 ? at->opened : at->end;

	f->queue_ns = since(at->submit, at->start);
	f->stat_ns = since(at->start, opened);
	f->read_ns = since(opened, at->end);
	f->warm->stats->bytes_before += f->first.n;
}

/* io/ says -EACCES of what is neither a file nor a directory, too. */
static int
open_error(const struct warm_file *f)
{
	int err = f->op.res < 0 ? (int)f->op.res : only_regular(&f->stx);

	return (err == -EACCES && f->stx.stx_mode != 0 ? only_regular(&f->stx) : err);
}

static bool open_below(struct warm_file *);

static void
opened(struct io_op *op)
{
	struct warm_file *f = container_of(op, struct warm_file, op);

	f->looking = false;
	if (op->res == -EXDEV) {
		f->root++;
		if (open_below(f))
			return;
	}
	note_times(f);
	f->err = open_error(f);
	f->cut = op->res == -ECANCELED;
	if (op->kind == IO_STAT || op->res < 0 || f->first.closed)
		f->done(f);
	else
		read_begin(f, (int)op->res);
}

/* The first that is known to be wanted; of the last bytes none is known. */
static uint64_t
first_byte(const struct range_set *want)
{
	uint64_t first = want->n != 0 ? RANGE_TAIL : 0;

	for (guint i = 0; i < want->n; i++)
		first = want->part[i].from == RANGE_TAIL ? MIN(first, 1) : MIN(first, want->part[i].from);
	return (first);
}

/* A thread reads the first window on its way, and closes what nobody wants more of. */
static void
ask_first(struct warm_file *f)
{
	uint64_t start = first_byte(f->want);
	bool first = wanted_before(f) != 0 && start == 0;
	bool more = plus(wanted_before(f), wanted_behind(f)) > (first ? IO_WINDOW : 0);

	if (first && f->want->n == 1 && f->want->part[0].to <= IO_WINDOW)
		more = false;
	f->first = (struct io_first){ .warm = first, .shut = UINT64_MAX };
	if (more)
		f->first.shut = first ? IO_WINDOW : CLAMP(start, 1, INT64_MAX);	/* an empty file has nothing, 0 means never */
}

/* False: no root is left to try. */
static bool
open_below(struct warm_file *f)
{
	const char *tail;
	const struct warm_root *r = roots_next(&f->warm->roots, f->path, &f->root, &tail);

	if (r == NULL)
		return (false);
	f->own_clock = r->hot;
	ask_first(f);
	op_init(&f->op, f->warm->conf->how == WARM_STAT ? IO_STAT : IO_OPEN, opened);
	f->op.client = f->client;
	f->op.open.root = r->fd;
	f->op.open.path = tail;
	f->op.open.resolve = f->warm->roots.resolve;
	f->op.open.stx = &f->stx;
	f->op.open.first = f->op.kind == IO_OPEN ? &f->first : NULL;
	f->looking = true;
	op_submit(f->warm->io, &f->op);
	return (true);
}

bool
file_begin(struct warm_file *f)
{
	const struct warm_root *r;
	const char *tail;

	f->asked_wall = io_wall_ns(f->warm->io);
	f->err = -EXDEV;
	f->root = 0;
	while (f->err == -EXDEV && (r = roots_next(&f->warm->roots, f->path, &f->root, &tail)) != NULL) {
		f->err = try_hot(f, r, tail);
		f->root += f->err == -EXDEV;
	}
	f->hot = f->err != -EAGAIN;
	return (f->hot || !open_below(f));
}

/* ---------------------------------------------------------------- giving up */

void
file_leave(struct warm_file *f, bool late)
{
	struct file_read *rd = f->read;

	f->left = true;
	f->late = late;
	if (f->looking)
		op_withdraw(f->warm->io, &f->op);
	if (rd == NULL)
		return;
	rd->stop = true;
	for (guint i = 0; i < WINDOWS; i++) {
		if (rd->window[i].busy)
			op_withdraw(f->warm->io, &rd->window[i].op);
	}
}

void
file_cancel(struct warm_file *f)
{
	f->left = true;
	if (f->looking)
		op_cancel(f->warm->io, &f->op);
	for (guint i = 0; f->read != NULL && i < WINDOWS; i++) {
		f->read->stop = true;
		if (f->read->window[i].busy)
			op_cancel(f->warm->io, &f->read->window[i].op);
	}
}

const char *
file_stage(const struct warm_file *f)
{
	static const char *const stage[] = { [IO_WAITS] = "queue", [IO_RUNS] = "stat", [IO_READS] = "read" };

	if (f->read != NULL)
		return ("read");
	return (f->looking ? stage[io_phase(f->warm->io, &f->op)] : NULL);
}
