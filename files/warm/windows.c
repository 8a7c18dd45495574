/* files/warm/windows.c -- the bytes of an open file: before the answer, then behind it.
 *
 *   before   up to WINDOWS of a file are in flight (IO_READ)
 *   behind   turn: [a][b][c] --> a window of a, by an idle thread --> [b][c][a]
 *
 * Behind the answer files take turns, and each has one window on its way.  If all threads are
 * busy there is a pause.
 */
#include "files/warm/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define PAGE 4096

/* Windows of a file that are on their way at a time.  Measured with 16 spindles of 8 ms for 128 KiB
 * (plain threads: 251 MB/s), files of 10 MB: one client gets 30, 57, 96, 151 MB/s with 1, 2, 4, 8
 * of them, sixteen clients 251 with each.  The kernel makes two requests of each, so these are all
 * 16 spindles; more would only delay others. */
#define WINDOWS 8

/* Behind the answer. */
#define FILES    64 /* descriptors kept open for this */
#define FLYING   4  /* windows of all files: 4 of 8 ms each are 128 MB/s */
#define PAUSE_MS 20
#define SKIP     64 /* windows checked at a time: 2 us each */

struct window {
	struct io_op op;
	struct warm_read *read;
	uint64_t at; /* as in warm_read */
	bool busy;
};

struct warm_read {
	struct warm *warm;
	struct warm_file *owner; /* NULL: behind the answer */
	struct list link;        /* in behind.turn or behind.flying */
	struct io_file *file;
	uint32_t client;
	/* Parts of the file needed before the answer and behind it. */
	struct range_part part[RANGE_PARTS];
	guint n;
	/* Positions in the bytes of these parts: next to read; needed now; needed in all. */
	uint64_t at, end, all;
	uint64_t last_ns; /* when the last window came */
	guint flying;
	bool stop; /* no more windows */
	struct window window[WINDOWS];
};

/* No window crosses the end of a part. */
static uint64_t
next_bytes(const struct warm_read *rd, uint32_t *len)
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
window_begin(struct warm_read *rd, struct window *w, void (*done)(struct io_op *))
{
	w->busy = true;
	w->read = rd;
	op_init(&w->op, IO_READ, done);
	w->op.only_warm = true;
	w->op.spare = rd->owner == NULL;
	w->op.client = rd->client;
	w->op.file.file = rd->file;
	w->at = rd->at;
	w->op.file.off = next_bytes(rd, &w->op.file.len);
	rd->at += w->op.file.len;
	rd->flying++;
	op_submit(rd->warm->io, &w->op);
}

static struct warm_read *
window_end(struct io_op *op)
{
	struct window *w = container_of(op, struct window, op);
	struct warm_read *rd = w->read;

	w->busy = false;
	rd->flying--;
	if (op->res == -ECANCELED || (op->res == -EAGAIN && op->spare)) {
		rd->at = MIN(rd->at, w->at);
	} else if (op->res < op->file.len) { /* the file is shorter than it was */
		rd->end = MIN(rd->end, w->at + (uint64_t)MAX(op->res, 0));
		rd->all = rd->end;
	}
	return (rd);
}

static void
read_free(struct warm_read *rd)
{
	io_file_put(rd->file);
	g_free(rd);
}

/* ---------------------------------------------------------------- behind the answer */

static void behind_go(struct warm_behind *);

static void
behind_drop(struct warm_behind *b, struct warm_read *rd)
{
	list_del(&rd->link);
	b->n--;
	read_free(rd);
}

/* The file was removed, or ends before the bytes that are left.  The look never waits. */
static bool
is_gone(const struct warm_read *rd)
{
	struct statx stx;
	uint32_t len;

	if (statx(rd->file->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK | STATX_SIZE,
		&stx) < 0)
		return (true);
	return (stx.stx_nlink == 0 || stx.stx_size <= next_bytes(rd, &len));
}

static void
pause_done(struct io_op *op)
{
	struct warm_behind *b = container_of(op, struct warm_behind, pause);

	b->paused = false;
	behind_go(b);
}

static void
behind_pause(struct warm *wm)
{
	struct warm_behind *b = &wm->behind;

	if (b->paused)
		return;
	b->paused = true;
	op_init(&b->pause, IO_TIMER, pause_done);
	b->pause.deadline_ms = PAUSE_MS;
	op_submit(wm->io, &b->pause);
}

static void
behind_done(struct io_op *op)
{
	struct warm_read *rd = window_end(op);
	struct warm_behind *b = &rd->warm->behind;

	b->nflying--;
	list_del(&rd->link);
	list_add_tail(&b->turn, &rd->link);
	if (op->res == -EAGAIN)
		behind_pause(rd->warm);
	else if (op->res > 0)
		count_add(rd->warm->counters, accel_bytes_behind, (uint64_t)op->res);
	if ((op->res <= 0 && op->res != -EAGAIN) || rd->at >= rd->end)
		behind_drop(b, rd);
	behind_go(b);
}

