/* behind.c -- the rest of long files, after the answer.
 *
 *   turn: [a][b][c] --> a window of a (IO_WARM, by a thread with nothing to do) --> [b][c][a]
 *
 * Files take turns, each has one window on its way.  If all threads have something better to do there is a pause.
 */

#include "fcgi-stat-accel/warm/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define FILES	 64		/* descriptors that are kept open for this */
#define FLYING	 4		/* windows of all of them: 4 of 8 ms each are 128 MB/s */
#define PAUSE_MS 20
#define SKIP	 64		/* windows that are looked at in one go: 2 us each */

struct ahead {
	struct list	    link;
	struct warm_behind *behind;
	struct io_file	   *file;
	uint64_t	    at, end;
	struct io_op	    op;
};

static void behind_go(struct warm_behind *);

void
behind_init(struct warm_behind *b, struct io *io, struct stats *stats)
{
	b->io = io;
	b->stats = stats;
	list_init(&b->turn);
	list_init(&b->flying);
}

static void
ahead_free(struct ahead *a)
{
	list_del(&a->link);
	a->behind->n--;
	io_file_put(a->file);
	g_free(a);
}

/* Removed, or shorter than what is left to be read.  What is known of an open file is asked for without waiting. */
static bool
is_gone(const struct ahead *a)
{
	struct statx stx;

	if (statx(a->file->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK | STATX_SIZE, &stx) < 0)
		return (true);
	return (stx.stx_nlink == 0 || stx.stx_size <= a->at);
}

static void
pause_done(struct io_op *op)
{
	struct warm_behind *b = container_of(op, struct warm_behind, pause);

	b->paused = false;
	behind_go(b);
}

static void
behind_pause(struct warm_behind *b)
{
	if (b->paused)
		return;
	b->paused = true;
	op_init(&b->pause, IO_TIMER, pause_done);
	b->pause.deadline_ms = PAUSE_MS;
	op_submit(b->io, &b->pause);
}

static void
window_done(struct io_op *op)
{
	struct ahead *a = container_of(op, struct ahead, op);
	struct warm_behind *b = a->behind;

	b->nflying--;
	list_del(&a->link);
	list_add_tail(&b->turn, &a->link);
	if (op->res == -EAGAIN) {
		behind_pause(b);
	} else if (op->res > 0) {
		a->at += (uint64_t)op->res;
		b->stats->bytes_behind += (uint64_t)op->res;
	}
	if ((op->res <= 0 && op->res != -EAGAIN) || a->at >= a->end)
		ahead_free(a);
	behind_go(b);
}

static uint32_t
window_len(const struct ahead *a)
{
	return ((uint32_t)MIN(a->end - a->at, IO_WINDOW - a->at % IO_WINDOW));
}

/* What is there already needs no thread. */
static void
skip_warm(struct ahead *a)
{
	for (guint i = 0; i < SKIP && a->at < a->end && io_file_counted(a->file, a->at, window_len(a)); i++)
		a->at += window_len(a);
}

static void
window_begin(struct ahead *a)
{
	list_del(&a->link);
	list_add_tail(&a->behind->flying, &a->link);
	a->behind->nflying++;
	a->op.file.file = a->file;
	a->op.file.off = a->at;
	a->op.file.len = window_len(a);
	op_submit(a->behind->io, &a->op);
}

static void
behind_go(struct warm_behind *b)
{
	while (!b->paused && b->nflying < FLYING && !list_empty(&b->turn)) {
		struct ahead *a = list_entry(b->turn.next, struct ahead, link);

		skip_warm(a);
		if (a->at >= a->end || is_gone(a))
			ahead_free(a);
		else
			window_begin(a);
	}
}

void
behind_add(struct warm_behind *b, struct io_file *file, uint64_t at, uint64_t end, uint32_t client)
{
	struct ahead *a;

	if (b->n >= FILES) {
		STATS_COUNT(b->stats, behind_skipped);
		io_file_put(file);
		return;
	}
	a = g_new0(struct ahead, 1);
	a->behind = b;
	a->file = file;
	a->at = at;
	a->end = end;
	op_init(&a->op, IO_WARM, window_done);
	a->op.spare = 1;
	a->op.client = client;
	list_add_tail(&b->turn, &a->link);
	b->n++;
	behind_go(b);
}

void
behind_cancel(struct warm_behind *b)
{
	struct list *l, *tmp;

	list_foreach_safe(l, tmp, &b->turn)
		ahead_free(list_entry(l, struct ahead, link));
	list_foreach_safe(l, tmp, &b->flying)
		op_cancel(b->io, &list_entry(l, struct ahead, link)->op);
	if (b->paused)
		op_cancel(b->io, &b->pause);
}

bool
behind_busy(const struct warm_behind *b)
{
	return (b->nflying != 0 || b->paused);
}
