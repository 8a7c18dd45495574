/* warm_file.c -- one file: in memory already, or opened by a thread and read.
 *
 *   io_open_hot() --> all there --------------------------------------------> over at once
 *        `---> IO_OPEN, with the first window --> short, or wanted no further --> done()
 *                         `---> IO_WARM, several windows at a time -----------> done(), the rest to warm_behind.c
 */

#include "fcgi-stat-accel/warm_impl.h"

#include <errno.h>
#include "io/hot.h"

#define PAGE 4096

/* Windows of a file that are on their way at a time.  Measured with 16 spindles of 8 ms for 128 KiB (plain threads: 251 MB/s), files of
 * 10 MB: one client gets 30, 57, 96, 151 MB/s with 1, 2, 4, 8 of them, sixteen clients 251 with each.  The kernel makes two
 * requests of each, so these are all 16 spindles; more would only make others wait. */
#define WINDOWS 8

struct window {
	struct io_op op;
	struct file_read *read;
	bool busy;
};

struct file_read {
	struct warm_file *owner;
	struct io_file	 *file;
	uint64_t at, end;		/* wanted before the answer, and not asked for yet */
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
	return (f->warm->conf->how == WARM_READ ? f->warm->conf->before : 0);
}

static uint64_t
wanted_behind(const struct warm_file *f)
{
	return (f->warm->conf->how != WARM_STAT ? f->warm->conf->behind : 0);
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
		.from = f->from, .bytes = plus(wanted_before(f), wanted_behind(f)),
	};
	int err = r->hot ? io_open_hot(&ask, &f->stx) : -EAGAIN;

	return (err == 0 ? only_regular(&f->stx) : err);
}

/* ---------------------------------------------------------------- reading */

static void
read_over(struct file_read *rd)
{
	struct warm_file *f = rd->owner;
	uint64_t end = MIN(plus(rd->end, wanted_behind(f)), f->stx.stx_size);

	if (rd->last_ns != 0)
		f->read_ns = rd->last_ns - (f->op.at.opened != 0 ? f->op.at.opened : f->op.at.end);
	f->cut |= f->err == 0 && rd->at < rd->end;
	if (f->err == 0 && rd->at < end && (!f->left || f->late))
		behind_add(&f->warm->behind, rd->file, rd->at, end, f->client);
	else
		io_file_put(rd->file);
	f->read = NULL;
	g_free(rd);
	f->done(f);
}

static void window_done(struct io_op *);

static void
window_begin(struct file_read *rd, struct window *w)
{
	w->busy = true;
	w->read = rd;
	io_op_init(&w->op, IO_WARM, window_done);
	w->op.client = rd->owner->client;
	w->op.file.file = rd->file;
	w->op.file.off = rd->at;
	w->op.file.len = (uint32_t)MIN(rd->end - rd->at, IO_WINDOW - rd->at % IO_WINDOW);
	rd->at += w->op.file.len;
	rd->flying++;
	io_submit(rd->owner->warm->io, &w->op);
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
		rd->at = MIN(rd->at, op->file.off);
	else if (op->res < 0 && f->err == 0)
		f->err = (int)op->res;
	else if (op->res < op->file.len)
		rd->end = MIN(rd->end, op->file.off + (uint64_t)op->res);	/* shorter than it was */
	rd->stop |= op->res < 0;
	read_on(rd);
}

/* From the first page of a range that does not begin on one. */
static uint64_t
read_end(const struct warm_file *f)
{
	uint64_t end = plus(plus(f->from, wanted_before(f)), f->from != 0 ? PAGE : 0);

	return (MIN(end, f->stx.stx_size));
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
	rd->end = read_end(f);
	rd->stop = f->left;
	rd->at = MIN(f->from == 0 ? f->first.n : f->from, rd->end);
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

/* A thread reads the first window on its way, and closes what nobody wants more of. */
static void
ask_first(struct warm_file *f)
{
	bool first = wanted_before(f) != 0 && f->from == 0;
	bool more = wanted_behind(f) != 0 || wanted_before(f) > (first ? IO_WINDOW : 0);

	f->first = (struct io_first){ .warm = first, .shut = UINT64_MAX };
	if (more)
		f->first.shut = first ? IO_WINDOW : MAX(f->from, 1);	/* an empty file has nothing, 0 means never */
}

/* False: no root is left to try. */
static bool
open_below(struct warm_file *f)
{
	const char *tail;
	const struct warm_root *r = roots_next(&f->warm->roots, f->path, &f->root, &tail);

	if (r == NULL)
		return (false);
	ask_first(f);
	io_op_init(&f->op, f->warm->conf->how == WARM_STAT ? IO_STAT : IO_OPEN, opened);
	f->op.client = f->client;
	f->op.open.root = r->fd;
	f->op.open.path = tail;
	f->op.open.resolve = f->warm->roots.resolve;
	f->op.open.stx = &f->stx;
	f->op.open.first = f->op.kind == IO_OPEN ? &f->first : NULL;
	f->looking = true;
	io_submit(f->warm->io, &f->op);
	return (true);
}

bool
file_begin(struct warm_file *f)
{
	const struct warm_root *r;
	const char *tail;

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
		io_withdraw(f->warm->io, &f->op);
	if (rd == NULL)
		return;
	rd->stop = true;
	for (guint i = 0; i < WINDOWS; i++) {
		if (rd->window[i].busy)
			io_withdraw(f->warm->io, &rd->window[i].op);
	}
}

void
file_cancel(struct warm_file *f)
{
	f->left = true;
	if (f->looking)
		io_cancel(f->warm->io, &f->op);
	for (guint i = 0; f->read != NULL && i < WINDOWS; i++) {
		f->read->stop = true;
		if (f->read->window[i].busy)
			io_cancel(f->warm->io, &f->read->window[i].op);
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