/* Bytes that are in memory need no thread. */
static void
skip_warm(struct warm_read *rd)
{
	uint64_t off;
	uint32_t len;

	for (guint i = 0; i < SKIP && rd->at < rd->end; i++, rd->at += len) {
		off = next_bytes(rd, &len);
		if (!io_file_counted(rd->file, off, len))
			return;
	}
}

static void
behind_go(struct warm_behind *b)
{
	while (!b->paused && b->nflying < FLYING && !list_empty(&b->turn)) {
		struct warm_read *rd = list_entry(b->turn.next, struct warm_read, link);

		skip_warm(rd);
		if (rd->at >= rd->end || is_gone(rd)) {
			behind_drop(b, rd);
			continue;
		}
		list_del(&rd->link);
		list_add_tail(&b->flying, &rd->link);
		b->nflying++;
		window_begin(rd, &rd->window[0], behind_done);
	}
}

static void
behind_add(struct warm_behind *b, struct warm_read *rd)
{
	if (b->n >= FILES) {
		count(rd->warm->counters, accel_behind_skipped);
		read_free(rd);
		return;
	}
	rd->owner = NULL;
	rd->end = rd->all;
	list_add_tail(&b->turn, &rd->link);
	b->n++;
	behind_go(b);
}

void
behind_cancel(struct warm *wm)
{
	struct warm_behind *b = &wm->behind;
	struct warm_read *rd;

	list_each(rd, &b->turn, link)
		behind_drop(b, rd);
	list_each(rd, &b->flying, link)
		op_cancel(wm->io, &rd->window[0].op);
	if (b->paused)
		op_cancel(wm->io, &b->pause);
}

/* ---------------------------------------------------------------- before the answer */

static void
read_over(struct warm_read *rd)
{
	struct warm_file *f = rd->owner;

	if (rd->last_ns != 0)
		f->found.read_ns =
		    rd->last_ns - (f->op.at.opened != 0 ? f->op.at.opened : f->op.at.end);
	f->cut |= f->found.err == 0 && rd->at < rd->end;
	f->read = NULL;
	if (f->found.err == 0 && (!f->left || f->late) && rd->at < rd->all)
		behind_add(&rd->warm->behind, rd);
	else
		read_free(rd);
	f->done(f);
}

static void before_done(struct io_op *);

static void
read_on(struct warm_read *rd)
{
	for (guint i = 0; i < WINDOWS && rd->at < rd->end && !rd->stop; i++) {
		if (!rd->window[i].busy)
			window_begin(rd, &rd->window[i], before_done);
	}
	if (rd->flying == 0)
		read_over(rd);
}

static void
before_done(struct io_op *op)
{
	struct warm_read *rd = window_end(op);
	struct warm_file *f = rd->owner;

	if (op->res >= 0) {
		count_add(rd->warm->counters, accel_bytes_before, (uint64_t)op->res);
		rd->last_ns = MAX(rd->last_ns, op->at.end);
	} else {
		rd->stop = true;
		if (op->res != -ECANCELED && f->found.err == 0)
			f->found.err = (int)op->res;
	}
	read_on(rd);
}

/* A range begins on a page, so up to a page of its bytes is not wanted: one page more. */
static void
choose_bytes(struct warm_read *rd, uint64_t before, uint64_t behind)
{
	const struct warm_file *f = rd->owner;
	uint64_t size = f->found.stx.stx_size;

	rd->n = range_resolve(f->want, size, UINT64_MAX, rd->part);
	if (rd->n != 0 && rd->part[0].from != 0)
		before = warm_sum(before, PAGE);
	rd->n = range_resolve(f->want, size, warm_sum(before, behind), rd->part);
	for (guint i = 0; i < rd->n; i++)
		rd->all += rd->part[i].to - rd->part[i].from;
	rd->end = MIN(before, rd->all);
	if (rd->n != 0 && rd->part[0].from == 0)
		rd->at = MIN(f->first.n, MIN(rd->part[0].to, rd->end));
}

void
read_begin(struct warm_file *f, int fd, uint64_t before, uint64_t behind)
{
	struct io_file *file = io_file_new(f->warm->io, fd, f->found.stx.stx_size);
	struct warm_read *rd;

	if (file == NULL || f->found.err != 0) {
		f->found.err = file == NULL ? -ENOMEM : f->found.err;
		io_file_put(file);
		f->done(f);
		return;
	}
	f->read = rd = g_new0(struct warm_read, 1);
	rd->warm = f->warm;
	rd->owner = f;
	rd->file = file;
	rd->client = f->client;
	list_init(&rd->link);
	choose_bytes(rd, before, behind);
	rd->stop = f->left;
	read_on(rd);
}

void
read_stop(struct warm_read *rd, void (*stop)(struct io *, struct io_op *))
{
	rd->stop = true;
	for (guint i = 0; i < WINDOWS; i++)
		if (rd->window[i].busy)
			stop(rd->warm->io, &rd->window[i].op);
}
