/* files/warm/open.c -- a file or directory is opened for another process.
 *
 *   IO_OPEN --> on a local file system ----------------------------------> done()
 *        `----> its wanted bytes are read through the same open(2) -------> done()
 *
 * Each call opens it, whatever is remembered of the name: a file system of another machine or
 * process is asked at each open(2).  Many drop the bytes of the file from memory then, so those
 * that the look-up read do not count.  Nobody else has the descriptor, so its flags are those of
 * its one user. */

#include "files/warm/impl.h"

#include <errno.h>
#include "base/clock.h"
#include "base/log.h"

struct warm_open {
	struct warm *warm;
	struct list link;                 /* in warm->opens */
	void (*done)(void *arg, int res); /* NULL: cancelled, or called */
	void *arg;
	uint64_t begun_ns;
	struct range_set want;
	struct warm_file file;
	bool ended; /* the file */
	struct io_op timer;
	bool timing;
	char path[];
};

static void
note_late(const struct warm_open *o, const char *stage, int res)
{
	struct warm *wm = o->warm;
	uint64_t ms = (io_now(wm->io) - o->begun_ns) / NS_PER_MS;

	if (res == -ETIMEDOUT)
		count(wm->counters, late);
	if (wm->conf->slow_ms == 0 || ms < wm->conf->slow_ms)
		return;
	count(wm->counters, slow);
	log_limited(1, LOG_WARN, NULL, "file.slow", LF_STR("path", o->path), LF_STR("stage", stage),
	    LF_U64("ms", ms), LF_ERR("error", res < 0 ? res : 0));
}

static void
answer(struct warm_open *o, int res)
{
	void (*done)(void *, int) = o->done;
	const char *stage = o->file.read != NULL ? "read" : "open";

	o->done = NULL;
	o->warm->stages->waiting--;
	note_late(o, stage, res);
	done(o->arg, res);
}

static void
free_unused(struct warm_open *o)
{
	if (!o->ended || o->timing)
		return;
	list_del(&o->link);
	g_free(o);
}

/* The client that reads it gets the error of a read, too. */
static bool
is_open(const struct warm_file *f)
{
	return (
	    f->fd >= 0 && (f->found.err == 0 || f->found.err == -EISDIR || f->found.err == -EIO));
}

static void
file_done(struct warm_file *f)
{
	struct warm_open *o = container_of(f, struct warm_open, file);
	bool gives = o->done != NULL && is_open(f);

	o->ended = true;
	if (o->timing)
		op_cancel(o->warm->io, &o->timer);
	if (f->fd >= 0 && !gives)
		io_close_later(o->warm->io, f->fd);
	if (o->done != NULL)
		answer(o, gives ? f->fd : f->found.err);
	free_unused(o);
}

static void
stop(struct warm_open *o)
{
	if (!o->ended)
		file_stop(&o->file, op_cancel, false);
}

static void
timed(struct io_op *op)
{
	struct warm_open *o = container_of(op, struct warm_open, timer);

	o->timing = false;
	if (op->res != -ECANCELED && o->done != NULL) {
		answer(o, -ETIMEDOUT);
		stop(o);
	}
	free_unused(o);
}

static void
time_open(struct warm_open *o, uint64_t since_ns)
{
	struct warm *wm = o->warm;
	uint64_t gone = (o->begun_ns - since_ns) / NS_PER_MS;
	unsigned all = wm->conf->deadline_ms;

	if (all == 0)
		return;
	o->timing = true;
	op_init(&o->timer, IO_TIMER, timed);
	o->timer.deadline_ms = gone < all ? all - (uint32_t)gone : 1;
	op_submit(wm->io, &o->timer);
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
	o->begun_ns = io_now(wm->io);
	o->want = how->want;
	o->file = (struct warm_file){
		.warm = wm,
		.path = o->path,
		.want = &o->want,
		.client = how->client,
		.done = file_done,
		.gives = true,
		.fd = -1,
	};
	list_init(&o->link);
	if (!file_open(&o->file)) {
		g_free(o);
		return (NULL);
	}
	list_add_tail(&wm->opens, &o->link);
	wm->stages->waiting++;
	time_open(o, how->since_ns);
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
	stop(o);
}

void
opens_cancel(struct warm *wm)
{
	struct warm_open *o;

	list_each(o, &wm->opens, link)
		stop(o);
}
