/* files/warm/open.c -- a file or directory is opened for another process.
 *
 * Each call opens it, whatever is remembered of the name: a file system of another machine or
 * process is asked at each open(2).  Nobody else has the descriptor, so its flags are those of its
 * one user. */

#include "files/warm/impl.h"

#include <errno.h>
#include "base/clock.h"
#include "base/log.h"

struct warm_open {
	struct warm *warm;
	struct list link;                 /* in warm->opens */
	void (*done)(void *arg, int res); /* NULL: cancelled */
	void *arg;
	guint root; /* number of the root that is tried */
	struct io_op op;
	struct statx stx;
	char path[];
};

static void opened(struct io_op *);

/* Below the next root.  False: no root is left to try. */
static bool
open_below(struct warm_open *o)
{
	struct warm *wm = o->warm;
	const char *tail;
	const struct warm_root *r = roots_next(&wm->roots, o->path, &o->root, &tail);
	uint32_t client = o->op.client, ms = o->op.deadline_ms;

	if (r == NULL)
		return (false);
	op_init(&o->op, IO_OPEN, opened);
	o->op.client = client;
	o->op.deadline_ms = ms;
	o->op.open.root = r->dir.fd;
	o->op.open.path = tail;
	o->op.open.resolve = wm->roots.resolve | IO_GIVEN | (r->hot ? IO_LOCAL : 0);
	o->op.open.stx = &o->stx;
	op_submit(wm->io, &o->op);
	return (true);
}

static void
note_late(struct warm_open *o)
{
	struct warm *wm = o->warm;
	uint64_t ms = (io_now(wm->io) - o->op.at.submit) / NS_PER_MS;

	if (o->op.res == -ETIMEDOUT)
		count(wm->counters, late);
	if (wm->conf->slow_ms == 0 || ms < wm->conf->slow_ms)
		return;
	count(wm->counters, slow);
	log_limited(1, LOG_WARN, NULL, "file.slow", LF_STR("path", o->path),
	    LF_STR("stage", "open"), LF_U64("ms", ms),
	    LF_ERR("error", o->op.res < 0 ? (int)o->op.res : 0));
}

static void
open_free(struct warm_open *o)
{
	list_del(&o->link);
	g_free(o);
}

static void
opened(struct io_op *op)
{
	struct warm_open *o = container_of(op, struct warm_open, op);
	/* io/ answers -EACCES for a path that is neither a file nor a directory */
	int res = op->res == -EACCES && o->stx.stx_mode != 0 ? -EPERM : (int)op->res;

	if (o->done == NULL) {
		if (res >= 0)
			io_close_later(o->warm->io, res);
		open_free(o);
		return;
	}
	o->root += res == -EXDEV;
	if (res == -EXDEV && open_below(o))
		return;
	o->warm->stages->waiting--;
	note_late(o);
	o->done(o->arg, res);
	open_free(o);
}

static uint32_t
time_left(const struct warm *wm, uint64_t since_ns)
{
	uint64_t gone = (io_now(wm->io) - since_ns) / NS_PER_MS;

	if (wm->conf->deadline_ms == 0)
		return (0);
	return (gone < wm->conf->deadline_ms ? wm->conf->deadline_ms - (uint32_t)gone : 1);
}

struct warm_open *
warm_open(struct warm *wm, const char *path, const struct warm_opening *how)
{
	size_t n = strlen(path) + 1;
	struct warm_open *o = g_malloc0(sizeof(*o) + n);

	memcpy(o->path, path, n);
	o->warm = wm;
	o->done = how->done;
	o->arg = how->arg;
	o->op.client = how->client;
	o->op.deadline_ms = time_left(wm, how->since_ns);
	list_init(&o->link);
	if (!open_below(o)) {
		g_free(o);
		return (NULL);
	}
	list_add_tail(&wm->opens, &o->link);
	wm->stages->waiting++;
	return (o);
}

void
warm_open_cancel(struct warm_open **op)
{
	struct warm_open *o = *op;

	*op = NULL;
	if (o == NULL)
		return;
	o->done = NULL;
	o->warm->stages->waiting--;
	op_cancel(o->warm->io, &o->op);
}

void
opens_cancel(struct warm *wm)
{
	struct warm_open *o;

	list_each(o, &wm->opens, link)
		op_cancel(wm->io, &o->op);
}
