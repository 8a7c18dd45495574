/* files/warm/windows.c -- the bytes of an open file: before the answer, then after it.
 *
 *   turn     before: needed for the answer --> answer --> soon: read while the file has its turn
 *   behind   the rest, by idle threads
 *
 * order.c decides whose window is next.  If all threads are busy there is a pause after the
 * answer.
 */
#include "files/warm/read.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define PAGE 4096
#define SKIP 64 /* windows checked at a time: 2 us each */

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

static void window_done(struct io_op *);

static void
window_begin(struct warm_read *rd, struct window *w)
{
	w->busy = true;
	w->read = rd;
	op_init(&w->op, IO_READ, window_done);
	w->op.only_warm = true;
	w->op.spare = rd->place == READ_BEHIND;
	w->op.client = rd->client;
	w->op.file.file = rd->file;
	w->at = rd->at;
	w->op.file.off = next_bytes(rd, &w->op.file.len);
	rd->at += w->op.file.len;
	rd->flying++;
	order_began(w);
	op_submit(rd->warm->io, &w->op);
}

void
read_window(struct warm_read *rd)
{
	struct window *w = rd->window;

	while (w->busy)
		w++;
	window_begin(rd, w);
}

static struct warm_read *
window_end(struct io_op *op)
{
	struct window *w = container_of(op, struct window, op);
	struct warm_read *rd = w->read;

	w->busy = false;
	rd->flying--;
	order_ended(w);
	if (op->res == -ECANCELED || (op->res == -EAGAIN && op->spare)) {
		rd->at = MIN(rd->at, w->at);
	} else if (op->res < op->file.len) { /* the file is shorter than it was */
		rd->end = MIN(rd->end, w->at + (uint64_t)MAX(op->res, 0));
		rd->soon = rd->all = rd->end;
	}
	return (rd);
}

static void
read_free(struct warm_read *rd)
{
	io_file_put(rd->file);
	g_free(rd);
}

/* ---------------------------------------------------------------- after the answer */

void
read_drop(struct warm_read *rd)
{
	order_leave(rd);
	read_free(rd);
}

