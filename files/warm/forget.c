/* files/warm/forget.c -- drops a file from memory, so that the next question about it shows whether
 * another program reads the file before the question.
 */

#include "files/warm/impl.h"

#include <errno.h>

/* One read of a disk brings it back. */
#define FORGET_MAX (1u << 20)

static void
forgotten(struct io_op *op)
{
	struct warm_forget *f = container_of(op, struct warm_forget, op);

	if (op->res >= 0 && !f->first.closed)
		io_close_fd((int)op->res);
	f->busy = false;
	g_free(f->path);
	if (op->res != -ECANCELED)
		f->done(f->arg, op->res >= 0 && f->first.forgotten);
}

/* Where the loop cannot tell what is in memory, the next question would prove nothing. */
bool
warm_forget(struct warm *wm, const char *path, void (*done)(void *, bool), void *arg)
{
	struct warm_forget *f = &wm->forget;
	const struct warm_root *r;
	const char *tail;
	guint nr = 0;

	r = roots_next(&wm->roots, path, &nr, &tail);
	if (f->busy || r == NULL || !r->hot || wm->conf->how != WARM_READ || wm->conf->before == 0)
		return (false);
	*f = (struct warm_forget){ .busy = true, .done = done, .arg = arg };
	f->path = g_strdup(tail);
	f->first =
	    (struct io_first){ .shut = UINT64_MAX, .forget = MIN(FORGET_MAX, wm->conf->before) };
	op_init(&f->op, IO_OPEN, forgotten);
	f->op.open.root = r->dir.fd;
	f->op.open.path = f->path;
	f->op.open.resolve = wm->roots.resolve;
	f->op.open.stx = &f->stx;
	f->op.open.first = &f->first;
	op_submit(wm->io, &f->op);
	return (true);
}