static void
read_behind(struct warm_read *rd)
{
	order_leave(rd);
	rd->end = rd->all;
	rd->stop = false;
	if (order_behind(rd))
		return;
	count(rd->warm->counters, behind_skipped);
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

/* `at` went back for a window that no thread took; later windows are still on their way. */
static bool
is_flying(const struct warm_read *rd, uint64_t at)
{
	for (guint i = 0; i < WINDOWS; i++)
		if (rd->window[i].busy && rd->window[i].at == at)
			return (true);
	return (false);
}

/* Bytes that are in memory need no thread. */
static void
skip_warm(struct warm_read *rd)
{
	uint64_t off;
	uint32_t len;

	for (guint i = 0; i < SKIP && rd->at < rd->end; i++, rd->at += len) {
		off = next_bytes(rd, &len);
		if (!is_flying(rd, rd->at) && !io_file_counted(rd->file, off, len))
			return;
	}
}

/* Nothing is on its way, and nothing is left of this part. */
static void
next_part(struct warm_read *rd)
{
	if (!rd->stop && rd->at < rd->all && rd->place != READ_BEHIND)
		read_behind(rd);
	else
		read_drop(rd);
}

static bool
answered_ready(struct warm_read *rd)
{
	if (rd->at < rd->end)
		skip_warm(rd);
	rd->stop |= rd->at < rd->end && is_gone(rd);
	if (rd->flying == 0 && (rd->stop || rd->at >= rd->end)) {
		next_part(rd);
		return (false);
	}
	return (!rd->stop && rd->at < rd->end);
}

/* The answer comes when a window comes back, so one window is read even if no byte is missing any
 * more. */
static void
skip_not_lost(struct warm_read *rd)
{
	uint64_t at = rd->at;

	skip_warm(rd);
	if (rd->at >= rd->end && rd->flying == 0)
		rd->at = at;
}

bool
read_ready(struct warm_read *rd)
{
	if (rd->flying == WINDOWS || rd->stop)
		return (false);
	if (rd->owner == NULL)
		return (answered_ready(rd));
	if (rd->again && rd->at < rd->end)
		skip_not_lost(rd);
	return (rd->at < rd->end);
}

/* ---------------------------------------------------------------- before the answer */

static bool
in_turn(const struct warm_read *rd)
{
	return (rd->place == READ_TURN || rd->place == READ_BRIEF);
}

/* The answer.  The file may be gone afterwards, and so may rd. */
static void
read_over(struct warm_read *rd)
{
	struct warm_file *f = rd->owner;

	if (rd->last_ns != 0)
		f->found.read_ns =
		    rd->last_ns - (f->op.at.opened != 0 ? f->op.at.opened : f->op.at.end);
	f->cut |= f->found.err == 0 && rd->at < rd->end;
	f->read = NULL;
	rd->owner = NULL;
	if (f->found.err != 0 || (f->left && !f->late) || rd->at >= rd->all)
		read_drop(rd);
	else if (in_turn(rd) && !f->left && rd->at < rd->soon)
		rd->end = rd->soon;
	else
		read_behind(rd);
	f->done(f);
}

void
read_turn(struct warm_read *rd)
{
	if (rd->owner != NULL && rd->at >= rd->end && rd->flying == 0)
		read_over(rd);
}

static void
before_done(struct warm_read *rd, const struct io_op *op)
{
	struct warm_file *f = rd->owner;

	if (op->res >= 0) {
		if (!f->pins)
			count_add(rd->warm->counters, bytes_before, (uint64_t)op->res);
		rd->last_ns = MAX(rd->last_ns, op->at.end);
		f->found.awake &= op->at.awake;
		return;
	}
	rd->stop = true;
	if (op->res != -ECANCELED && f->found.err == 0)
		f->found.err = (int)op->res;
}

static void
behind_done(struct warm_read *rd, const struct io_op *op)
{
	if (op->res > 0)
		count_add(rd->warm->counters, bytes_behind, (uint64_t)op->res);
	else if (op->res == -EAGAIN && op->spare)
		order_pause(rd->warm);
	else
		rd->stop = true;
}

/* A kernel that takes memory back (DAMON, a cgroup at its limit) may take the first pages while the
 * last ones are read: 12 to 81 of 960 reads were lost in this way.  Looks once, at up to SKIP
 * windows, and only if the kernel counts the window that has just come. */
static bool
has_lost_bytes(struct warm_read *rd, const struct io_op *op)
{
	if (rd->stop || rd->again || !io_file_counted(rd->file, op->file.off, op->file.len))
		return (false);
	rd->again = true;
	rd->at = 0;
	skip_warm(rd);
	if (rd->at < rd->end && rd->at < SKIP * (uint64_t)IO_WINDOW)
		return (true);
	rd->at = rd->end;
	return (false);
}

static void
window_done(struct io_op *op)
{
	struct warm_read *rd = window_end(op);
	struct warm_device *d = rd->device;

	(rd->owner != NULL ? before_done : behind_done)(rd, op);
	if (rd->flying != 0 || (!rd->stop && rd->at < rd->end) ||
	    (rd->owner != NULL && has_lost_bytes(rd, op)))
		order_turn(rd);
	else if (rd->owner != NULL)
		read_over(rd);
	else
		next_part(rd);
	order_go(d);
}

/* A range begins on a page, so up to a page of its bytes is not wanted: one page more. */
static void
choose_bytes(struct warm_read *rd, const struct warm_bytes *b)
{
	const struct warm_file *f = rd->owner;
	uint64_t size = f->found.stx.stx_size, before = b->before, extra = 0;

	rd->n = range_resolve(f->want, size, UINT64_MAX, rd->part);
	if (rd->n != 0 && rd->part[0].from != 0)
		extra = PAGE;
	before = warm_sum(before, extra);
	rd->n = range_resolve(f->want, size, warm_sum(warm_bytes_all(b), extra), rd->part);
	for (guint i = 0; i < rd->n; i++)
		rd->all += rd->part[i].to - rd->part[i].from;
	rd->end = MIN(before, rd->all);
	rd->soon = MAX(MIN(b->soon, rd->all), rd->end);
	if (rd->n != 0 && rd->part[0].from == 0)
		rd->at = MIN(f->first.n, MIN(rd->part[0].to, rd->end));
}

static uint64_t
device_of(const struct warm_file *f)
{
	const struct statx *stx = &f->found.stx;

	return (makedev(stx->stx_dev_major, stx->stx_dev_minor));
}

void
read_begin(struct warm_file *f, int fd, const struct warm_bytes *b)
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
	rd->device = order_device(f->warm, device_of(f));
	list_init(&rd->link);
	choose_bytes(rd, b);
	if (f->left || (rd->at >= rd->end && rd->soon <= rd->end)) {
		struct warm_device *d = rd->device;

		read_over(rd);
		order_go(d);
	} else {
		order_add(rd);
	}
}

static void
over_done(struct io_op *op)
{
	struct warm_read *rd = container_of(op, struct warm_read, over);
	struct warm_device *d = rd->device;

	read_over(rd);
	order_go(d);
}

/* Without a window on its way it ends soon, and another file takes its place at once. */
void
read_stop(struct warm_read *rd, void (*stop)(struct io *, struct io_op *))
{
	bool stopped = rd->stop;

	rd->stop = true;
	for (guint i = 0; i < WINDOWS; i++)
		if (rd->window[i].busy)
			stop(rd->warm->io, &rd->window[i].op);
	if (stopped || rd->flying != 0)
		return;
	order_leave(rd);
	op_soon(rd->warm->io, &rd->over, over_done);
}
